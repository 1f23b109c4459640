// Files shown in memory. What a program reads there is seen in its page tables.

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdint>

#include "core/intercept/posix/exported.hpp"
#include "core/intercept/posix/managed_files.hpp"
#include "core/intercept/posix/real_calls.hpp"

using namespace forebay::posix;

namespace {

/// Allocators map memory before anything else works, and what looks for the C library's functions
/// may allocate: until these are found the kernel is called.
void* map(void* address, size_t length, int protection, int flags, int fd, off_t offset) noexcept {
  if (detail::calls_are_found) {
    return real().mmap(address, length, protection, flags, fd, offset);
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): what the kernel returns.
  return reinterpret_cast<void*>(
      ::syscall(SYS_mmap, address, length, protection, flags, fd, offset));
}

int unmap(void* address, size_t length) noexcept {
  if (detail::calls_are_found) return real().munmap(address, length);
  return static_cast<int>(::syscall(SYS_munmap, address, length));
}

int protect_pages(void* address, size_t length, int protection) noexcept {
  if (detail::calls_are_found) return real().mprotect(address, length, protection);
  return static_cast<int>(::syscall(SYS_mprotect, address, length, protection));
}

/// Sanitizers make such calls before anything of theirs can be called, as the code of other files
/// does then: it is asked here whether there is anything to do.
void no_longer_shown(void* address, size_t length) noexcept {
  if (detail::has_mappings.load(std::memory_order_relaxed)) unmapped(address, length);
}

/// Pages that are all there from the beginning do not tell what was read.
constexpr int filled_at_once = MAP_POPULATE | MAP_LOCKED;

}  // namespace

extern "C" {

FOREBAY_EXPORTED void* mmap(void* address, size_t length, int protection, int flags, int fd,
                            off_t offset) {
  const bool is_given = (flags & MAP_FIXED) != 0;
  if (is_given) no_longer_shown(address, length);
  void* place = map(address, length, protection, flags, fd, offset);
  if (place == MAP_FAILED) return place;
  if (!is_given) no_longer_shown(place, length);  // What was there is gone, whoever unmapped it.
  if (listed(fd) != nullptr && protection == PROT_READ && (flags & filled_at_once) == 0) {
    mapped(fd, place, length, offset);
  }
  return place;
}

FOREBAY_EXPORTED void* mmap64(void* address, size_t length, int protection, int flags, int fd,
                              off64_t offset) FOREBAY_SAME_AS(mmap);

FOREBAY_EXPORTED int munmap(void* address, size_t length) {
  no_longer_shown(address, length);
  return unmap(address, length);
}

FOREBAY_EXPORTED void* mremap(void* address, size_t old_length, size_t new_length, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  // With MREMAP_DONTUNMAP alone it is a hint.
  const bool is_given = (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0;
  void* wanted = is_given ? va_arg(rest, void*) : nullptr;
  va_end(rest);
  no_longer_shown(address, old_length);
  if ((flags & MREMAP_FIXED) != 0) no_longer_shown(wanted, new_length);
  void* place = real().mremap(address, old_length, new_length, flags, wanted);
  if (place != MAP_FAILED) no_longer_shown(place, new_length);
  return place;
}

FOREBAY_EXPORTED int mprotect(void* address, size_t length, int protection) {
  if ((protection & PROT_WRITE) != 0) no_longer_shown(address, length);
  return protect_pages(address, length, protection);
}

FOREBAY_EXPORTED int pkey_mprotect(void* address, size_t length, int protection, int key) {
  if ((protection & PROT_WRITE) != 0) no_longer_shown(address, length);
  if (key == -1) return protect_pages(address, length, protection);
  return static_cast<int>(::syscall(SYS_pkey_mprotect, address, length, protection, key));
}

}  // extern "C"
