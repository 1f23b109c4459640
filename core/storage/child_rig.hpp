#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>

// What tests share that try something in a child process.

namespace forebay {

/// What a child says that is not allowed what it needs.
constexpr int may_not = 77;

/// What a child makes of `work`: its exit status, or -1 if a signal ended it.
template <typename Work>
int in_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// In memory that a process shares with those that it forks, zero-filled before.
template <typename T>
class SharedWithChildren {
 public:
  SharedWithChildren()
      : memory_(
            ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    value_ = new (memory_) T();
  }
  ~SharedWithChildren() { ::munmap(memory_, sizeof(T)); }
  SharedWithChildren(const SharedWithChildren&) = delete;
  SharedWithChildren& operator=(const SharedWithChildren&) = delete;

  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  void* const memory_;
  T* value_ = nullptr;
};

/// Mounts a file system of `kind` at `place`, for this process and its children alone, which only
/// root may.
inline bool mount_for_itself(const char* place, const char* kind, const char* options = nullptr) {
  return ::unshare(CLONE_NEWNS) == 0 && ::mount("", "/", "", MS_REC | MS_PRIVATE, "") == 0 &&
         ::mount("", place, kind, 0, options) == 0;
}

}  // namespace forebay
