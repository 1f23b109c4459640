#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "core/engine/cache/log_store.hpp"
#include "core/model/error.hpp"

// docs/formats/write-behind-log.md, "Flush mark"

namespace forebay {

inline constexpr const char* flush_mark_name = "flushed";
/// Of a log that stays though the file has everything: above every sequence number.
inline constexpr auto all_flushed =
    static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

/// The file "flushed" in a log's store: up to which sequence number records are durable in the
/// file, itself durable at once. The log's own flushed records say the same where only a process
/// dies. Where a node does, segments may lose any of what was not synced, and an old record that
/// came back without the newer ones would be replayed over what was synced since.
class FlushMark {
 public:
  /// Opens the mark of a store, or makes one. Errors: those of the store.
  static Result<FlushMark> open(LogStore& store);

  /// Durable on return. Rewrites the older one of two places, so that the other one survives.
  Status put(std::uint64_t sequence);

  /// What the mark of a store says; 0: there is none. Errors: unsupported, io.
  static Result<std::uint64_t> read(LogStore& store);

 private:
  FlushMark(std::unique_ptr<StorageFile> file, int next_place)
      : file_(std::move(file)), next_place_(next_place) {}

  std::unique_ptr<StorageFile> file_;
  int next_place_;  ///< The one that is older, or damaged.
};

}  // namespace forebay
