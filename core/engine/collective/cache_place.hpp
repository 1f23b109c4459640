#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/engine/cache/cache_options.hpp"
#include "core/engine/cache/log_identity.hpp"
#include "core/engine/cache/log_store.hpp"
#include "core/engine/cache/resource.hpp"
#include "core/engine/collective/exchange.hpp"
#include "core/model/error.hpp"
#include "core/model/extent.hpp"
#include "core/model/hints.hpp"
#include "core/plan/cache_pace.hpp"
#include "core/storage/file.hpp"

namespace forebay {

/// Where and how one rank makes logs of a file: on its node, as the hints say.
struct CachePlace {
  std::string path;               ///< As the hints have it.
  std::uint64_t file_system = 0;  ///< Of the file: its id.
  CachePace earlier;              ///< What earlier files showed of both.
  /// Makes an empty store for a log of that name.
  std::function<Result<std::unique_ptr<LogStore>>(const std::string& log)> make_store;
  std::shared_ptr<Resource> capacity;  ///< Of all logs that are made there, bytes.
  CacheOptions options;
  std::string host;  ///< Names the node.
  int rank = 0;
  int ranks = 1;

  /// Nodes that are emulated and protect each other have directories of their own below the path
  /// of the hints, "node-N", and are called "HOST:N": so that one can be lost. Collective, with
  /// the same hints. Errors: those of the
  /// directory and the capacity; unsupported, where earlier files showed that logs do not pay.
  static Result<CachePlace> find(Exchange& exchange, const StorageFile& file, const Hints& hints);

  /// Why a log there, which was as fast as this, does not pay; none if it does.
  std::optional<Error> too_slow(CachePace pace) const;

  /// Of a log that is about to be made.
  Result<LogIdentity> identity_of(const StorageFile& file, const std::string& log,
                                  LogPurpose purpose) const;
};

/// Of one write to the file at most, as a cache takes it from the hints: neither byte by byte nor
/// more than a flushing thread should hold in memory. None: as the cache chooses.
std::optional<Bytes> flush_bytes(const Hints& hints);

/// What logs may take where no hint says it, of so many bytes that are `free` on their file system,
/// and in memory of those that the batch system still allows: a part that leaves the rest to the
/// program and to others.
Bytes usual_capacity(Bytes free, std::optional<Bytes> allowed);

/// The batch system's number of this job, or empty.
std::string job_number();

/// A name that no other log has, of any time.
std::string new_log_name();

}  // namespace forebay
