#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <future>
#include <system_error>
#include <vector>

namespace forebay {

/// Calls `each` with every number below `count`, on up to `threads` threads of which the caller's
/// is one, and returns when all calls have returned; on fewer where no more are to be had. They
/// begin in ascending order. Throws what a call throws, after the others.
template <typename Each>
void side_by_side(std::size_t count, int threads, Each each) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t at = next++; at < count; at = next++) each(at);
  };
  const std::size_t most = std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
  std::vector<std::future<void>> others;
  for (bool more = true; more && others.size() + 1 < most;) {
    try {
      others.push_back(std::async(std::launch::async, work));
    } catch (const std::system_error&) {
      more = false;  // Those that there are do it all.
    }
  }
  work();
  for (std::future<void>& other : others) other.get();
}

}  // namespace forebay
