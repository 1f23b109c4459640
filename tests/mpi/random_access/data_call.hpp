#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/mpi/random_access/type_model.hpp"

namespace random_access {

enum class Direction { read, write };
enum class Pointer { at, individual, shared };
enum class Timing { blocking, split, nonblocking };

/// Which of the data access routines of MPI 4.0 table 14.1.
struct CallKind {
  Direction direction = Direction::read;
  Pointer pointer = Pointer::at;
  Timing timing = Timing::blocking;
  bool collective = false;

  std::string name() const;
  /// MPI has no nonblocking ordered calls and no independent split ones.
  bool exists() const;
};

/// The memory of one call: `count` copies of a type somewhere inside a larger piece of memory, so
/// that what is written beside the data is seen.
class CallBuffer {
 public:
  /// Everything is filled with noise made from `seed`. With `from_bottom` the call gets MPI_BOTTOM
  /// and one element of a type with absolute addresses.
  CallBuffer(const TypeModel& type, std::int64_t count, std::uint64_t seed, bool from_bottom);
  ~CallBuffer();
  CallBuffer(const CallBuffer&) = delete;
  CallBuffer& operator=(const CallBuffer&) = delete;

  void* address() const { return address_; }
  int count() const { return count_; }
  MPI_Datatype type() const { return handle_; }
  /// Where in `bytes` the data byte `position` is.
  std::size_t index(std::int64_t position) const {
    return static_cast<std::size_t>(origin_ + type_.displacement(position));
  }

  std::vector<std::uint8_t> bytes;

 private:
  TypeModel type_;
  std::int64_t origin_ = 0;
  void* address_ = nullptr;
  int count_ = 0;
  MPI_Datatype handle_ = MPI_DATATYPE_NULL;
};

/// Makes the call and, if it does not block, completes it. `offset` in etypes, for Pointer::at.
int carry_out(MPI_File file, const CallKind& kind, MPI_Offset offset, const CallBuffer& buffer,
              MPI_Status* status);

/// Whether this MPI agrees with the model about a type: bounds, size and the bytes that MPI_Pack
/// takes from a few copies. What an MPI gets wrong there is no matter of files.
bool type_agrees(const TypeModel& type);

}  // namespace random_access
