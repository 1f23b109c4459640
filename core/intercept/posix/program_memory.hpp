#pragma once

#include <cstddef>

namespace forebay::posix {

/// Whether the program's memory from `buffer` on can be written: the kernel answers EFAULT where a
/// copy of ours would end the program. Brings the pages in, as the copy would. Says yes where the
/// kernel cannot tell (before Linux 5.14). Async-signal-safe; errno may change.
bool can_be_written(void* buffer, std::size_t count) noexcept;
/// The same of reading it.
bool can_be_read(const void* buffer, std::size_t count) noexcept;

}  // namespace forebay::posix
