#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

#include "core/model/extent.hpp"

namespace forebay {

/// Memory that a device may be written from (O_DIRECT): it begins at a page, and where it is as
/// long as a large page at such a one, which it asks for: a device gets that in one piece. It is
/// used again and again, for a new page costs more than what is copied to it. Not thread-safe.
class AlignedMemory {
 public:
  /// `length` bytes, > 0; what was in them before is lost. Empty: there is no memory.
  std::span<std::byte> take(Bytes length);

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  std::unique_ptr<std::byte, Free> memory_;
  Bytes length_ = 0;
};

}  // namespace forebay
