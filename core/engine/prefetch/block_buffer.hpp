#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"

namespace forebay {

/// Memory for what was fetched: a fixed number of blocks of one size, aligned for O_DIRECT, that
/// are taken and given back. Pages are touched as blocks are used for the first time. Not
/// thread-safe.
class BlockBuffer {
 public:
  /// As many blocks of `block` bytes, a multiple of direct_alignment, as fit `bytes`.
  /// Error: no_memory.
  static Result<BlockBuffer> make(Bytes bytes, Bytes block);

  Bytes block() const { return block_; }
  int blocks() const { return blocks_; }

  /// The lowest free one, so that memory is not touched before it is needed; none if all are taken.
  std::optional<int> take();
  void give_back(int index);
  std::span<std::byte> operator[](int index) const;

  /// The most that were ever taken at once, in bytes.
  Bytes peak_bytes() const { return peak_ * block_; }

 private:
  struct Unmap {
    Bytes bytes;
    void operator()(std::byte* memory) const;
  };

  BlockBuffer(std::unique_ptr<std::byte, Unmap> memory, Bytes block, int blocks);

  std::unique_ptr<std::byte, Unmap> memory_;
  Bytes block_;
  int blocks_;
  int peak_ = 0;
  int taken_ = 0;
  std::vector<bool> used_;
};

}  // namespace forebay
