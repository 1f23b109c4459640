#include "core/storage/past_page_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/model/direct_io.hpp"
#include "core/storage/aligned_memory.hpp"
#include "core/storage/forwarding_file.hpp"
#include "core/storage/piece_walk.hpp"
#include "core/storage/told_alignment.hpp"

namespace forebay {
namespace {

/// Below, the calls of a device cost more than the pages of a cache.
constexpr Bytes least = 512 * KiB;
/// Of one system call.
constexpr Bytes call_bytes = large_page;

bool is_aligned(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % static_cast<std::uintptr_t>(direct_alignment) ==
         0;
}

/// Copies the first `to.size()` bytes that `walk` has left.
void gather(PieceWalk& walk, std::span<std::byte> to) {
  while (!to.empty()) {
    for (const iovec& piece : walk.next()) {
      const std::size_t length = std::min(piece.iov_len, to.size());
      std::memcpy(to.data(), piece.iov_base, length);
      walk.advance(static_cast<Bytes>(length));
      to = to.subspan(length);
      if (to.empty()) return;
    }
  }
}

class UncachedFile final : public ForwardingFile {
 public:
  UncachedFile(std::unique_ptr<StorageFile> cached, std::unique_ptr<StorageFile> direct)
      : ForwardingFile(std::move(cached)), direct_(std::move(direct)) {}

  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override {
    const Bytes end = offset + total_bytes(pieces);
    // A page is written by one way or by the other, else one would have to wait for the other.
    const Extent whole_pages{
        round_up(offset, direct_alignment),
        round_down(end, direct_alignment) - round_up(offset, direct_alignment)};
    if (whole_pages.length < least || refused_) {
      return ForwardingFile::write_pieces(pieces, offset);
    }
    PieceWalk walk(pieces, call_bytes);
    if (auto head = write_cached(walk, {offset, whole_pages.offset - offset}); !head) return head;
    Bytes at = whole_pages.offset;
    while (at < whole_pages.end() && !refused_) {
      const Extent call{at, std::min(call_bytes, whole_pages.end() - at)};
      if (auto written = write_direct(walk, call); !written) return written;
      at = call.end();
    }
    return write_cached(walk, {at, end - at});
  }

 private:
  Status write_cached(PieceWalk& walk, Extent part) {
    if (part.empty()) return {};
    std::vector<std::byte> bytes(static_cast<std::size_t>(part.length));
    gather(walk, bytes);
    return write_cached(bytes, part.offset);
  }

  Status write_cached(std::span<std::byte> bytes, Bytes offset) {
    const iovec piece{bytes.data(), bytes.size()};
    return ForwardingFile::write_pieces({&piece, 1}, offset);
  }

  /// From where the bytes are if the device can take them there.
  Status write_direct(PieceWalk& walk, Extent call) {
    const iovec& piece = walk.next().front();
    if (is_aligned(piece.iov_base) && static_cast<Bytes>(piece.iov_len) >= call.length) {
      const std::span bytes(static_cast<std::byte*>(piece.iov_base),
                            static_cast<std::size_t>(call.length));
      walk.advance(call.length);
      return write_direct(bytes, call.offset);
    }
    AlignedMemory memory = take();
    const std::span bytes = memory.take(call.length);
    if (bytes.empty()) return write_cached(walk, call);
    gather(walk, bytes);
    Status written = write_direct(bytes, call.offset);
    give_back(std::move(memory));
    return written;
  }

  Status write_direct(std::span<std::byte> bytes, Bytes offset) {
    Status written = direct_->write_at(bytes, offset);
    // Also the rest of a write that fell short, which need not begin where one may.
    if (!written && written.error().os_errno == EINVAL) {
      refused_ = true;
      written = write_cached(bytes, offset);
    }
    return written;
  }

  /// As many as there are threads that write.
  AlignedMemory take() {
    const std::scoped_lock lock(mutex_);
    if (memory_.empty()) return {};
    AlignedMemory memory = std::move(memory_.back());
    memory_.pop_back();
    return memory;
  }
  void give_back(AlignedMemory memory) {
    const std::scoped_lock lock(mutex_);
    memory_.push_back(std::move(memory));
  }

  const std::unique_ptr<StorageFile> direct_;
  std::atomic<bool> refused_ = false;
  std::mutex mutex_;
  std::vector<AlignedMemory> memory_;  ///< Guarded by mutex_.
};

}  // namespace

std::unique_ptr<StorageFile> past_page_cache(std::unique_ptr<StorageFile> file,
                                             Counters& counters) {
  Descriptor opened(::open(file->path().c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC));
  if (!opened.valid()) return file;
  if (!suits_direct_io(told_direct_alignment(opened.get()).value_or(0))) return file;
  auto direct = adopt_posix_file(std::move(opened), OpenMode::write_only, file->path(), counters);
  // The name may lead to another file by now.
  if (!file->id() || file->id() != direct->id()) return file;
  return std::make_unique<UncachedFile>(std::move(file), std::move(direct));
}

}  // namespace forebay
