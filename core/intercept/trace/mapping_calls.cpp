// Files shown in memory. What is read and written there makes no call: that one was mapped is told,
// and that memory was synced. Which file that is of is not: where one is mapped is not followed,
// since memory is unmapped, moved and mapped over in many ways that make no call here.

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "core/intercept/posix/exported.hpp"
#include "core/intercept/trace/real_calls.hpp"
#include "core/intercept/trace/traced_call.hpp"

using namespace forebay::trace;
using forebay::TracedCall;

namespace {

/// Allocators map memory before anything else works, and what looks for the C library's functions
/// may allocate: until these are found the kernel is called.
void* map(void* address, size_t length, int protection, int flags, int fd, off_t offset) noexcept {
  if (detail::calls_are_found) {
    return real().mmap64(address, length, protection, flags, fd, offset);
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): what the kernel returns.
  return reinterpret_cast<void*>(
      ::syscall(SYS_mmap, address, length, protection, flags, fd, offset));
}

[[gnu::always_inline]] inline void* traced_map(void* address, size_t length, int protection,
                                               int flags, int fd, off_t offset) noexcept {
  const auto body = [=] { return map(address, length, protection, flags, fd, offset); };
  if ((flags & MAP_ANONYMOUS) != 0 || !is_traced(fd)) return body();
  prepare();
  const std::uint64_t begin = ticks();
  void* const place = body();
  const std::uint64_t end = ticks();
  tell(TracedCall::mmap,
       {fd, offset, static_cast<std::int64_t>(length), static_cast<std::uint8_t>(protection)},
       begin, end, place == MAP_FAILED ? -errno : 0, __builtin_return_address(0));
  return place;
}

}  // namespace

extern "C" {

FOREBAY_EXPORTED void* mmap(void* address, size_t length, int protection, int flags, int fd,
                            off_t offset) noexcept {
  return traced_map(address, length, protection, flags, fd, offset);
}

FOREBAY_EXPORTED void* mmap64(void* address, size_t length, int protection, int flags, int fd,
                              off64_t offset) noexcept FOREBAY_SAME_AS(mmap);

FOREBAY_EXPORTED int msync(void* address, size_t length, int flags) {
  return traced_of_any(
      TracedCall::msync,
      {-1, -1, static_cast<std::int64_t>(length), static_cast<std::uint8_t>(flags)},
      [&] { return real().msync(address, length, flags); });
}

}  // extern "C"
