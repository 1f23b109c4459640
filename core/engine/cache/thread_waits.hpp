#pragma once

#include <sys/resource.h>

namespace forebay {

/// How often this thread had to wait for something.
inline long waits_of_thread() {
  rusage usage = {};
  return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

}  // namespace forebay
