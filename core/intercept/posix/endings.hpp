#pragma once

namespace forebay::posix {

// How what is read ahead ends before its files are closed.

/// The end of the process's first thread is noticed from now on, by which it may go on without that
/// (pthread_exit(3)): of the calling thread and of those that fork.
void watch_first_threads();
/// In a child: the calling thread is its first.
void watch_first_thread();

/// Before the process ends without its exit handlers: what is open has its records. As a signal
/// handler may call it, too, nothing is waited for that needs the program's heap.
void before_exit();

/// Before another program takes the place of this one, or fails to: nothing that is open is read
/// ahead any more. errno stays.
void before_exec();

/// Before the calling thread may make some system calls no more (seccomp), and may be ended by one
/// that it does not make itself: nothing that is open is read ahead any more, and what it opens is
/// not. False: that is not to be, or was so before. errno stays.
bool before_confinement();
/// It was not to be.
void after_no_confinement();

/// Before what the kernel may refuse to a process of several threads (unshare, setns): none of them
/// is ours then. What is read ahead ends, and begins anew with the next opening, but for good where
/// threads get descriptors of their own. Whether there were any. errno stays.
bool before_unsharing(bool of_descriptors);

/// Before what the kernel refuses where a file is open more than once (F_SETLEASE): if that of
/// `descriptor` may be, by us, what is read ahead ends, and begins anew with the next opening.
/// errno stays.
void before_write_lease(int descriptor);

/// Before the program puts something of its own on the number of a descriptor of ours: what is read
/// ahead ends, and begins anew with the next opening. False: not in this call, from a signal
/// handler; or it belongs to what a file server does not answer.
bool give_way(int descriptor);
/// The program may have no more descriptors (EMFILE): those of ours go. False: it is not for want
/// of them. errno stays.
bool give_way_to_more();

}  // namespace forebay::posix
