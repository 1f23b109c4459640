#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <span>

#include "core/model/extent.hpp"

namespace forebay {

/// Bytes in all pieces together.
inline Bytes total_bytes(std::span<const iovec> pieces) {
  Bytes sum = 0;
  for (const iovec& piece : pieces) sum += static_cast<Bytes>(piece.iov_len);
  return sum;
}

/// What is left to move of a transfer in pieces, cut into batches that one system call takes.
/// After each call, advance() by what it really moved, which may be less than the batch. The pieces
/// themselves (not only the memory behind them) must outlive the walk.
class PieceWalk {
 public:
  /// A batch has at most `batch_limit` bytes, > 0.
  PieceWalk(std::span<const iovec> pieces, Bytes batch_limit)
      : pieces_(pieces), batch_limit_(static_cast<std::size_t>(batch_limit)) {}

  /// The next batch: at most IOV_MAX pieces, none of them empty. An empty batch means that all is
  /// moved. Valid until the next call of next().
  std::span<const iovec> next() {
    std::size_t count = 0;
    std::size_t room = batch_limit_;
    std::size_t skip = done_in_first_;
    for (std::size_t i = first_; i < pieces_.size() && count < batch_.size() && room > 0; ++i) {
      const std::size_t length = std::min(pieces_[i].iov_len - skip, room);
      if (length > 0) batch_[count++] = {static_cast<char*>(pieces_[i].iov_base) + skip, length};
      room -= length;
      skip = 0;
    }
    return {batch_.data(), count};
  }

  /// `moved` bytes more are done; no more than are left.
  void advance(Bytes moved) {
    auto left = static_cast<std::size_t>(moved);
    while (left > 0) {
      const std::size_t step = std::min(pieces_[first_].iov_len - done_in_first_, left);
      done_in_first_ += step;
      left -= step;
      if (done_in_first_ == pieces_[first_].iov_len) {
        ++first_;
        done_in_first_ = 0;
      }
    }
  }

 private:
  std::span<const iovec> pieces_;
  std::size_t batch_limit_;
  std::size_t first_ = 0;          ///< First piece that is not wholly done.
  std::size_t done_in_first_ = 0;  ///< Bytes of it that are.
  std::array<iovec, IOV_MAX> batch_;
};

}  // namespace forebay
