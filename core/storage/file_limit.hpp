#pragma once

#include <sys/resource.h>

#include "core/model/extent.hpp"

namespace forebay {

/// Whether the process may make a file of `length` bytes (RLIMIT_FSIZE). What goes beyond ends it,
/// by SIGXFSZ (setrlimit(2)), also where files are memory.
inline bool may_make_file(Bytes length) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
         (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= static_cast<rlim_t>(length));
}

}  // namespace forebay
