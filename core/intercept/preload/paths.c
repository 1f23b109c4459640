// Calls that reach a file by its name, where a file that the program has closed may still be on its
// way (the hint forebay_cache_flush=deferred): they wait for it. As long as there is no such file,
// which is always in most processes, a call goes by one jump to the C library's function, or to
// that of whatever is loaded between.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include "core/intercept/path_waits.h"

/// Of one path: the arguments that say it. -1: there is none.
struct PathArguments {
  int path;
  int directory;
};
static const struct {
  const char* name;
  struct PathArguments first;
  struct PathArguments second;
  int returns_pointer;
} calls[] = {
#define pointer 1
#define number 0
#define FOREBAY_PATH(name, path, directory, path2, directory2, failure) \
  {#name, {path, directory}, {path2, directory2}, failure},
#include "core/intercept/preload/path_names.inc"
#undef FOREBAY_PATH
#undef pointer
#undef number
};
enum { call_count = sizeof calls / sizeof calls[0] };

/// The tables of the trampolines (trampolines_*.S): where a call jumps, and the stub that asks
/// here.
extern void* forebay_path_slots[call_count];
extern void* const forebay_path_stubs[call_count];

static void* targets[call_count];
static forebay_path_waiter* waiter;
static const char* own_from;
static const char* own_to;
static pthread_once_t children_are_told = PTHREAD_ONCE_INIT;
static __thread int is_waiting __attribute__((tls_model("initial-exec")));

static long fail_number(void) { return -1; }
static void* fail_pointer(void) { return NULL; }
static void* failure_of(int index) {
  return calls[index].returns_pointer ? (void*)fail_pointer : (void*)fail_number;
}

/// A child has none of the threads that it would wait for.
static void in_child(void) { __atomic_store_n(&waiter, NULL, __ATOMIC_RELEASE); }
static void tell_children(void) { pthread_atfork(NULL, NULL, in_child); }

__attribute__((visibility("default"))) void forebay_wait_at_paths(forebay_path_waiter* function,
                                                                  const void* from,
                                                                  const void* to) {
  pthread_once(&children_are_told, tell_children);
  own_from = from;
  own_to = to;
  __atomic_store_n(&waiter, function, __ATOMIC_SEQ_CST);
  if (function == NULL) return;  // The slots are set right call by call.
  for (int i = 0; i < call_count; ++i) {
    __atomic_store_n(&forebay_path_slots[i], forebay_path_stubs[i], __ATOMIC_SEQ_CST);
  }
}

/// What is behind us in the order of loading. Never null.
static void* real(int index) {
  void* target = __atomic_load_n(&targets[index], __ATOMIC_ACQUIRE);
  if (target == NULL) {
    target = dlsym(RTLD_NEXT, calls[index].name);
    // This C library has no such call: nobody who was linked with it comes here.
    if (target == NULL) target = failure_of(index);
    __atomic_store_n(&targets[index], target, __ATOMIC_RELEASE);
  }
  return target;
}

/// When the library is loaded: a child of a program with threads may not be able to ask the loader.
__attribute__((constructor)) static void find_all(void) {
  for (int i = 0; i < call_count; ++i) {
    __atomic_store_n(&forebay_path_slots[i], real(i), __ATOMIC_RELEASE);
  }
}

static int wait_at(forebay_path_waiter* wait, struct PathArguments where, void* const* arguments,
                   int moves) {
  if (where.path < 0) return 0;
  const char* path = arguments[where.path];
  if (path == NULL || path[0] == '\0') return 0;
  const int directory = where.directory < 0 ? AT_FDCWD : (int)(intptr_t)arguments[where.directory];
  if (path[0] == '/' || directory == AT_FDCWD) return wait(path, moves);
  char from_directory[PATH_MAX];
  const int length =
      snprintf(from_directory, sizeof from_directory, "/proc/self/fd/%d/%s", directory, path);
  return length < (int)sizeof from_directory ? wait(from_directory, moves) : 0;
}

/// Called by the trampolines with the first six arguments. Returns where to jump.
__attribute__((visibility("hidden"))) void* forebay_before_path(int index, void* const* arguments,
                                                                const char* caller) {
  void* const target = real(index);
  forebay_path_waiter* wait = __atomic_load_n(&waiter, __ATOMIC_ACQUIRE);
  if (wait == NULL) {
    __atomic_store_n(&forebay_path_slots[index], target, __ATOMIC_SEQ_CST);
    // Somebody may have begun to wait since.
    if (__atomic_load_n(&waiter, __ATOMIC_SEQ_CST) != NULL) {
      __atomic_store_n(&forebay_path_slots[index], forebay_path_stubs[index], __ATOMIC_SEQ_CST);
    }
    return target;
  }
  if (is_waiting || (caller >= own_from && caller < own_to)) return target;
  const int before = errno;
  is_waiting = 1;
  const int moves = calls[index].second.path >= 0;  // Those of two paths do.
  int error = wait_at(wait, calls[index].first, arguments, moves);
  if (error == 0) error = wait_at(wait, calls[index].second, arguments, moves);
  is_waiting = 0;
  errno = error == 0 ? before : error;
  return error == 0 ? target : failure_of(index);
}
