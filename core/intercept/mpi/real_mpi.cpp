#include "core/intercept/mpi/real_mpi.hpp"

#include <dlfcn.h>

namespace forebay {
namespace {

RealMpi table;

}  // namespace

const RealMpi& real() { return table; }

bool load_real_mpi(void* library) {
  bool complete = true;
#define FOREBAY_REAL(name, result, parameters)                                             \
  table.name = reinterpret_cast<decltype(table.name)>(dlsym(library, "PMPI_File_" #name)); \
  complete = complete && table.name != nullptr;
#include "real_functions.inc"
#undef FOREBAY_REAL
  return complete;
}

}  // namespace forebay
