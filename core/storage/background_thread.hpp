#pragma once

#include <cerrno>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "core/model/error.hpp"
#include "core/storage/blocked_signals.hpp"

namespace forebay {

/// A thread in which all signals are blocked, so that a program's handlers run on its own threads.
/// Throws std::system_error where none is to be had; the caller's signals are as before, too.
template <typename Work>
std::thread background_thread(Work work) {
  const BlockedSignals blocked;  // Threads inherit the mask of their maker.
  return std::thread(std::move(work));
}

/// The same, and nothing is thrown. Error: that of pthread_create(3) where none is to be had.
template <typename Work>
Result<std::thread> try_background_thread(Work work) {
  try {
    return background_thread(std::move(work));
  } catch (const std::system_error& failure) {
    return fail(failure.code().value(), "start a thread");
  } catch (const std::bad_alloc&) {
    return fail(ENOMEM, "start a thread");
  }
}

}  // namespace forebay
