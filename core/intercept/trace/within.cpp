#include "core/intercept/trace/within.hpp"

namespace forebay::trace::detail {

constinit thread_local int mpi_depth = 0;
constinit std::uintptr_t back_end_begin = 0;
constinit std::uintptr_t back_end_end = 0;

}  // namespace forebay::trace::detail
