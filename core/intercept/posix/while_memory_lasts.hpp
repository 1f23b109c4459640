#pragma once

#include <exception>

namespace forebay::posix {

/// Carries out what the program did not ask for. Where that fails, for want of memory most likely,
/// it ends there, and the program's call goes on as it would without us.
template <typename Work>
void while_memory_lasts(Work&& work) noexcept {
  try {
    work();
  } catch (const std::exception&) {
    return;
  }
}

}  // namespace forebay::posix
