#pragma once

namespace forebay::posix {

// How the end of a process's first thread is noticed: the process goes on without it if that ends
// by pthread_exit(3).

/// From now on, of the calling thread and of those that fork.
void watch_first_threads();
/// In a child: the calling thread is its first.
void watch_first_thread();

}  // namespace forebay::posix
