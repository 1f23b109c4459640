#pragma once

#include <array>
#include <atomic>
#include <string>

// For tests: functions that stand in front of the C library's, for all of a program that has
// intercepted_calls.cpp among its sources. A call of the operating system that is chosen fails, or
// kills the process. Nothing is made durable, which takes long and is seen only where power is
// lost.

namespace forebay {

enum class CallKind {
  open,
  make_directory,
  allocate,
  map,
  write,
  read,
  resize,
  sync,
  rename,
  remove
};
inline constexpr std::array all_calls = {
    CallKind::open,   CallKind::make_directory, CallKind::allocate, CallKind::map,
    CallKind::write,  CallKind::read,           CallKind::resize,   CallKind::sync,
    CallKind::rename, CallKind::remove};
const char* to_string(CallKind kind);

/// What becomes of the call.
enum class Fate {
  fails,
  kills,         ///< It is not made.
  kills_within,  ///< Of a write: half of its bytes are written.
};

/// Which call is chosen, and how many there were.
struct Injected {
  std::string place;  ///< A directory: calls count that are on something in it.
  CallKind kind = CallKind::open;
  int nth = 0;
  Fate fate = Fate::fails;
  int os_errno = 0;           ///< With which it fails.
  bool lasting = false;       ///< So do all that follow.
  std::atomic<int> calls{0};  ///< Of that kind in that place.

  bool met() const { return calls > nth; }
};

/// Null: all calls are let through.
extern std::atomic<Injected*> injected;

/// By the signal that cannot be caught.
[[noreturn]] void kill_this_process();

}  // namespace forebay
