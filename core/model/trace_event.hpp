#pragma once

#include <cstdint>

// What a trace keeps of a call (docs/formats/trace-spill.md). The memory of these structures is
// what stands on disk.

namespace forebay {

/// Ids of calls; those of MPI-IO follow from mpi_calls_from on. They are no part of the format: a
/// spill names them.
enum class TracedCall : std::uint16_t {
#define FOREBAY_TRACED_CALL(name) name,
#include "core/model/traced_calls.inc"
#undef FOREBAY_TRACED_CALL
};
constexpr std::uint16_t mpi_calls_from = 256;

/// Who made a call.
enum class TracedWithin : std::uint8_t { program, mpi, forebay };

/// One call. What the fields from `offset` on hold depends on the call. An `is_file` holds a
/// device, an inode, a size and a mode in duration, offset, length and result.
struct TraceEvent {
  std::uint64_t begin;     ///< Ticks of the trace's clock, when it began.
  std::uint64_t duration;  ///< Ticks.
  std::int64_t offset;     ///< Bytes; -1: at the position; -2: not known.
  std::int64_t length;     ///< Bytes asked for.
  std::int64_t result;     ///< What it returned; of a call that failed -errno.
  std::int32_t descriptor;
  std::uint16_t call;
  std::uint8_t within;
  std::uint8_t argument;  ///< Whence of lseek, advice of posix_fadvise, protection of mmap.
};
static_assert(sizeof(TraceEvent) == 48);

/// What a trace says once and events refer to.
enum class TraceDefinition : std::uint16_t {
  process = 1,      ///< ProcessStart and texts.
  end = 2,          ///< ProcessEnd. Without one the process was killed.
  call = 3,         ///< key: id of a call; its name.
  name = 4,         ///< key: of a file's name; the name as the program gave it.
  descriptor = 5,   ///< FoundDescriptor and a name: open before the trace began.
  mpi_process = 6,  ///< MpiProcess, then the back end and the version of the MPI.
  mpi_opening = 7,  ///< key: its number in the process; MpiOpening, then the mode and the name.
  mpi_view = 8,     ///< key: of an opening; MpiView, then the representation.
  mpi_hints = 9,    ///< key: of an opening; ticks, then keys and values in force from then on.
  mpi_type = 10,    ///< key: of a datatype's shape; MpiType, then the combiner and the shape.
  exec = 11,        ///< The process is about to become another program.
  mpi_hints_asked = 12,  ///< As mpi_hints, of those that the program gave just before.
};

/// Before each definition; what it holds follows, filled up to a multiple of 8 bytes.
struct DefinitionHeader {
  std::uint16_t kind = 0;
  std::uint16_t reserved = 0;
  std::uint32_t length = 0;  ///< Bytes that follow, without filling.
  std::uint64_t key = 0;
};
static_assert(sizeof(DefinitionHeader) == 16);

/// What ticks are.
enum class TickSource : std::uint32_t { monotonic = 0, tsc = 1, system_counter = 2 };

/// Host, executable and working directory follow, each with a zero byte at its end.
struct ProcessStart {
  std::int64_t process = 0;
  std::int64_t parent = 0;
  std::int64_t started_jiffies = 0;  ///< Since boot: with the process, the same after an exec.
  std::uint64_t ticks = 0;           ///< The same moment by three clocks.
  std::int64_t monotonic_ns = 0;
  std::int64_t realtime_ns = 0;
  std::uint32_t tick_source = 0;
  std::int32_t rank = -1;  ///< As the launcher told; -1: it did not.
};
static_assert(sizeof(ProcessStart) == 56);

struct ProcessEnd {
  std::uint64_t ticks = 0;
  std::uint64_t start_ticks = 0;         ///< What beginning to trace took.
  std::uint64_t ticks_of_256_calls = 0;  ///< What tracing them took, tried out at the start.
};
static_assert(sizeof(ProcessEnd) == 24);

struct FoundDescriptor {
  std::uint64_t ticks = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t position = 0;
  std::int32_t descriptor = 0;
  std::uint32_t mode = 0;
  std::int32_t flags = 0;
  std::int32_t reserved = 0;
};
static_assert(sizeof(FoundDescriptor) == 56);

// Of MPI-IO. Each text has a zero byte at its end.

struct MpiProcess {
  std::int64_t rank = 0;
  std::int64_t ranks = 0;
};
static_assert(sizeof(MpiProcess) == 16);

struct MpiOpening {
  std::uint64_t ticks = 0;
  std::int32_t rank = 0;  ///< In the communicator of the file.
  std::int32_t ranks = 0;
  std::int32_t is_engine = 0;  ///< Forebay carries its data calls out.
  std::int32_t error_class = 0;
};
static_assert(sizeof(MpiOpening) == 24);

struct MpiView {
  std::uint64_t ticks = 0;
  std::int64_t displacement = 0;
  std::uint64_t etype = 0;     ///< Key.
  std::uint64_t filetype = 0;  ///< Key.
};
static_assert(sizeof(MpiView) == 32);

/// Bytes. -1: not known, or not the same for all.
struct MpiType {
  std::int64_t size = 0;
  std::int64_t extent = 0;
  std::int64_t lower_bound = 0;
  std::int64_t true_lower_bound = 0;
  std::int64_t true_extent = 0;
  std::int64_t blocks = -1;  ///< Contiguous pieces.
  std::int64_t block_bytes = -1;
  std::int64_t stride = -1;
};
static_assert(sizeof(MpiType) == 64);

/// Before each piece of a ring that is spilled. Definitions follow, then events.
struct SpillHeader {
  std::uint8_t magic[8] = {'F', 'B', 'S', 'P', 'I', 'L', 'L', '\n'};
  std::uint32_t version = 1;
  std::uint32_t events = 0;
  std::uint64_t checksum = 0;  ///< XXH3, 64 bits, of header (with 0 here), definitions and events.
  std::uint64_t definition_bytes = 0;
  std::int64_t thread = 0;     ///< As gettid() says.
  std::uint64_t sequence = 0;  ///< Counts the pieces of the process from 0.
  std::uint64_t ticks = 0;     ///< When it was spilled, by two clocks.
  std::int64_t monotonic_ns = 0;
  std::uint64_t lost = 0;         ///< Events of this thread that were not kept, until now.
  std::uint64_t spill_ticks = 0;  ///< What spilling took this thread, until now.
};
static_assert(sizeof(SpillHeader) == 80);

}  // namespace forebay
