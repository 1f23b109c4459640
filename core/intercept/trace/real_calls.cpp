#include "core/intercept/trace/real_calls.hpp"

#include <dlfcn.h>

namespace forebay::trace::detail {

RealCalls found_calls{};
bool calls_are_found = false;

namespace {

/// Before any other code of ours, and before the program's.
[[gnu::constructor(101)]] void find_early() { find_calls(); }

}  // namespace

void find_calls() {
#define FOREBAY_REAL_CALL(name, result, parameters) \
  found_calls.name = reinterpret_cast<decltype(found_calls.name)>(::dlsym(RTLD_NEXT, #name));
  FOREBAY_TRACE_REAL(FOREBAY_REAL_CALL)
#undef FOREBAY_REAL_CALL
  calls_are_found = true;
}

}  // namespace forebay::trace::detail
