#include "core/intercept/mpi/data_call.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <new>

namespace forebay {
namespace {

/// Further than any file reaches: where a file pointer stays.
constexpr Bytes no_position = std::numeric_limits<Bytes>::max();

/// The part of a call that can be known without other ranks.
struct Prepared {
  int code = MPI_SUCCESS;
  Bytes length = 0;  ///< Bytes to move; 0 if the code is an error.
  Bytes start = 0;   ///< Data position; of an explicit offset only.
  TiledTree memory = {};
};

/// What MPI 4.0 section 14.4 forbids by the way the file was opened: the same on every rank.
int check_mode(int amode, Direction direction) {
  if (direction == Direction::write && (amode & MPI_MODE_RDONLY) != 0) return MPI_ERR_READ_ONLY;
  if (direction == Direction::read && (amode & MPI_MODE_WRONLY) != 0) return MPI_ERR_ACCESS;
  return MPI_SUCCESS;
}

Prepared prepare(const ShadowFile& shadow, const DataCall& call) {
  if (call.manner == Manner::collective && shadow.split) return {.code = MPI_ERR_IO};
  if (call.count < 0) return {.code = MPI_ERR_COUNT};
  Prepared prepared;
  if (call.pointer == Pointer::explicit_offset) {
    const auto start = shadow.view.position_of(call.offset);
    if (call.offset < 0 || !start) return {.code = MPI_ERR_ARG};
    prepared.start = *start;
  }
  const auto type = shadow.datatypes->read(call.datatype);
  if (!type) return {.code = type.error()};
  if (__builtin_mul_overflow(static_cast<Bytes>(call.count), (*type)->tree.size(),
                             &prepared.length)) {
    return {.code = MPI_ERR_ARG};
  }
  // Through a view without bytes nothing can be moved; ranks without a part set such views.
  if (shadow.view.tiled().tree.size() == 0) prepared.length = 0;
  const auto address = static_cast<Bytes>(reinterpret_cast<std::intptr_t>(call.buffer));
  // MPI_BOTTOM is null too; where the data lies then is the type's to say.
  if (prepared.length > 0 && address + (*type)->tree.lower() == 0) return {.code = MPI_ERR_BUFFER};
  prepared.memory = (*type)->tiled(address);
  return prepared;
}

Prepared prepare_or_fail(const ShadowFile& shadow, const DataCall& call) {
  try {
    return prepare(shadow, call);
  } catch (const std::bad_alloc&) {
    return {.code = MPI_ERR_NO_MEM};
  }
}

/// Moves the shared pointer past the parts of all ranks and returns where this rank's begins. The
/// same error on every rank if the pointer cannot be moved. Collective.
Result<Bytes> take_ordered_part(OpenFile& file, Bytes length) {
  Exchange& exchange = *file.exchange;
  // Position, kind and errno are rank 0's; only the length adds up.
  std::array<std::int64_t, 1> total{length};
  exchange.all_reduce(total, Reduce::sum);
  std::array<std::int64_t, 3> word{};
  if (exchange.rank() == 0) {
    const Result<Bytes> base = file.shadow->shared_pointer.fetch_and_add(total[0]);
    if (base) {
      word[0] = *base;
    } else {
      word[1] = static_cast<std::int64_t>(base.error().kind);
      word[2] = base.error().os_errno;
    }
  }
  exchange.all_reduce(word, Reduce::sum);
  const Bytes before = exchange.exclusive_sum(length);
  if (word[1] != 0) {
    return tl::unexpected(Error{static_cast<ErrorKind>(word[1]), static_cast<int>(word[2]),
                                "the shared file pointer of " + file.record.path});
  }
  return word[0] + std::min(before, no_position - word[0]);
}

/// Where the transfer starts, and moves the pointer past it: by what was asked for, also where a
/// read will meet the end of the file (MPI 4.0, section 14.4.3).
Result<Bytes> take_position(OpenFile& file, const DataCall& call, const Prepared& prepared) {
  ShadowFile& shadow = *file.shadow;
  switch (call.pointer) {
    case Pointer::explicit_offset:
      return prepared.start;
    case Pointer::individual: {
      const std::lock_guard lock(shadow.position_mutex);
      const Bytes start = shadow.position;
      shadow.position = start + std::min(prepared.length, no_position - start);
      return start;
    }
    case Pointer::shared:
      if (call.manner == Manner::collective) return take_ordered_part(file, prepared.length);
      return shadow.shared_pointer.fetch_and_add(prepared.length);
  }
  return tl::unexpected(Error{ErrorKind::internal, 0, "unknown kind of file pointer"});
}

Result<Bytes> transfer(ShadowFile& shadow, const DataCall& call, const Access& access) {
  const bool writing = call.direction == Direction::write;
  if (call.manner == Manner::collective) {
    return writing ? shadow.engine->write_all(access) : shadow.engine->read_all(access);
  }
  if (access.length == 0) return Bytes{0};
  return writing ? shadow.engine->write(access) : shadow.engine->read(access);
}

void count(Counters& counters, Direction direction, Bytes asked, Bytes moved) {
  if (direction == Direction::write) {
    Counters::add(counters.write_calls, 1);
    Counters::add(counters.bytes_written, asked);
  } else {
    Counters::add(counters.read_calls, 1);
    Counters::add(counters.bytes_read, moved);
  }
}

}  // namespace

Outcome carry_out(OpenFile& file, const DataCall& call) {
  ShadowFile& shadow = *file.shadow;
  if (const int code = check_mode(file.record.amode, call.direction); code != MPI_SUCCESS) {
    return {code, 0};
  }
  Prepared prepared = prepare_or_fail(shadow, call);
  const bool collective = call.manner == Manner::collective;
  if (prepared.code != MPI_SUCCESS && !collective) return {prepared.code, 0};

  const Result<Bytes> start = take_position(file, call, prepared);
  if (!start) return {file.code_of(start.error()), 0};
  if (!shadow.view.reaches(*start, prepared.length)) {
    if (!collective) return {MPI_ERR_ARG, 0};
    prepared = {.code = MPI_ERR_ARG};
  }
  const Result<Bytes> moved =
      transfer(shadow, call, {shadow.view.tiled(), *start, prepared.memory, prepared.length});
  count(file.record.counters, call.direction, prepared.length, moved.value_or(0));
  if (prepared.code != MPI_SUCCESS) return {prepared.code, 0};
  if (!moved) return {file.code_of(moved.error()), 0};
  return {MPI_SUCCESS, *moved};
}

void set_status(MPI_Status* status, Bytes moved) {
  if (status == MPI_STATUS_IGNORE) return;
  // Both MPIs keep bytes, and divide when asked for another type.
  PMPI_Status_set_elements_x(status, MPI_BYTE, moved);
  PMPI_Status_set_cancelled(status, 0);
}

}  // namespace forebay
