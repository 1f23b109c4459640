#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/model/extent.hpp"

namespace forebay {

/// What a program read of a file, in its order. A read that begins where its predecessor ended is
/// one extent with it, and one of bytes that its predecessor had is none.
class ReadTrace {
 public:
  /// Extents beyond are counted, not kept: 16 MiB of memory.
  static constexpr std::size_t most_extents = 1 << 20;

  void add(Extent read) {
    if (read.empty()) return;
    ++reads_;
    bytes_ += read.length;
    if (!extents_.empty()) {
      Extent& last = extents_.back();
      if (read.offset >= last.offset && read.offset <= last.end()) {
        last = hull(last, read);
        return;
      }
    }
    if (extents_.size() < most_extents) {
      extents_.push_back(read);
    } else {
      ++left_out_;
    }
  }

  const std::vector<Extent>& extents() const { return extents_; }
  std::int64_t reads() const { return reads_; }
  Bytes bytes() const { return bytes_; }               ///< Of all reads, those read twice too.
  std::int64_t left_out() const { return left_out_; }  ///< Reads that are in no extent.

 private:
  std::vector<Extent> extents_;
  std::int64_t reads_ = 0;
  Bytes bytes_ = 0;
  std::int64_t left_out_ = 0;
};

}  // namespace forebay
