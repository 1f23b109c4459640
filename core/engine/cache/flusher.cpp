#include "core/engine/cache/flusher.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>
#include <utility>

#include "core/model/direct_io.hpp"
#include "core/storage/aligned_memory.hpp"
#include "core/storage/background_thread.hpp"

namespace forebay {
namespace {

constexpr std::chrono::milliseconds idle_period{100};

/// What goes on in memory where the last piece ends is one with it.
void append(std::vector<iovec>& run, std::span<const std::byte> bytes) {
  auto* begin = const_cast<std::byte*>(bytes.data());
  if (!run.empty() && static_cast<std::byte*>(run.back().iov_base) + run.back().iov_len == begin) {
    run.back().iov_len += bytes.size();
    return;
  }
  run.push_back({begin, bytes.size()});
}

/// Writes a unit's pieces to the file, neighbours together.
class UnitWriter {
 public:
  explicit UnitWriter(StorageFile& file) : file_(file) {}
  Status write(const DirtyExtents::Work& work);

 private:
  Status collect(const DirtyExtents::Work& work);

  StorageFile& file_;
  AlignedMemory copies_;            ///< Of pieces that do not lie in memory as they are.
  std::vector<std::byte> payload_;  ///< A payload of which a part is needed.
  std::vector<std::span<const std::byte>> sources_;  ///< By piece.
};

/// Finds or makes the bytes of every piece. Copies lie as they do in the file, page for page, so
/// that a device can be written from them.
Status UnitWriter::collect(const DirtyExtents::Work& work) {
  const Bytes begin = round_down(work.pieces.front().extent.offset, direct_alignment);
  std::span<std::byte> copies;
  sources_.clear();
  for (const DirtyMap::Piece& piece : work.pieces) {
    if (piece.place.in_memory()) {
      const auto bytes = verified_bytes(piece.place, piece.extent.length, payload_);
      if (!bytes) return tl::unexpected(bytes.error());
      sources_.push_back(*bytes);
      continue;
    }
    if (copies.empty()) copies = copies_.take(work.pieces.back().extent.end() - begin);
    if (copies.empty()) return fail(ENOMEM, "read what is to be flushed");
    const std::span copy = copies.subspan(static_cast<std::size_t>(piece.extent.offset - begin),
                                          static_cast<std::size_t>(piece.extent.length));
    if (auto read = read_verified(piece.place, copy, payload_); !read) return read;
    sources_.push_back(copy);
  }
  return {};
}

Status UnitWriter::write(const DirtyExtents::Work& work) {
  if (auto collected = collect(work); !collected) return collected;
  std::vector<iovec> run;
  for (std::size_t first = 0; first < work.pieces.size();) {
    run.clear();
    std::size_t next = first;
    Bytes end = work.pieces[first].extent.offset;
    while (next < work.pieces.size() && work.pieces[next].extent.offset == end) {
      append(run, sources_[next]);
      end = work.pieces[next].extent.end();
      ++next;
    }
    auto written = file_.write_pieces(run, work.pieces[first].extent.offset);
    if (!written) return written;
    first = next;
  }
  return {};
}

}  // namespace

Flusher::Flusher(DirtyExtents& extents, StorageFile& file, int threads, Hooks hooks)
    : extents_(extents), file_(file), hooks_(std::move(hooks)) {
  const int wanted = std::max(threads, 1);
  threads_.reserve(static_cast<std::size_t>(wanted));
  for (int i = 0; i < wanted; ++i) {
    auto thread = try_background_thread([this, i] { work(i == 0); });
    if (!thread) {
      if (i == 0) begun_ = tl::unexpected(thread.error());
      return;
    }
    threads_.push_back(std::move(*thread));
  }
}

Flusher::~Flusher() {
  extents_.stop();
  for (std::thread& thread : threads_) thread.join();
}

void Flusher::work(bool first) {
  UnitWriter writer(file_);
  while (!extents_.stopping()) {
    auto work = extents_.take(first ? idle_period : std::chrono::hours(1));
    if (!work) {
      if (first && !extents_.stopping()) hooks_.idle();
      continue;
    }
    const Extent tried = hull(work->pieces.front().extent, work->pieces.back().extent);
    const Status written = writer.write(*work);
    extents_.done(std::move(*work), written);
    hooks_.wrote(tried);
  }
}

}  // namespace forebay
