#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "core/engine/cache/dirty_map.hpp"
#include "core/model/error.hpp"

namespace forebay {

/// Dirty bytes of one log for who reads the file. No byte is handed out before the checksum of all
/// its payload was found right, since the device may give back other bytes than were written. So
/// who reads a large payload in small parts would have all of it read for each: the payload of
/// which a part was read last is kept, once verified. Thread-safe.
class KeptPayload {
 public:
  using Use = std::function<void(std::span<const std::byte>)>;

  /// Calls `use` with the bytes of `piece`, whose order is the sequence number of its record.
  /// `buffer` is for payloads that are not kept. Error: io, where the log is damaged or cannot be
  /// read.
  Status read(const DirtyMap::Piece& piece, std::vector<std::byte>& buffer, const Use& use);

 private:
  Status keep(const DirtyMap::Piece& piece);

  std::mutex mutex_;
  std::uint64_t order_ = 0;  ///< Of its record; 0: none is kept. Guarded by mutex_, as is the rest.
  /// As it is for the file: where the log has it in memory, or in `bytes_`. What is dirty keeps its
  /// segment, so it is there as long as anybody comes with a piece of this order.
  std::span<const std::byte> payload_;
  std::vector<std::byte> bytes_;
};

}  // namespace forebay
