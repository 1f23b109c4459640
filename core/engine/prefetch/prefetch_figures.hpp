#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/model/extent.hpp"

namespace forebay {

/// For bytes_refetched: extents that lie apart and are remembered. They take 256 KiB.
constexpr std::size_t most_fetched_apart = 16384;

/// Reads of the program that the kernel carried out, wholly or what was left of them.
struct KernelReads {
  std::int64_t calls = 0;   ///< Of the kernel.
  std::int64_t stalls = 0;  ///< Of them, those that took more than 1 ms.
  std::int64_t ns = 0;      ///< In all.
  /// Reads that nobody compared with what was foreseen: before it was decided what is fetched, and
  /// after that had ended.
  std::int64_t reads_unfollowed = 0;
  Bytes bytes_unfollowed = 0;  ///< That these brought.

  KernelReads& operator+=(const KernelReads& more) {
    calls += more.calls;
    stalls += more.stalls;
    ns += more.ns;
    reads_unfollowed += more.reads_unfollowed;
    bytes_unfollowed += more.bytes_unfollowed;
    return *this;
  }
};

/// What reading ahead did for one opening of a file.
struct PrefetchFigures {
  std::int64_t reads = 0;            ///< Of the program.
  std::int64_t reads_served = 0;     ///< Wholly from memory.
  Bytes bytes_asked = 0;             ///< By the program.
  Bytes bytes_asked_declared = 0;    ///< Of them, those that had been declared.
  Bytes bytes_unfollowed = 0;        ///< Of them, those of which that is not known.
  Bytes bytes_served = 0;            ///< From memory.
  std::int64_t stalls = 0;           ///< Reads that waited more than 1 ms for what was on its way.
  std::int64_t waited_ns = 0;        ///< In all reads, for what was on its way.
  std::int64_t requests = 0;         ///< To the storage.
  std::int64_t requests_failed = 0;  ///< Of them.
  Bytes bytes_fetched = 0;
  Bytes bytes_refetched = 0;  ///< Of them, those that were fetched before.
  Bytes bytes_between = 0;    ///< Of them, what lay between extents, for fewer requests.
  Bytes gap_found = 0;        ///< The largest that is fetched along, as measured; 0: none is.
  Bytes bytes_unused = 0;     ///< Of the rest, those that no program read.
  Bytes bytes_held = 0;       ///< Of them, those that it still may.
  Bytes bytes_resident = 0;   ///< Not fetched, as the page cache had them.
  Bytes bytes_planned = 0;    ///< Declared, inside the file.
  std::int64_t extents_outside = 0;  ///< Declared, not in the file.
  std::int64_t plans_given_up = 0;   ///< The program read other things than was foreseen.
  /// Of memory, which is counted by the process that made it where several share it; or of the page
  /// cache: what was brought there and not passed yet.
  Bytes memory_peak = 0;
  std::int64_t latency_ns = 0;     ///< The shortest request; 0: there was none.
  double bytes_per_second = 0;     ///< The highest rate.
  std::int64_t helper_cpu_ns = 0;  ///< Of the thread that reads ahead, for this file.
  std::string stopped;             ///< Why nothing more was fetched; empty: it went on to the end.
  std::optional<KernelReads> by_kernel = {};  ///< None: the calls are not seen.
  /// The kernel serves all reads: stalls, waited_ns and bytes_unused are not known.
  bool is_by_page_cache = false;
  bool has_unseen_reads = false;  ///< Of a C stream, or through a mapping.

  /// Of an opening that is left to the kernel; `why` is `stopped`.
  static PrefetchFigures of_nothing(std::string why) {
    PrefetchFigures figures;
    figures.stopped = std::move(why);
    figures.is_by_page_cache = true;
    return figures;
  }
};

}  // namespace forebay
