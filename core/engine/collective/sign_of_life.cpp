#include "core/engine/collective/sign_of_life.hpp"

#include <cerrno>

namespace forebay {

void SignOfLife::prepare() {
  pthread_mutexattr_t kind;
  ::pthread_mutexattr_init(&kind);
  ::pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutex_init(&mutex_, &kind);
  ::pthread_mutexattr_destroy(&kind);
}

void SignOfLife::hold() {
  ::pthread_mutex_lock(&mutex_);
  is_held_ = true;
}

void SignOfLife::let_go() {
  is_held_ = false;
  ::pthread_mutex_unlock(&mutex_);
}

bool SignOfLife::is_lost() {
  if (is_lost_) return true;
  // Who looks is not to have what is not held, not for a moment: it may be killed then.
  if (!is_held_) return false;
  const int error = ::pthread_mutex_trylock(&mutex_);
  // Not by the mutex alone: glibc keeps one locked that it says is not recoverable.
  if (error == EOWNERDEAD || error == ENOTRECOVERABLE) is_lost_ = true;
  if (error == 0 || error == EOWNERDEAD) ::pthread_mutex_unlock(&mutex_);
  return is_lost_;
}

}  // namespace forebay
