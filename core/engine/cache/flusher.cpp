#include "core/engine/cache/flusher.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "core/storage/background_thread.hpp"

namespace forebay {
namespace {

constexpr std::chrono::milliseconds idle_period{100};

iovec piece_of(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

/// The file's bytes lie in memory, where they are.
bool in_memory(const DirtyMap::Piece& piece) {
  return piece.place.segment->in_memory() && piece.place.plain();
}

/// Writes a unit's pieces to the file, neighbours together.
class UnitWriter {
 public:
  explicit UnitWriter(StorageFile& file) : file_(file) {}
  Status write(const DirtyExtents::Work& work);

 private:
  Status collect(const DirtyExtents::Work& work);

  StorageFile& file_;
  std::vector<std::byte> copies_;   ///< Of pieces that do not lie in memory as they are.
  std::vector<std::byte> payload_;  ///< A payload of which a part is needed.
  std::vector<std::span<const std::byte>> sources_;  ///< By piece.
};

/// Finds or makes the bytes of every piece.
Status UnitWriter::collect(const DirtyExtents::Work& work) {
  std::size_t copied = 0;
  for (const DirtyMap::Piece& piece : work.pieces) {
    if (!in_memory(piece)) copied += static_cast<std::size_t>(piece.extent.length);
  }
  copies_.resize(copied);
  sources_.clear();
  std::size_t at = 0;
  for (const DirtyMap::Piece& piece : work.pieces) {
    const auto length = static_cast<std::size_t>(piece.extent.length);
    if (in_memory(piece)) {
      const auto bytes = verified_bytes(piece.place, piece.extent.length, payload_);
      if (!bytes) return tl::unexpected(bytes.error());
      sources_.push_back(*bytes);
      continue;
    }
    const std::span copy = std::span(copies_).subspan(at, length);
    if (auto read = read_verified(piece.place, copy, payload_); !read) return read;
    sources_.push_back(copy);
    at += length;
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
      run.push_back(piece_of(sources_[next]));
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
  for (int i = 0; i < std::max(threads, 1); ++i) {
    threads_.push_back(background_thread([this, i] { work(i == 0); }));
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
