#include "core/engine/collective/cache_place.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "core/engine/cache/emulated_node.hpp"
#include "core/engine/cache/file_identity.hpp"
#include "core/engine/cache/host_capacity.hpp"
#include "core/engine/cache/log_directory.hpp"
#include "core/engine/cache/segment_reserve.hpp"
#include "core/engine/collective/cost_memory.hpp"
#include "core/engine/collective/hardware.hpp"
#include "core/storage/layout.hpp"
#include "core/storage/memory_limit.hpp"

namespace forebay {
namespace {

/// Memory that all ranks of a host have, where no path is given.
constexpr const char* usual_path = "/dev/shm";
/// Of what is free there, and of what the job may still take.
constexpr Bytes usual_part = 4;
constexpr Bytes least_capacity = 8 * MiB;

/// As of an aggregator's buffer.
constexpr Bytes least_flush_bytes = 4 * KiB;
constexpr Bytes most_flush_bytes = 256 * MiB;

/// What others are rebuilt from is given back by segments: so they are not too large.
constexpr Bytes most_protected_segments = 64;
constexpr Bytes smallest_protected_segment = 1 * MiB;
constexpr Bytes largest_protected_segment = 1 * GiB;

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Whether logs are to be protected against the loss of nodes.
bool wants_redundancy(const Hints& hints) {
  return hints.cache_redundancy && hints.cache_redundancy->parities > 0;
}

/// Whether bytes may go to the file that are in no log: what is protected by its log, or synced or
/// kept there, must not.
bool may_bypass_logs(const Hints& hints) {
  return !wants_redundancy(hints) && hints.cache_flush != CacheFlush::none &&
         !hints.cache_sync_to_node.value_or(false) && hints.cache_discard.value_or(true);
}

CacheOptions options_of(const Hints& hints, int rank, const StripeLayout& layout, Bytes capacity) {
  CacheOptions options;
  options.flush = hints.cache_flush.value_or(CacheFlush::immediate);
  if (options.flush == CacheFlush::deferred) options.lull = std::chrono::milliseconds(50);
  options.sync = hints.cache_sync_to_node.value_or(false) ? SyncScope::node : SyncScope::file;
  options.keep_log = !hints.cache_discard.value_or(true);
  options.flush_threads = hints.cache_threads.value_or(0);
  options.flush_bytes = flush_bytes(hints).value_or(options.flush_bytes);
  options.first_server = rank % std::max(layout.servers, 1);
  options.log.compress = hints.cache_compress;
  if (wants_redundancy(hints)) {
    options.log.segment_bytes = std::clamp(capacity / most_protected_segments,
                                           smallest_protected_segment, largest_protected_segment);
  }
  return options;
}

/// Bytes that logs in `directory` may take. Pages of files in memory are the job's.
Bytes capacity_at(const CacheDirectory& directory, const Hints& hints) {
  if (hints.cache_capacity) return std::max(*hints.cache_capacity, least_capacity);
  struct statvfs space = {};
  if (::statvfs(directory.path().c_str(), &space) != 0) return least_capacity;
  return usual_capacity(static_cast<Bytes>(space.f_bavail) * static_cast<Bytes>(space.f_frsize),
                        directory.in_memory() ? memory_left() : std::nullopt);
}

/// Beside the ranks of this host. A thread that has to share a core with a rank that waits by
/// polling gets half of it, and the rank that needs what the thread makes waits all the longer.
bool has_core_to_spare(const Exchange& exchange) {
  return usable_cores().count() > exchange.ranks_on_host();
}

double mib_per_s(Bytes bytes, std::int64_t ns) {
  return static_cast<double>(bytes) / static_cast<double>(MiB) / (static_cast<double>(ns) / 1e9);
}

}  // namespace

std::optional<Bytes> flush_bytes(const Hints& hints) {
  if (!hints.independent_write_buffer) return std::nullopt;
  return std::clamp(*hints.independent_write_buffer, least_flush_bytes, most_flush_bytes);
}

Bytes usual_capacity(Bytes free, std::optional<Bytes> allowed) {
  return std::max(std::min(free, allowed.value_or(free)) / usual_part, least_capacity);
}

std::string job_number() {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "COBALT_JOBID"}) {
    if (const char* value = std::getenv(name)) return value;
  }
  return {};
}

