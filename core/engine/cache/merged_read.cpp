#include "core/engine/cache/merged_read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/engine/cache/piece_slice.hpp"
#include "core/storage/piece_walk.hpp"

namespace forebay {
namespace {

/// Copies to places in pieces; the places ascend.
class PieceFiller {
 public:
  explicit PieceFiller(std::span<const iovec> pieces) : pieces_(pieces) {}

  /// `bytes` go to `at` bytes into the pieces.
  void put(Bytes at, std::span<const std::byte> bytes) {
    each(at, static_cast<Bytes>(bytes.size()), [&](std::byte* to, std::size_t length) {
      std::memcpy(to, bytes.data(), length);
      bytes = bytes.subspan(length);
    });
  }
  void zero(Bytes at, Bytes length) {
    each(at, length, [](std::byte* to, std::size_t part) { std::memset(to, 0, part); });
  }

 private:
  template <typename Use>
  void each(Bytes at, Bytes length, Use use) {
    while (length > 0) {
      const iovec& piece = pieces_[index_];
      const Bytes end = start_ + static_cast<Bytes>(piece.iov_len);
      if (at >= end) {
        start_ = end;
        ++index_;
        continue;
      }
      const Bytes step = std::min(length, end - at);
      use(static_cast<std::byte*>(piece.iov_base) + (at - start_), static_cast<std::size_t>(step));
      at += step;
      length -= step;
    }
  }

  std::span<const iovec> pieces_;
  std::size_t index_ = 0;
  Bytes start_ = 0;  ///< Of that piece, in all of them.
};

/// Of the record that `piece` is of. All of it is lost to readers, and nothing else.
Error unreadable(const StorageFile& file, const DirtyMap::Piece& piece, Error error) {
  const Bytes begin = piece.extent.offset - piece.place.skip;
  error.what = fmt::format(
      "read {}, of which bytes {} to {} are in record {} of a write-behind log alone: {}. Write "
      "them again; or once the program has ended, 'forebay cache recover --skip-damage {}' brings "
      "all others to the file",
      file.path(), begin, begin + static_cast<Bytes>(piece.place.length), piece.order, error.what,
      file.path());
  return error;
}

}  // namespace

Result<Bytes> read_merged(StorageFile& file, const DirtyExtents& extents, KeptPayload& kept,
                          std::span<const iovec> pieces, Bytes offset) {
  const Extent range{offset, total_bytes(pieces)};
  if (range.empty()) return 0;
  // What is clean now is in the file, so it is asked afterwards.
  const Bytes dirty_end = extents.end();
  const auto dirty = extents.overlapping(range);

  // From the first to the last byte that is not dirty, in one call.
  Extent clean = range;
  if (!dirty.empty() && dirty.front().extent.offset == range.offset) {
    Bytes end = range.offset;
    for (const auto& piece : dirty) {
      if (piece.extent.offset != end) break;
      end = piece.extent.end();
    }
    clean = {end, range.end() - end};
  }
  if (!clean.empty() && !dirty.empty() && dirty.back().extent.end() == range.end()) {
    Bytes begin = range.end();
    for (auto piece = dirty.rbegin(); piece != dirty.rend(); ++piece) {
      if (piece->extent.end() != begin) break;
      begin = piece->extent.offset;
    }
    clean.length = begin - clean.offset;
  }

  Bytes got = range.length;
  if (!clean.empty()) {
    const auto read =
        file.read_pieces(slice(pieces, clean.offset - range.offset, clean.length), clean.offset);
    if (!read) return read;
    if (*read < clean.length) {
      // The file ends there, or ended there a moment ago.
      const Bytes file_end = clean.offset + *read;
      got = std::clamp(dirty_end - range.offset, file_end - range.offset, range.length);
      PieceFiller(pieces).zero(file_end - range.offset,
                               std::min(clean.end(), range.offset + got) - file_end);
    }
  }
  PieceFiller filler(pieces);
  std::vector<std::byte> buffer;
  for (const auto& piece : dirty) {
    const auto read = kept.read(piece, buffer, [&](std::span<const std::byte> bytes) {
      filler.put(piece.extent.offset - range.offset, bytes);
    });
    if (!read) return tl::unexpected(unreadable(file, piece, read.error()));
  }
  return got;
}

}  // namespace forebay
