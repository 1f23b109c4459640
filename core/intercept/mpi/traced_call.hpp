#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "core/intercept/mpi/interception.hpp"
#include "core/intercept/mpi/traced_files.hpp"
#include "core/intercept/mpi/traced_type.hpp"
#include "core/intercept/mpi/tracing.hpp"

namespace forebay {

/// By which file pointer a call moves data, if it moves any.
enum class TracedPointer { none, explicit_offset, individual, shared };

/// What a call says of itself. Members that it does not have stay as they are.
struct TracedArguments {
  int call = 0;  ///< Its place in traced_names.inc.
  MPI_File file = MPI_FILE_NULL;
  TracedPointer pointer = TracedPointer::none;
  MPI_Offset offset = -1;
  MPI_Count count = 0;
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
  const MPI_Status* status = nullptr;
  bool writes = false;  ///< Where there is no status, all that it was asked to, or it fails.
  bool sets_pointer = false;
  std::int64_t pointer_after = TracedPosition::unknown;  ///< Of one that sets it: to where, etypes.
};

/// A call of MPI-IO in a traced process, from its beginning on.
class TracedMpiCall {
 public:
  explicit TracedMpiCall(const TracedArguments& told);
  TracedMpiCall(const TracedMpiCall&) = delete;
  TracedMpiCall& operator=(const TracedMpiCall&) = delete;

  /// It has returned `code`.
  void finish(int code) { finish(code, file_ == nullptr ? -1 : file_->number); }
  /// The same, of the opening of this number.
  void finish(int code, std::int64_t opening);

  /// That it is a call on; null: there is none.
  TracedFile* file() { return file_; }

 private:
  bool is_by_individual() const {
    return file_ != nullptr && told_.pointer == TracedPointer::individual;
  }
  bool moves_pointer() const {
    return is_by_individual() || (file_ != nullptr && told_.sets_pointer);
  }
  std::uint64_t cost(std::uint64_t ended) const;
  Bytes bytes_asked() const;
  std::int64_t bytes_moved(int code) const;
  std::int64_t position_after(int code, std::int64_t moved) const;

  const trace::Door& door_;
  const TracedArguments& told_;
  const unsigned weight_;  ///< For so many calls the cost of this one stands; 0: another stands.
  const std::uint64_t entered_;
  TracedFile* file_;
  std::int64_t position_ = -1;  ///< Etypes.
  std::int64_t byte_offset_ = -1;
  TracedType type_;
  int& depth_;
  std::uint64_t begun_;
};

/// Whether a call that begins now is to be traced: not one that the MPI or Forebay makes.
inline bool is_call_traced() { return tracing() != nullptr && interception_depth == 0; }

/// The way of every call on a handle; `after` tells of what it has changed, where it succeeds.
template <typename Call, typename After>
int traced(const TracedArguments& told, Call&& call, After&& after) noexcept {
  // One place that calls: compilers make it a part of the wrapper, so that one return less comes
  // after the calls to the kernel, behind which processors foresee none.
  std::optional<TracedMpiCall> traced_call;
  if (is_call_traced()) traced_call.emplace(told);
  const int code = call();
  if (traced_call) {
    traced_call->finish(code);
    if (code == MPI_SUCCESS && traced_call->file() != nullptr) after(*traced_call->file());
  }
  return code;
}

/// The same of one that changes nothing.
template <typename Call>
int traced(const TracedArguments& told, Call&& call) noexcept {
  return traced(told, call, [](TracedFile&) {});
}

/// Where the MPI is to leave the status, so that the trace sees it too: in `own` where the program
/// does not want it.
inline MPI_Status* seen_status(MPI_Status* wanted, MPI_Status& own) {
  return wanted == MPI_STATUS_IGNORE && is_call_traced() ? &own : wanted;
}

/// The same of a call that says how much it is to write.
inline MPI_Status* seen_write_status(MPI_Status* wanted, [[maybe_unused]] MPI_Status& own) {
#ifdef MPICH_VERSION  // ROMIO writes all of it or fails.
  return wanted;
#else  // OMPIO may write less where the storage is full, and says so in the status alone.
  return seen_status(wanted, own);
#endif
}

/// What is said of an opening beside its calls. No errors: what cannot be said is left out.
void trace_view(TracedFile& file, MPI_Offset displacement, MPI_Datatype etype,
                MPI_Datatype filetype, const char* representation);
/// `asked`: what the program gave with the call; the hints in force are those that came of it.
void trace_hints(const TracedFile& file, MPI_File handle, MPI_Info asked);

}  // namespace forebay
