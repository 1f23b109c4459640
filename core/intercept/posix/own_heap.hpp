#pragma once

namespace forebay::posix {

/// The C++ objects of this library live in a heap of their own: a program's signal handler may read
/// while the program below it allocates, and malloc must not be entered once more then.
///
/// Around a fork, so that the child does not inherit it in the middle of a change. Whoever holds it
/// takes no other lock.
void lock_heap();
void unlock_heap();

}  // namespace forebay::posix
