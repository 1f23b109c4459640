#include "core/intercept/mpi/traced_call.hpp"

#include <climits>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "core/intercept/mpi/info_pairs.hpp"
#include "core/intercept/mpi/open_close.hpp"
#include "core/intercept/mpi/open_file.hpp"
#include "core/intercept/mpi/real_mpi.hpp"
#include "core/model/trace_event.hpp"

namespace forebay {
namespace {

/// The program's individual file pointer, in etypes of its view, at the beginning of a call by it.
std::int64_t position_of(TracedFile& file, MPI_File handle) {
  const std::int64_t known = file.position.begin();
  if (known != TracedPosition::unknown) return known;
  if (file.own != nullptr && file.own->shadow != nullptr && !file.own->shadow->passes_through()) {
    ShadowFile& shadow = *file.own->shadow;
    const std::lock_guard lock(shadow.position_mutex);
    return shadow.view.offset_of(shadow.position);
  }
  const Inside inside;
  MPI_Offset position = -1;
  return real().get_position(handle, &position) == MPI_SUCCESS ? position : -1;
}

/// Bytes that a status tells of a call that was to move `asked`, or a number not known, -1. -1:
/// none.
std::int64_t bytes_in(const MPI_Status* status, Bytes asked) {
  if (status == nullptr || status == MPI_STATUS_IGNORE) return -1;
#ifdef OMPI_MAJOR_VERSION
  static_cast<void>(asked);
  return static_cast<std::int64_t>(status->_ucount);  // What it answers for MPI_BYTE.
#else
  // The shortest way to ask, where the answer is an int for sure.
  if (asked >= 0 && asked <= INT_MAX) {
    int few = MPI_UNDEFINED;
    if (PMPI_Get_count(status, MPI_BYTE, &few) == MPI_SUCCESS && few >= 0) return few;
  }
  MPI_Count bytes = -1;
  if (PMPI_Get_elements_x(status, MPI_BYTE, &bytes) != MPI_SUCCESS) return -1;
  return bytes == MPI_UNDEFINED ? -1 : bytes;
#endif
}

int error_class_of(int code) {
  int error_class = code;
  if (code != MPI_SUCCESS) PMPI_Error_class(code, &error_class);
  return error_class;
}

/// Reading the clock is much of what a call costs: beyond a thread's first calls, which cost most,
/// one in so many is weighed, for all of them: a number that loops seldom have.
constexpr unsigned weighed_one_in = 17;

/// How many calls the cost of the one that begins stands for.
unsigned next_weight() {
  static constinit thread_local unsigned calls = 0;
  const unsigned number = calls++;
  if (number < weighed_one_in) return 1;
  return number % weighed_one_in == 0 ? weighed_one_in : 0;
}

void define_hints(TraceDefinition kind, const TracedFile& file, const HintPairs& pairs) {
  const trace::Door& door = *tracing();
  std::string text;
  for (const auto& [key, value] : pairs) {
    text += key;
    text += '\0';
    text += value;
    text += '\0';
  }
  const std::uint64_t now = door.ticks();
  door.define(kind, static_cast<std::uint64_t>(file.number), bytes_of(now),
              bytes_of(std::string_view(text)));
}

}  // namespace

TracedMpiCall::TracedMpiCall(const TracedArguments& told)
    : door_(*tracing()),
      told_(told),
      weight_(next_weight()),
      entered_(weight_ > 0 ? door_.ticks() : 0),
      file_(traced_files().find(told.file)),
      position_(told.offset),
      depth_(door_.mpi_depth()) {
  if (told.pointer != TracedPointer::none && file_ != nullptr) {
    if (is_by_individual()) position_ = position_of(*file_, told.file);
    byte_offset_ = file_->view.byte_offset(position_);
    type_ = traced_type(told.datatype);
  } else if (moves_pointer()) {
    file_->position.begin();
  }
  ++depth_;
  begun_ = door_.ticks();
}

void TracedMpiCall::finish(int code, std::int64_t opening) {
  const std::uint64_t ended = door_.ticks();
  --depth_;
  const auto number = static_cast<std::int32_t>(opening);
  const std::int64_t moved = bytes_moved(code);
  if (moves_pointer()) file_->position.end(position_after(code, moved));
  const TraceEvent call{.begin = begun_,
                        .duration = ended - begun_,
                        .offset = position_,
                        .length = told_.count,
                        .result = moved,
                        .descriptor = number,
                        .call = static_cast<std::uint16_t>(mpi_calls_from + told_.call),
                        .within = 0,
                        .argument = 0};
  door_.add(call, {.begin = begun_,
                   .duration = cost(ended),
                   .offset = byte_offset_,
                   .length = static_cast<std::int64_t>(type_.key),
                   .result = error_class_of(code),
                   .descriptor = number,
                   .call = static_cast<std::uint16_t>(TracedCall::mpi_details),
                   .within = 0,
                   .argument = 0});
}

/// Ticks, of the calls that it stands for.
std::uint64_t TracedMpiCall::cost(std::uint64_t ended) const {
  return weight_ > 0 ? weight_ * ((begun_ - entered_) + (door_.ticks() - ended)) : 0;
}

/// -1: not known.
Bytes TracedMpiCall::bytes_asked() const {
  Bytes asked = -1;
  if (type_.key == 0 || __builtin_mul_overflow(type_.size, std::int64_t{told_.count}, &asked)) {
    return -1;
  }
  return asked;
}

/// -1: none, or not known.
std::int64_t TracedMpiCall::bytes_moved(int code) const {
  if (code != MPI_SUCCESS) return -1;
  const Bytes asked = bytes_asked();
  return told_.writes && told_.status == MPI_STATUS_IGNORE ? asked : bytes_in(told_.status, asked);
}

/// Where a call has left the individual pointer: behind what it was asked for, if it moved all of
/// that. What MPIs do after less is not the same.
std::int64_t TracedMpiCall::position_after(int code, std::int64_t moved) const {
  if (told_.sets_pointer)
    return code == MPI_SUCCESS ? told_.pointer_after : TracedPosition::unknown;
  const Bytes asked = bytes_asked();
  if (moved < 0 || position_ < 0 || asked != moved) return TracedPosition::unknown;
  const auto etypes = file_->view.etypes_in(asked);
  return etypes ? position_ + *etypes : TracedPosition::unknown;
}

void trace_view(TracedFile& file, MPI_Offset displacement, MPI_Datatype etype,
                MPI_Datatype filetype, const char* representation) {
  const trace::Door& door = *tracing();
  const MpiView view{door.ticks(), displacement, traced_type(etype).key, traced_type(filetype).key};
  std::string text = representation;
  text += '\0';
  door.define(TraceDefinition::mpi_view, static_cast<std::uint64_t>(file.number), bytes_of(view),
              bytes_of(std::string_view(text)));
  const auto flat = file.datatypes->read(filetype);
  if (!flat || displacement < 0) return file.view.set_unknown();
  MPI_Count etype_size = 0;
  PMPI_Type_size_x(etype, &etype_size);
  if (etype_size < 0) return file.view.set_unknown();  // MPI_UNDEFINED
  file.view.set((*flat)->tiled(displacement), etype_size);
}

void trace_hints(const TracedFile& file, MPI_File handle, MPI_Info asked) {
  const Inside inside;
  const HintPairs given = pairs_of(asked);
  if (!given.empty()) define_hints(TraceDefinition::mpi_hints_asked, file, given);
  HintPairs pairs;
  if (file.own != nullptr && file.own->shadow != nullptr) {
    pairs = to_pairs(file.own->shadow->engine->hints_in_force());
  } else {
    MPI_Info info = MPI_INFO_NULL;
    if (real().get_info(handle, &info) != MPI_SUCCESS) return;
    pairs = pairs_of(info);
    if (info != MPI_INFO_NULL) PMPI_Info_free(&info);
  }
  define_hints(TraceDefinition::mpi_hints, file, pairs);
}

}  // namespace forebay
