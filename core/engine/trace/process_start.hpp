#pragma once

#include <sys/utsname.h>

#include <array>
#include <climits>
#include <cstddef>
#include <string_view>

#include "core/model/trace_event.hpp"

namespace forebay::trace {

/// What a process is, as its trace begins with it. Takes no memory from the heap.
class ProcessText {
 public:
  explicit ProcessText(TickSource source);

  const ProcessStart& start() const { return start_; }
  /// Host, executable and working directory, each with a zero byte at its end.
  std::string_view words() const { return {words_.data(), length_}; }

 private:
  void add(std::string_view word);

  ProcessStart start_;
  std::array<char, _UTSNAME_LENGTH + std::size_t{2} * PATH_MAX + 3> words_{};
  std::size_t length_ = 0;
};

}  // namespace forebay::trace
