#pragma once

#include <sys/resource.h>

namespace forebay {

/// How often this thread had to wait for something.
inline long waits_of_thread() {
  rusage usage = {};
  return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

/// Whether this thread may have waited since that was `before`: true also where nobody counts, or
/// it never had to. Who lost its processor did not wait.
inline bool may_have_waited(long before) { return before == 0 || waits_of_thread() != before; }

}  // namespace forebay
