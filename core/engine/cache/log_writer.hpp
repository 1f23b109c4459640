#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/engine/cache/flush_mark.hpp"
#include "core/engine/cache/log_record.hpp"
#include "core/engine/cache/log_segment.hpp"
#include "core/engine/cache/segment_pool.hpp"
#include "core/engine/compression/adaptive_compressor.hpp"
#include "core/model/error.hpp"

// docs/formats/write-behind-log.md

namespace forebay {

struct LogSettings {
  Bytes segment_bytes = 32 * MiB;  ///< Of the largest; the first ones of a log are smaller.
  /// A payload ends where the offset in the file is a multiple of this, so that a flush of one
  /// stripe reads whole payloads.
  Bytes payload_bytes = 1 * MiB;
  /// Of payloads, where the device is slower than lz4: `automatic` measures it.
  Toggle compress = Toggle::automatic;
  /// Where storage of earlier logs may come from, and that of this log goes. Null: nowhere.
  std::shared_ptr<SegmentReserve> reserve = nullptr;
  /// Segments get their storage before they are needed, by a thread: where their device lets that
  /// wait, or there is a core for it. Else they get it as they are written to, where that may be.
  bool ahead = true;
};

/// A place between two records of a log.
struct LogPoint {
  std::uint64_t segment = 0;
  Bytes position = superblock_bytes;  ///< In that segment.
  std::uint64_t sequence = 0;         ///< Of the last record before it.
  std::uint64_t data_sequence = 0;    ///< Of the last one that is for the file.
};

/// Bytes [begin, end) of a segment: records, one behind the other.
struct LogRun {
  std::shared_ptr<const LogSegment> segment;
  Bytes begin = 0;
  Bytes end = 0;

  Bytes length() const { return end - begin; }
};

/// What came to a log since a point, and is not in the file for good.
struct LogGrowth {
  LogPoint end;
  std::vector<LogRun> runs;
  std::uint64_t flushed = 0;  ///< Records up to this one are, and may be missing from the runs.

  Bytes length() const;
};

/// Appends to the write-behind log of one file by one rank. Thread-safe. Records are in the log in
/// the order of their sequence numbers, and a call that returned has its records behind those of
/// all calls that returned before it: a crash leaves a prefix.
///
/// Once a write to the log failed it is `broken`: nothing is appended any more, since a gap would
/// hide what follows. What it holds can still be read.
class LogWriter {
 public:
  /// Told of each data record when it is in the log, in order, before another one is appended.
  using Placed = std::function<void(const LogRecord&, const LogPlace&)>;

  LogWriter(std::unique_ptr<LogStore> store, LogIdentity identity, LogSettings settings,
            std::unique_ptr<ResourceHolder> capacity, Placed placed);

  /// What became of an append. If not all is logged, either `full` (the capacity is exhausted, and
  /// flushing would help) or an error says why.
  struct Outcome {
    Bytes logged = 0;  ///< The first bytes, which are in the log.
    bool full = false;
    Status status;
  };
  /// Appends `pieces`, which lie one behind the other in the file from `offset` on, as data records
  /// of `epoch`. No wait.
  Outcome append(std::span<const iovec> pieces, Bytes offset, std::uint64_t epoch);

  /// What was appended so far is whole. Returns the sequence number of the record. Errors: no_space
  /// (capacity), and what the store says.
  Result<std::uint64_t> commit(std::uint64_t epoch);

  /// Records up to `sequence` are durable in the file: says so in the log, durably, and gives
  /// segments back that hold nothing else. After an error the log is broken: it still may say that
  /// they are not.
  Status flushed(std::uint64_t epoch, std::uint64_t sequence);

  /// What came since `since`, the end of an earlier growth. Others rebuild their logs from it: its
  /// segments stay until they are released, also when they are flushed.
  LogGrowth grown(const LogPoint& since);
  /// How long the runs of grown() would be now.
  Bytes length_since(const LogPoint& since) const;
  /// Nobody needs records up to `sequence` any more to rebuild another log. Segments that hold
  /// nothing else and are flushed are given back.
  Status release(std::uint64_t sequence);

  /// The log is durable on its device. Once this has failed, nothing is appended any more, and it
  /// always fails.
  Status sync();
  /// Removes the log.
  Status destroy();

  /// Gets storage for a segment ahead of need.
  void prepare() { pool_.prepare(); }
  /// After `full`: waits for others to give capacity back, at most `patience`. True: try again.
  Result<bool> wait_for_capacity(std::chrono::milliseconds patience) {
    return pool_.wait(patience);
  }
  /// Gives storage up that was got ahead of need, if others wait for it.
  void trim() { pool_.trim(); }
  bool capacity_wanted_by_others() const { return pool_.wanted_by_others(); }

  std::uint64_t last_sequence() const;
  /// Records up to this one are durable in the file.
  std::uint64_t flushed_sequence() const;
  /// The last data record of the oldest segment: once it is flushed, that segment is given back.
  /// No value: there is none that holds data.
  std::optional<std::uint64_t> oldest_segment_end() const;
  bool broken() const { return failure().kind != ErrorKind::none; }
  Error failure() const;  ///< Why it is broken; kind is none: it is not.
  /// Bytes appended so far: all that lies in the log; and payloads alone, before compression.
  Bytes bytes() const;
  Bytes payload_bytes() const;
  const std::string& path() const { return store_->path(); }
  const LogIdentity& identity() const { return identity_; }

 private:
  struct Live {
    std::shared_ptr<LogSegment> segment;
    std::string name;
    /// Sequence of the last data record, or of the last one that a failed write may have left; 0:
    /// none.
    std::uint64_t last_data = 0;
    Bytes end = superblock_bytes;  ///< Where its last record ends.
    bool held = false;             ///< Other logs are rebuilt from what it holds.
  };
  struct Batch;
  enum class Room { made, none };

  bool fits(Bytes bytes, Bytes reserve) const;
  Bytes current_bytes() const { return live_.back().segment->superblock().segment_bytes; }
  std::uint32_t salt_for(const LogFile& file) const;
  Result<Room> roll();
  Status write_current(std::span<const iovec> pieces, Bytes length);
  Result<std::uint64_t> append_mark(LogRecord record);
  Outcome append_batch(const Batch& batch);
  LogPoint end() const;
  std::vector<LogRun> runs_since(const LogPoint& since) const;
  bool needed(const Live& live) const;
  Status give_back(bool last_too);
  Status give_back(Live live);
  bool is_broken() const { return broken_.kind != ErrorKind::none; }

  const std::unique_ptr<LogStore> store_;
  const LogIdentity identity_;
  const LogSettings settings_;
  const Placed placed_;
  Result<FlushMark> mark_;
  SegmentPool pool_;
  AdaptiveCompressor compressor_;
  mutable std::mutex mutex_;
  std::deque<Live> live_;       ///< Oldest first; the last is appended to. Guarded by mutex_, as is
                                ///< what follows.
  Bytes position_ = 0;          ///< Where the next record goes in the last segment.
  std::uint64_t sequence_ = 0;  ///< Of the last record.
  std::uint64_t data_sequence_ = 0;  ///< Of the last one that is for the file.
  std::uint64_t next_segment_ = 0;
  std::uint64_t flushed_ = 0;
  std::uint64_t released_ = 0;
  Bytes bytes_ = 0;
  Bytes payload_bytes_ = 0;
  Error broken_;  ///< Why nothing is appended any more, if so.
};

}  // namespace forebay
