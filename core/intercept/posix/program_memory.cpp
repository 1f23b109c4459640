#include "core/intercept/posix/program_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <limits>

namespace forebay::posix {
namespace {

/// As if the program touched every page of [address, address + count) as `advice` says.
bool populate(std::uintptr_t address, std::size_t count, int advice) noexcept {
  const auto page = static_cast<std::uintptr_t>(::getpagesize());
  const std::uintptr_t begin = address / page * page;
  const std::size_t length = (address - begin + count + page - 1) / page * page;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): rounded down to a page.
  return ::madvise(reinterpret_cast<void*>(begin), length, advice) == 0;
}

bool can_be_touched(const void* buffer, std::size_t count, int advice) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(buffer);
  const std::uintptr_t end = address + count;
  if (end < address || end > std::numeric_limits<std::uintptr_t>::max() / 2) return false;
  if (populate(address, count, advice)) return true;
  // Of our own stack, at least, it must say yes.
  char own = 0;
  return !populate(reinterpret_cast<std::uintptr_t>(&own), sizeof own, advice);
}

}  // namespace

bool can_be_written(void* buffer, std::size_t count) noexcept {
  return can_be_touched(buffer, count, MADV_POPULATE_WRITE);
}

bool can_be_read(const void* buffer, std::size_t count) noexcept {
  return can_be_touched(buffer, count, MADV_POPULATE_READ);
}

}  // namespace forebay::posix