std::string new_log_name() {
  std::uint64_t salt = 0;
  if (::getrandom(&salt, sizeof salt, 0) != sizeof salt) salt = 0;
  return fmt::format("{}-{}-{}-{:016x}", this_host(), ::getpid(), unix_seconds(), salt);
}

namespace {

struct FoundPlace {
  CachePlace place;
  std::shared_ptr<CacheDirectory> directory;
};

/// All but the capacity, of which nothing is held under another amount any more.
Result<FoundPlace> place_without_capacity(const Exchange& exchange, const StorageFile& file,
                                          const Hints& hints) {
  CachePlace place;
  place.path = hints.cache_path.value_or(usual_path);
  place.file_system = file_system_id(file.path()).value_or(0);
  place.earlier = remembered_pace(place.file_system, place.path);
  if (may_bypass_logs(hints)) {
    place.options.trial = remembered_trial(place.file_system, place.path);
  }
  if (auto slow = place.too_slow({})) return tl::unexpected(std::move(*slow));
  place.rank = exchange.rank();
  place.ranks = exchange.size();
  place.host = this_host();
  std::string path = place.path;
  const NodeMap& nodes = exchange.nodes();
  const int node = nodes.node_of_rank[static_cast<std::size_t>(place.rank)];
  const auto& mates = nodes.ranks_of_node[static_cast<std::size_t>(node)];
  const bool emulated = exchange.ranks_on_host() > static_cast<int>(mates.size());
  if (wants_redundancy(hints) && emulated) {
    path += "/" + emulated_node_directory(node);
    place.host = emulated_node(node);
    if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
      return fail(errno, "make " + path);
    }
  }
  auto directory = CacheDirectory::open(path, CacheDirectory::Access::create);
  if (!directory) return tl::unexpected(directory.error());
  place.make_store = [directory =
                          *directory](const std::string& log) -> Result<std::unique_ptr<LogStore>> {
    auto store = LogDirectory::create(directory, log);
    if (!store) return tl::unexpected(store.error());
    return std::unique_ptr<LogStore>(std::move(*store));
  };
  auto& reserve = place.options.log.reserve;
  reserve = segment_reserve(*directory);
  if (reserve != nullptr && hints.cache_capacity) {
    reserve->agree(capacity_at(**directory, hints));
  }
  return FoundPlace{std::move(place), std::move(*directory)};
}

}  // namespace

Result<CachePlace> CachePlace::find(Exchange& exchange, const StorageFile& file,
                                    const Hints& hints) {
  auto found = place_without_capacity(exchange, file, hints);
  // Who shares before all have let go of another amount gets that one.
  if (hints.cache_capacity) exchange.barrier();
  if (!found) return tl::unexpected(found.error());
  auto& [place, directory] = *found;
  auto capacity = share_host_capacity(directory, capacity_at(*directory, hints));
  if (!capacity) return tl::unexpected(capacity.error());
  place.capacity = std::move(*capacity);
  auto options = options_of(hints, place.rank, file.layout(), place.capacity->amount());
  options.trial = std::move(place.options.trial);
  options.log.ahead = !directory->in_memory() || has_core_to_spare(exchange);
  options.log.reserve = std::move(place.options.log.reserve);
  if (options.log.reserve != nullptr) options.log.reserve->use(place.capacity);
  place.options = std::move(options);
  return std::move(place);
}

std::optional<Error> CachePlace::too_slow(CachePace pace) const {
  pace += earlier;
  const auto lost = options.trial != nullptr ? options.trial->lost() : std::nullopt;
  if (!lost && !log_is_slower(pace)) return std::nullopt;
  if (lost) pace = *lost;
  return Error{ErrorKind::unsupported, 0,
               fmt::format("{} takes {:.3g} MiB/s of a rank, the file system {:.3g}", path,
                           mib_per_s(pace.logged, pace.logging_ns),
                           mib_per_s(pace.flushed, pace.flushing_ns))};
}

Result<LogIdentity> CachePlace::identity_of(const StorageFile& file, const std::string& log,
                                            LogPurpose purpose) const {
  LogIdentity identity;
  auto identified = identify(file.path());
  if (!identified) return tl::unexpected(identified.error());
  identity.log = log;
  identity.purpose = purpose;
  identity.file = std::move(*identified);
  identity.layout = file.layout();
  identity.job = job_number();
  identity.host = host;
  identity.process = ::getpid();
  identity.rank = rank;
  identity.made_unix_s = unix_seconds();
  return identity;
}

}  // namespace forebay
