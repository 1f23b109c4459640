// The beginning and the end of an opening, which a trace tells more of than of other calls.
#include <atomic>
#include <memory>
#include <new>
#include <string>

#include "core/intercept/mpi/exchange_cache.hpp"
#include "core/intercept/mpi/file_name.hpp"
#include "core/intercept/mpi/file_record.hpp"
#include "core/intercept/mpi/open_close.hpp"
#include "core/intercept/mpi/open_file.hpp"
#include "core/intercept/mpi/traced_call.hpp"
#include "core/model/trace_event.hpp"

namespace forebay {
namespace {

std::string mode_text(int amode) {
  std::string text;
  for (const std::string& name : amode_names(amode)) text += (text.empty() ? "" : "|") + name;
  return text;
}

/// Says what was opened under `number`.
void trace_opening(std::int64_t number, MPI_Comm comm, const char* filename, int amode, int code,
                   MPI_File handle) {
  const trace::Door& door = *tracing();
  MpiOpening opening;
  opening.ticks = door.ticks();
  PMPI_Comm_rank(comm, &opening.rank);
  PMPI_Comm_size(comm, &opening.ranks);
  const auto own = code == MPI_SUCCESS ? open_files().find(handle) : nullptr;
  opening.is_engine = own != nullptr && own->shadow != nullptr ? 1 : 0;
  if (code != MPI_SUCCESS) PMPI_Error_class(code, &opening.error_class);
  const auto path = code == MPI_SUCCESS ? opened_path(filename) : std::nullopt;
  std::string text = mode_text(amode);
  text += '\0';
  text += path.value_or(declared_path(filename));
  text += '\0';
  door.define(TraceDefinition::mpi_opening, static_cast<std::uint64_t>(number), bytes_of(opening),
              bytes_of(std::string_view(text)));
}

int open_traced(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh) {
  static std::atomic<std::int64_t> openings{0};
  static const int call = call_number("MPI_File_open");
  trace_process();
  const std::int64_t number = openings++;
  const TracedArguments told{.call = call};
  TracedMpiCall traced_call(told);
  const int code = intercepted_open(comm, filename, amode, info, fh);
  traced_call.finish(code, number);
  const MPI_File handle = code == MPI_SUCCESS ? *fh : MPI_FILE_NULL;
  trace_opening(number, comm, filename, amode, code, handle);
  if (code != MPI_SUCCESS) return code;
  auto file = std::make_unique<TracedFile>(threads_call_at_once());
  file->number = number;
  file->datatypes = datatype_reader();
  file->own = open_files().find(handle);
  trace_hints(*file, handle, info);
  traced_files().add(handle, std::move(file));
  return code;
}

}  // namespace

int wrapped_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info,
                 MPI_File* fh) noexcept {
  if (!is_call_traced() || filename == nullptr || fh == nullptr) {
    return intercepted_open(comm, filename, amode, info, fh);
  }
  try {
    return open_traced(comm, filename, amode, info, fh);
  } catch (const std::bad_alloc&) {
    return MPI_ERR_NO_MEM;
  }
}

int wrapped_close(MPI_File* fh) noexcept {
  if (!is_call_traced() || fh == nullptr) return intercepted_close(fh);
  static const int call = call_number("MPI_File_close");
  const TracedArguments told{.call = call, .file = *fh};
  TracedMpiCall traced_call(told);
  // Another opening may get the handle before this returns.
  const auto file = traced_files().remove(*fh);
  if (file != nullptr) file->own.reset();
  const int code = intercepted_close(fh);
  traced_call.finish(code);
  return code;
}

}  // namespace forebay
