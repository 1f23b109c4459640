#pragma once

#include <cerrno>
#include <type_traits>

#include "core/intercept/posix/endings.hpp"

namespace forebay::posix {

/// What `call` gives, which makes a descriptor: once more if the process may have no more of them
/// (EMFILE) and some are ours, since a program opens as many files as its limit allows.
template <typename Call>
auto with_all_descriptors(Call call) {
  const auto result = call();
  bool has_failed = false;
  if constexpr (std::is_pointer_v<decltype(call())>) {
    has_failed = result == nullptr;
  } else {
    has_failed = result < 0;
  }
  return has_failed && errno == EMFILE && give_way_to_more() ? call() : result;
}

}  // namespace forebay::posix
