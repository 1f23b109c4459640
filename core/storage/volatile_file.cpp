#include "core/storage/volatile_file.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/storage/piece_walk.hpp"

namespace forebay {
namespace {

constexpr std::size_t sector = 512;

void put(std::vector<std::byte>& content, std::size_t offset, std::span<const std::byte> bytes) {
  if (content.size() < offset + bytes.size()) content.resize(offset + bytes.size());
  std::ranges::copy(bytes, content.begin() + static_cast<std::ptrdiff_t>(offset));
}

bool chance(std::mt19937_64& random) { return random() % 2 == 0; }

}  // namespace

VolatileInode::VolatileInode(StripeLayout layout, std::string path)
    : layout_(layout), path_(std::move(path)) {}

VolatileInode::VolatileInode(std::vector<std::byte> content, StripeLayout layout, std::string path)
    : layout_(layout), path_(std::move(path)), now_(std::move(content)), durable_(now_) {}

std::vector<std::byte> VolatileInode::content() const {
  const std::scoped_lock lock(mutex_);
  return now_;
}

std::shared_ptr<VolatileInode> VolatileInode::after_crash(CrashKind kind,
                                                          std::mt19937_64& random) const {
  const std::scoped_lock lock(mutex_);
  if (kind == CrashKind::process_killed) {
    return std::make_shared<VolatileInode>(now_, layout_, path_);
  }
  std::vector<std::byte> left = durable_;
  if (kind == CrashKind::partly_lost) {
    for (const Change& change : changes_) {
      const auto offset = static_cast<std::size_t>(change.offset);
      if (change.bytes.empty()) {
        if (chance(random)) left.resize(offset);
        continue;
      }
      for (std::size_t at = 0; at < change.bytes.size();) {
        const std::size_t step =
            std::min(change.bytes.size() - at, sector - (offset + at) % sector);
        if (chance(random)) put(left, offset + at, std::span(change.bytes).subspan(at, step));
        at += step;
      }
    }
  }
  return std::make_shared<VolatileInode>(std::move(left), layout_, path_);
}

class VolatileFile final : public StorageFile {
 public:
  explicit VolatileFile(std::shared_ptr<VolatileInode> inode) : inode_(std::move(inode)) {}

  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override {
    VolatileInode::Change change{offset, {}};
    for (const iovec& piece : pieces) {
      const auto* bytes = static_cast<const std::byte*>(piece.iov_base);
      change.bytes.insert(change.bytes.end(), bytes, bytes + piece.iov_len);
    }
    if (change.bytes.empty()) return {};
    const std::scoped_lock lock(inode_->mutex_);
    put(inode_->now_, static_cast<std::size_t>(offset), change.bytes);
    inode_->changes_.push_back(std::move(change));
    return {};
  }

  Result<Bytes> read_pieces(std::span<const iovec> pieces, Bytes offset) override {
    const std::scoped_lock lock(inode_->mutex_);
    const auto size = static_cast<Bytes>(inode_->now_.size());
    Bytes position = std::min(offset, size);
    const Bytes start = position;
    for (const iovec& piece : pieces) {
      const Bytes step = std::min(static_cast<Bytes>(piece.iov_len), size - position);
      if (step == 0) continue;
      std::memcpy(piece.iov_base, inode_->now_.data() + position, static_cast<std::size_t>(step));
      position += step;
    }
    return position - start;
  }

  Result<Bytes> size() override {
    const std::scoped_lock lock(inode_->mutex_);
    return static_cast<Bytes>(inode_->now_.size());
  }

  Status resize(Bytes size) override {
    const std::scoped_lock lock(inode_->mutex_);
    resize_locked(size);
    return {};
  }

  Status allocate(Bytes size) override {
    const std::scoped_lock lock(inode_->mutex_);
    if (size > static_cast<Bytes>(inode_->now_.size())) resize_locked(size);
    return {};
  }

  void lengthen(Bytes size) override { (void)allocate(size); }

  Status sync() override {
    const std::scoped_lock lock(inode_->mutex_);
    inode_->durable_ = inode_->now_;
    inode_->changes_.clear();
    return {};
  }

  Status lock(Extent, LockKind) override { return {}; }
  Status unlock(Extent) override { return {}; }
  StripeLayout layout() const override { return inode_->layout_; }
  const std::string& path() const override { return inode_->path_; }

 private:
  void resize_locked(Bytes size) {
    inode_->now_.resize(static_cast<std::size_t>(size));
    inode_->changes_.push_back({size, {}});
  }

  const std::shared_ptr<VolatileInode> inode_;
};

std::unique_ptr<StorageFile> open_volatile_file(std::shared_ptr<VolatileInode> inode) {
  return std::make_unique<VolatileFile>(std::move(inode));
}

}  // namespace forebay
