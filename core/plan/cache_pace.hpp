#pragma once

#include <cstdint>

#include "core/model/extent.hpp"

namespace forebay {

/// How fast a write-behind log and the file behind it showed themselves, for one writer.
struct CachePace {
  Bytes logged = 0;              ///< What the log took,
  std::int64_t logging_ns = 0;   ///< and for how long anybody was writing to it.
  Bytes flushed = 0;             ///< What the file took while more was waiting for it,
  std::int64_t flushing_ns = 0;  ///< and for how long that was so.

  CachePace& operator+=(const CachePace& other);
};

/// Whether writes would end sooner without the log: its device is slower than the file by more than
/// a quarter. False as long as too little was seen: half a second of writing to the log, a quarter
/// of one to the file. [E10] loses here: with few aggregators it writes to few devices.
///
/// Worked example: 16 MiB took the log 1 s, and the file takes 30 MiB/s: slower. 16 MiB in 20 ms:
/// too early to say, and no harm done.
bool log_is_slower(const CachePace& pace);

/// The same where both were seen for long enough, whatever that is.
bool is_slower(const CachePace& pace);

/// Whether a log's device is slow enough, below 32 MiB/s, to be compared with the file before
/// anything is flushed.
bool is_device_slow(Bytes logged, std::int64_t logging_ns);

}  // namespace forebay
