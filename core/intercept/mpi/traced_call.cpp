#include "core/intercept/mpi/traced_call.hpp"

#include <new>
#include <string>

#include "core/intercept/mpi/info_pairs.hpp"
#include "core/intercept/mpi/open_close.hpp"
#include "core/intercept/mpi/open_file.hpp"
#include "core/intercept/mpi/real_mpi.hpp"
#include "core/intercept/mpi/traced_type.hpp"
#include "core/model/trace_event.hpp"

namespace forebay {
namespace {

/// The program's individual file pointer, in etypes of its view.
std::int64_t position_of(MPI_File handle) {
  const Inside inside;
  const auto file = open_files().find(handle);
  if (file != nullptr && file->shadow != nullptr && !file->shadow->passes_through()) {
    ShadowFile& shadow = *file->shadow;
    const std::lock_guard lock(shadow.position_mutex);
    return shadow.view.offset_of(shadow.position);
  }
  MPI_Offset position = -1;
  return real().get_position(handle, &position) == MPI_SUCCESS ? position : -1;
}

std::int64_t byte_offset_of(const TracedFile& file, std::int64_t position) {
  const auto data = file.view.position_of(position);
  if (!file.is_view_known || position < 0 || !data || !file.view.reaches(*data, 1)) return -1;
  const TiledTree& tiled = file.view.tiled();
  if (tiled.tree.dense() && tiled.tree.size() == tiled.extent) {
    return tiled.displacement + tiled.tree.lower() + *data;
  }
  return file.view.byte_offset(*data);
}

/// Bytes that a status tells; -1: none.
std::int64_t bytes_in(const MPI_Status* status) {
  MPI_Count bytes = -1;
  if (status == nullptr || status == MPI_STATUS_IGNORE) return -1;
  if (PMPI_Get_elements_x(status, MPI_BYTE, &bytes) != MPI_SUCCESS) return -1;
  return bytes == MPI_UNDEFINED ? -1 : bytes;
}

int error_class_of(int code) {
  int error_class = code;
  if (code != MPI_SUCCESS) PMPI_Error_class(code, &error_class);
  return error_class;
}

}  // namespace

TracedMpiCall::TracedMpiCall(const TracedArguments& told)
    : door_(*tracing()),
      told_(told),
      entered_(door_.ticks()),
      file_(traced_files().find(told.file)),
      position_(told.offset) {
  if (told.pointer != TracedPointer::none && file_ != nullptr) {
    if (told.pointer == TracedPointer::individual) position_ = position_of(told.file);
    byte_offset_ = byte_offset_of(*file_, position_);
    type_ = traced_type(told.datatype);
  }
  door_.begin_mpi();
  begun_ = door_.ticks();
}

void TracedMpiCall::finish(int code, std::int64_t opening) {
  const std::uint64_t ended = door_.ticks();
  door_.end_mpi();
  const auto number = static_cast<std::int32_t>(opening);
  const std::int64_t moved = code == MPI_SUCCESS ? bytes_in(told_.status) : -1;
  door_.add({.begin = begun_,
             .duration = ended - begun_,
             .offset = position_,
             .length = told_.count,
             .result = moved,
             .descriptor = number,
             .call = static_cast<std::uint16_t>(mpi_calls_from + told_.call),
             .within = 0,
             .argument = 0});
  door_.add({.begin = begun_,
             .duration = (begun_ - entered_) + (door_.ticks() - ended),
             .offset = byte_offset_,
             .length = static_cast<std::int64_t>(type_),
             .result = error_class_of(code),
             .descriptor = number,
             .call = static_cast<std::uint16_t>(TracedCall::mpi_details),
             .within = 0,
             .argument = 0});
}

void trace_view(TracedFile& file, MPI_Offset displacement, MPI_Datatype etype,
                MPI_Datatype filetype, const char* representation) {
  const trace::Door& door = *tracing();
  const MpiView view{door.ticks(), displacement, traced_type(etype), traced_type(filetype)};
  std::string text = representation;
  text += '\0';
  door.define(TraceDefinition::mpi_view, static_cast<std::uint64_t>(file.number), bytes_of(view),
              bytes_of(std::string_view(text)));
  const auto flat = file.datatypes->read(filetype);
  file.is_view_known = flat.has_value() && displacement >= 0;
  if (file.is_view_known) {
    file.view =
        FileView(displacement, etype, filetype, representation, (*flat)->tiled(displacement));
  }
}

void trace_hints(const TracedFile& file, MPI_File handle) {
  const trace::Door& door = *tracing();
  const Inside inside;
  HintPairs pairs;
  const auto own = open_files().find(handle);
  if (own != nullptr && own->shadow != nullptr) {
    pairs = to_pairs(own->shadow->engine->hints_in_force());
  } else {
    MPI_Info info = MPI_INFO_NULL;
    if (real().get_info(handle, &info) != MPI_SUCCESS) return;
    pairs = pairs_of(info);
    if (info != MPI_INFO_NULL) PMPI_Info_free(&info);
  }
  std::string text;
  for (const auto& [key, value] : pairs) {
    text += key;
    text += '\0';
    text += value;
    text += '\0';
  }
  const std::uint64_t now = door.ticks();
  door.define(TraceDefinition::mpi_hints, static_cast<std::uint64_t>(file.number), bytes_of(now),
              bytes_of(std::string_view(text)));
}

}  // namespace forebay
