#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "core/model/direct_io.hpp"
#include "core/model/error.hpp"
#include "core/model/extent.hpp"

namespace forebay {

/// Memory for what was fetched: ranges of it, aligned for O_DIRECT, that are taken and given back.
/// Its pages are large where the kernel has such. Not thread-safe.
class FetchBuffer {
 public:
  /// Error: no_memory.
  static Result<FetchBuffer> make(Bytes bytes);

  /// Where a range of at least `length` bytes begins, as far in front as possible, so that memory
  /// is not touched before it is needed; none: no gap is long enough.
  std::optional<Bytes> take(Bytes length);
  /// Whether take() would find one.
  bool has(Bytes length) const { return place_for(length).has_value(); }
  /// Of a range that begins at `place`.
  void give_back(Bytes place);
  std::span<std::byte> at(Bytes place, Bytes length) const;

  Bytes bytes() const { return bytes_; }
  /// The most that was ever taken at once.
  Bytes peak_bytes() const { return peak_; }

 private:
  struct Unmap {
    Bytes bytes;
    void operator()(std::byte* memory) const;
  };

  FetchBuffer(std::unique_ptr<std::byte, Unmap> memory, std::byte* begin, Bytes bytes);

  std::optional<Bytes> place_for(Bytes length) const;

  std::unique_ptr<std::byte, Unmap> memory_;
  std::byte* begin_;  ///< Inside of it, where a large page does.
  Bytes bytes_;
  std::map<Bytes, Bytes> taken_;  ///< Lengths by place.
  Bytes held_ = 0;
  Bytes peak_ = 0;
};

}  // namespace forebay
