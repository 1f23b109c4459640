#include "core/storage/memory_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "core/storage/piece_walk.hpp"

namespace forebay {
namespace {

/// A test that asks for more has a wrong offset somewhere, and is to get an error rather than the
/// machine's memory.
constexpr Bytes largest_file = 64 * GiB;

}  // namespace

MemoryInode::MemoryInode(StripeLayout layout, std::string path)
    : layout_(layout), path_(std::move(path)) {}

std::vector<std::byte> MemoryInode::content() const {
  const std::lock_guard guard(mutex_);
  return bytes_;
}

bool MemoryInode::conflicts(const Lock& wanted) const {
  return std::ranges::any_of(locks_, [&](const Lock& held) {
    const bool both_shared =
        held.kind == StorageFile::LockKind::shared && wanted.kind == StorageFile::LockKind::shared;
    return held.owner != wanted.owner && !both_shared &&
           !intersect(held.range, wanted.range).empty();
  });
}

class MemoryFile final : public StorageFile {
 public:
  MemoryFile(std::shared_ptr<MemoryInode> inode, Counters& counters)
      : inode_(std::move(inode)), counters_(counters) {}

  /// As with descriptors, closing releases what is still locked.
  ~MemoryFile() override {
    release([](const MemoryInode::Lock&) { return true; });
  }

  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override {
    if (offset < 0) return fail(EINVAL, "write", offset);
    const Bytes length = total_bytes(pieces);
    if (length == 0) return {};
    if (offset > largest_file - length) return fail(EFBIG, "write", offset);
    const std::lock_guard guard(inode_->mutex_);
    if (offset + length > size_locked()) {
      if (auto grown = set_size_locked(offset + length); !grown) return grown;
    }
    std::byte* to = inode_->bytes_.data() + offset;
    for (const iovec& piece : pieces) {
      if (piece.iov_len == 0) continue;
      std::memcpy(to, piece.iov_base, piece.iov_len);
      to += piece.iov_len;
    }
    Counters::add(counters_.storage_writes, 1);
    Counters::add(counters_.storage_bytes_written, length);
    return {};
  }

  Result<Bytes> read_pieces(std::span<const iovec> pieces, Bytes offset) override {
    if (offset < 0) return fail(EINVAL, "read", offset);
    const std::lock_guard guard(inode_->mutex_);
    Bytes position = std::min(offset, size_locked());
    const Bytes start = position;
    for (const iovec& piece : pieces) {
      const Bytes step = std::min(static_cast<Bytes>(piece.iov_len), size_locked() - position);
      if (step == 0) continue;
      std::memcpy(piece.iov_base, inode_->bytes_.data() + position, static_cast<std::size_t>(step));
      position += step;
    }
    Counters::add(counters_.storage_reads, 1);
    Counters::add(counters_.storage_bytes_read, position - start);
    return position - start;
  }

  Result<Bytes> size() override {
    const std::lock_guard guard(inode_->mutex_);
    return size_locked();
  }

  Status resize(Bytes size) override {
    if (size < 0) return fail(EINVAL, "set the size", size);
    const std::lock_guard guard(inode_->mutex_);
    return set_size_locked(size);
  }

  Status allocate(Bytes size) override {
    if (size < 0) return fail(EINVAL, "allocate", size);
    const std::lock_guard guard(inode_->mutex_);
    return size > size_locked() ? set_size_locked(size) : Status{};
  }

  void lengthen(Bytes size) override { (void)allocate(size); }

  Status sync() override { return {}; }

  Status lock(Extent range, LockKind kind) override {
    if (range.empty()) return {};
    const MemoryInode::Lock wanted{this, range, kind};
    std::unique_lock guard(inode_->mutex_);
    inode_->unlocked_.wait(guard, [&] { return !inode_->conflicts(wanted); });
    // Locking what this opening holds already changes the kind and nests nothing, as with fcntl.
    std::erase_if(inode_->locks_, [&](const MemoryInode::Lock& held) {
      return held.owner == this && held.range == range;
    });
    inode_->locks_.push_back(wanted);
    // A change from exclusive to shared may let others in.
    inode_->unlocked_.notify_all();
    return {};
  }

  Status unlock(Extent range) override {
    release([range](const MemoryInode::Lock& held) { return held.range == range; });
    return {};
  }

  StripeLayout layout() const override { return inode_->layout_; }
  const std::string& path() const override { return inode_->path_; }
  std::optional<FileId> id() const override {
    return FileId{0, reinterpret_cast<std::uintptr_t>(inode_.get())};
  }

 private:
  tl::unexpected<Error> fail(int os_errno, const char* verb, Bytes offset) const {
    return tl::make_unexpected(error_from_errno(
        os_errno, std::string(verb) + " at " + std::to_string(offset) + " in " + inode_->path_));
  }

  Bytes size_locked() const { return static_cast<Bytes>(inode_->bytes_.size()); }

  Status set_size_locked(Bytes size) {
    if (size > largest_file) return fail(EFBIG, "grow", size);
    try {
      inode_->bytes_.resize(static_cast<std::size_t>(size));
      return {};
    } catch (const std::bad_alloc&) {
      return fail(ENOMEM, "grow", size);
    }
  }

  template <typename Match>
  void release(Match match) {
    {
      const std::lock_guard guard(inode_->mutex_);
      std::erase_if(inode_->locks_, [&](const MemoryInode::Lock& held) {
        return held.owner == this && match(held);
      });
    }
    inode_->unlocked_.notify_all();
  }

  const std::shared_ptr<MemoryInode> inode_;
  Counters& counters_;
};

std::unique_ptr<StorageFile> open_memory_file(std::shared_ptr<MemoryInode> inode,
                                              Counters& counters) {
  return std::make_unique<MemoryFile>(std::move(inode), counters);
}

}  // namespace forebay
