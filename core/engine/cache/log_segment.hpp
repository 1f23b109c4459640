#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/cache/log_record.hpp"
#include "core/engine/cache/log_store.hpp"
#include "core/engine/cache/superblock.hpp"
#include "core/model/error.hpp"

namespace forebay {

/// One segment of a log, open. Thread-safe.
class LogSegment {
 public:
  LogSegment(LogFile file, Superblock superblock);

  const Superblock& superblock() const { return superblock_; }
  StorageFile& storage() const { return *file_.storage; }
  /// For messages. Its storage was made under another name.
  std::string path() const;
  /// Whether these bytes lie in memory.
  bool in_memory(Bytes position, Bytes length) const;
  /// The file, for another use; the segment is of no use afterwards. It was filled up to `end`.
  LogFile release(Bytes end);

  /// `length` bytes, which `pieces` are, to `position`, one piece after the other. What an earlier
  /// use filled in memory is there already, and is copied to without a call. Error: io.
  Status write(std::span<const iovec> pieces, Bytes length, Bytes position);

  /// `length` bytes at `position`: as they lie in memory if they do, else read into `buffer`, which
  /// must stay as long as the result is used. Error: io, also where the segment ends before.
  Result<std::span<const std::byte>> bytes(Bytes position, Bytes length,
                                           std::vector<std::byte>& buffer) const;

 private:
  LogFile file_;
  const Superblock superblock_;
};

/// Where in a log the payload of one data record is, or a part of it: `skip` bytes into it.
struct LogPlace {
  std::shared_ptr<const LogSegment> segment;
  Bytes payload = 0;         ///< Position in the segment of the payload's first byte.
  std::uint32_t length = 0;  ///< Of the whole payload, bytes of the file.
  std::uint32_t stored = 0;  ///< What it takes in the segment.
  PayloadCodec codec = PayloadCodec::none;
  std::uint32_t checksum = 0;  ///< CRC-32C of all that is stored.
  Bytes skip = 0;              ///< Bytes of the payload before the part that is meant.

  /// Of the record, whose payload is at `position` of `segment`.
  static LogPlace of(const LogRecord& record, std::shared_ptr<const LogSegment> segment,
                     Bytes position) {
    return {std::move(segment), position,     record.length,
            record.stored,      record.codec, record.data_checksum};
  }

  /// Its bytes lie in the segment as they are in the file: from position() on.
  bool plain() const { return codec == PayloadCodec::none; }
  /// They do, and the segment has them in memory.
  bool in_memory() const { return plain() && segment->in_memory(payload, stored); }
  Bytes position() const { return payload + skip; }
  LogPlace from(Bytes more) const {
    LogPlace place = *this;
    place.skip += more;
    return place;
  }
};

/// The `length` bytes that `place` means, once the checksum of the whole payload was found right;
/// in memory or in `buffer` as above, where a compressed payload is expanded. Error: io, where the
/// log is damaged or cannot be read.
Result<std::span<const std::byte>> verified_bytes(const LogPlace& place, Bytes length,
                                                  std::vector<std::byte>& buffer);

/// The same into `to`, all of it. `payload` serves where only a part of the payload is meant.
Status read_verified(const LogPlace& place, std::span<std::byte> to,
                     std::vector<std::byte>& payload);

/// "segment-000000000017", so that names ascend as numbers do.
std::string segment_name(std::uint64_t number);
bool is_segment_name(const std::string& name);
/// Of a segment's name.
std::uint64_t segment_number(const std::string& name);

/// A segment has its name only once something was written to it.
Result<bool> has_segments(LogStore& log);

}  // namespace forebay
