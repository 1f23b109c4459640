#pragma once

#include <atomic>
#include <cstdint>

#include "core/model/extent.hpp"

namespace forebay {

/// What one rank did with one file, declared once here. X(name, how ranks are combined, meaning).
/// Names are the keys of the report (docs/formats/report.md). Times are nanoseconds.
#define FOREBAY_COUNTERS(X)                                                                   \
  X(write_calls, sum, "data-writing MPI calls of the program")                                \
  X(read_calls, sum, "data-reading MPI calls of the program")                                 \
  X(bytes_written, sum, "bytes the program asked to write")                                   \
  X(bytes_read, sum, "bytes the program was given")                                           \
  X(storage_writes, sum, "write calls made to the file system")                               \
  X(storage_reads, sum, "read calls made to the file system")                                 \
  X(storage_bytes_written, sum, "bytes written to the file system")                           \
  X(storage_bytes_read, sum, "bytes read from the file system")                               \
  X(bytes_copied, sum, "payload bytes copied in memory by Forebay, each copy counted")        \
  X(messages, sum, "messages with payload sent between nodes")                                \
  X(message_bytes, sum, "payload bytes sent between nodes, as on the wire")                   \
  X(message_bytes_raw, sum, "the same before compression")                                    \
  X(metadata_bytes, sum, "bytes sent to agree on a call: views, positions, outcomes")         \
  X(collective_calls, sum, "collective data calls carried out by the engine")                 \
  X(exchanged_calls, sum, "collective calls carried out through aggregators")                 \
  X(direct_calls, sum, "collective calls in which every rank went to the file system itself") \
  X(schedules_built, sum, "schedules computed")                                               \
  X(schedules_reused, sum, "collective calls that found their schedule in the cache")         \
  X(rounds, max, "exchange rounds")                                                           \
  X(hole_reads, sum, "reads of holes before a read-modify-write")                             \
  X(exchange_ns, max, "time spent packing, unpacking and sending")                            \
  X(storage_ns, max, "time spent in read and write calls to the file system")                 \
  X(waiting_ns, max, "time spent waiting for other ranks or for storage in the background")   \
  X(schedule_ns, max, "time spent computing schedules")                                       \
  X(cache_absorbed, sum, "bytes that the write-behind cache took")                            \
  X(cache_drained, sum, "bytes that the write-behind cache wrote to the file")                \
  X(cache_log_bytes, sum, "bytes written to the cache's logs")                                \
  X(protection_steps, max, "times that ranks protected their logs against the loss of nodes") \
  X(protection_bytes, sum, "bytes of logs sent to other nodes for that")                      \
  X(cache_exposed_ns, max, "time in which calls waited for the cache: its flush, or room in it")

/// One rank's counters of one file. I/O threads add to some of them, hence atomic; nobody orders
/// anything by them, hence relaxed.
struct Counters {
#define FOREBAY_DECLARE(name, combine, meaning) std::atomic<std::int64_t> name{0};
  FOREBAY_COUNTERS(FOREBAY_DECLARE)
#undef FOREBAY_DECLARE

  static void add(std::atomic<std::int64_t>& counter, std::int64_t amount) {
    counter.fetch_add(amount, std::memory_order_relaxed);
  }
};

}  // namespace forebay
