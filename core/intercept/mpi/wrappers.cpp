// The functions that stand behind the trampolines: generated wrappers (generate_bindings.py), each
// a line that says which class of call it is, what the MPI would do and what Forebay does instead.
#include <cstring>

#include "core/intercept/backend.h"
#include "core/intercept/mpi/interception.hpp"
#include "core/intercept/mpi/open_close.hpp"
#include "core/intercept/mpi/own_calls.hpp"
#include "core/intercept/mpi/real_mpi.hpp"
#include "core/intercept/mpi/traced_call.hpp"
#include "core/intercept/mpi/tracing.hpp"

namespace forebay {
namespace {

/// A name of MPI's and the function that serves it.
struct Binding {
  const char* name;
  void (*function)();
};

#include "wrappers.inc"

/// By the numbers that the wrappers have them under.
const char* const traced_names[] = {
#include "traced_names.inc"
};

}  // namespace

extern "C" __attribute__((visibility("default"))) int forebay_backend_bind(const char* const* names,
                                                                           void** slots, int count,
                                                                           void* mpi) {
  if (!load_real_mpi(mpi)) return -1;
  find_tracing(traced_names);
  for (int i = 0; i < count; ++i) {
    for (const Binding& binding : bindings) {
      if (std::strcmp(binding.name, names[i]) == 0) {
        slots[i] = reinterpret_cast<void*>(binding.function);
      }
    }
  }
  return 0;
}

static_assert(std::is_same_v<decltype(&forebay_backend_bind), forebay_backend_bind_function*>);

}  // namespace forebay
