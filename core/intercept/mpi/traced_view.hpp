#pragma once

#include <cstdint>
#include <optional>

#include "core/model/data_offsets.hpp"
#include "core/model/divisor.hpp"
#include "core/model/strided_tree.hpp"

namespace forebay {

/// The view of a traced opening: finds first bytes, by any thread. Changed by collective calls
/// alone, which a program must not overlap with others on the file. In the beginning all bytes, one
/// by one.
class TracedView {
 public:
  /// `etype_size` in bytes.
  void set(const TiledTree& tiled, Bytes etype_size);
  /// There is no tree for it.
  void set_unknown() { is_known_ = false; }

  /// The first byte of the file that lies at `position`, in etypes; -1: not known.
  std::int64_t byte_offset(std::int64_t position) const {
    Bytes data = 0, offset = 0;
    if (!is_known_ || position < 0 || __builtin_mul_overflow(position, etype_size_, &data)) {
      return -1;
    }
    if (offsets_) return offsets_->at(data).value_or(-1);
    return __builtin_add_overflow(begin_, data, &offset) ? -1 : offset;
  }

  /// How many etypes `bytes` are; none: not known, or no whole number.
  std::optional<std::int64_t> etypes_in(Bytes bytes) const {
    if (!is_known_ || etype_size_ == 0 || bytes < 0) return {};
    const std::int64_t etypes = etype_.quotient(bytes);
    if (etypes * etype_size_ != bytes) return {};
    return etypes;
  }

 private:
  bool is_known_ = true;
  Bytes etype_size_ = 1;
  Divisor etype_{1};
  Bytes begin_ = 0;                     ///< Without holes: everything from there on.
  std::optional<DataOffsets> offsets_;  ///< Of a view with holes.
};

}  // namespace forebay
