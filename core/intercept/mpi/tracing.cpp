#include "core/intercept/mpi/tracing.hpp"

#include <dlfcn.h>
#include <mpi.h>

#include <array>
#include <mutex>
#include <string>

#include "core/intercept/mpi/own_code.hpp"

namespace forebay {

namespace detail {
constinit const trace::Door* door = nullptr;
}  // namespace detail

namespace {

using detail::door;

std::span<const char* const> names;

}  // namespace

void find_tracing(std::span<const char* const> call_names) {
  const auto find = reinterpret_cast<trace::FindDoor*>(::dlsym(RTLD_DEFAULT, trace::door_name));
  if (find == nullptr || find() == nullptr) return;
  door = find();
  names = call_names;
  door->set_back_end(reinterpret_cast<std::uintptr_t>(&__ehdr_start),
                     reinterpret_cast<std::uintptr_t>(&etext));
  for (std::size_t i = 0; i < call_names.size(); ++i) {
    door->define(TraceDefinition::call, mpi_calls_from + i,
                 bytes_of(std::string_view(call_names[i])), {});
  }
}

int call_number(std::string_view name) {
  int number = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (name == names[i]) number = static_cast<int>(i);
  }
  return number;
}

void trace_process() {
  static std::once_flag once;
  std::call_once(once, [] {
    int has_world = 0, rank = 0, ranks = 1;
    PMPI_Initialized(&has_world);
    if (has_world != 0) {
      PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
      PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    }
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
    int length = 0;
    PMPI_Get_library_version(version.data(), &length);
    std::string text = FOREBAY_MPI_NAME;
    text += '\0';
    text += std::string_view(version.data()).substr(0, std::string_view(version.data()).find('\n'));
    text += '\0';
    const MpiProcess process{rank, ranks};
    door->define(TraceDefinition::mpi_process, 0, bytes_of(process),
                 bytes_of(std::string_view(text)));
  });
}

}  // namespace forebay
