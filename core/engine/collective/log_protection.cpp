#include "core/engine/collective/log_protection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "core/engine/collective/agreed_error.hpp"

namespace forebay {
namespace {

/// What is protected takes at most this part of a node's capacity: what is written meanwhile needs
/// room as well.
constexpr Bytes protected_part = 2;

/// Bytes of one log that may be protected at a time. On a node there are the logs of its ranks and
/// the pieces that they keep, none of which is longer than the longest of the logs.
Bytes budget_of(const std::vector<ProtectionGroup>& groups, const NodeMap& nodes, Bytes capacity) {
  std::vector<Bytes> logs(static_cast<std::size_t>(nodes.nodes()), 0);
  const auto count = [&](const std::vector<int>& ranks) {
    for (const int rank : ranks) {
      const int node = nodes.node_of_rank[static_cast<std::size_t>(rank)];
      ++logs[static_cast<std::size_t>(node)];
    }
  };
  for (const ProtectionGroup& group : groups) {
    count(group.members);
    count(group.holders);
  }
  return capacity / (protected_part * std::ranges::max(logs));
}

}  // namespace

std::unique_ptr<LogProtection> LogProtection::make(Exchange& exchange, const StorageFile& file,
                                                   CacheRedundancy redundancy,
                                                   const std::string& name, const CachePlace& place,
                                                   Counters& counters, std::string& note) {
  if (redundancy.parities == 0) return nullptr;
  const NodeMap& nodes = exchange.nodes();
  auto groups = protection_groups(nodes.ranks_of_node, redundancy.members, redundancy.parities);
  if (groups.empty()) {
    note = fmt::format(
        "no protection against the loss of nodes: {} pieces need more than {} nodes, and there "
        "are {}",
        redundancy.parities, redundancy.parities, nodes.nodes());
    return nullptr;
  }
  return std::unique_ptr<LogProtection>(
      new LogProtection(exchange, std::move(groups), file, name, place, counters));
}

LogProtection::LogProtection(Exchange& exchange, std::vector<ProtectionGroup> groups,
                             const StorageFile& file, const std::string& name,
                             const CachePlace& place, Counters& counters)
    : exchange_(exchange),
      file_(file),
      place_(place),
      counters_(counters),
      budget_(budget_of(groups, exchange.nodes(), place.capacity->amount())),
      guard_(exchange, std::move(groups), name, [this](const std::string& group, int piece) {
        return make_parity(fmt::format("{}-{}", group, piece));
      }) {}

Result<std::unique_ptr<ParityWriter>> LogProtection::make_parity(const std::string& log) const {
  auto identity = place_.identity_of(file_, log, LogPurpose::protection);
  if (!identity) return tl::unexpected(identity.error());
  auto holder = ResourceHolder::join(place_.capacity);
  if (!holder) return tl::unexpected(holder.error());
  auto store = place_.make_store(log);
  if (!store) return tl::unexpected(store.error());
  LogSettings settings = place_.options.log;
  settings.payload_bytes = ParityWriter::part_bytes;
  return std::make_unique<ParityWriter>(std::move(*store), std::move(*identity), settings,
                                        std::move(*holder));
}

LogProtection::Outlook LogProtection::look(const LogWriter* log, bool done) {
  const bool crowded = log != nullptr && guard_.length_of(*log) > budget_;
  std::array<std::int64_t, 2> word{crowded, !done};
  exchange_.all_reduce(word, Reduce::max);
  return {.crowded = word[0] != 0, .needless = word[1] == 0};
}

Status LogProtection::agree(LogWriter* log, bool durable) {
  const Bytes before = guard_.sent();
  auto agreed = guard_.step(log, durable);
  Counters::add(counters_.protection_steps, 1);
  Counters::add(counters_.protection_bytes, guard_.sent() - before);
  return agreed;
}

Status LogProtection::worst(const Status& mine) {
  return worst_of_all(exchange_, mine ? Error{} : mine.error());
}

Status LogProtection::end(LogWriter* log) {
  auto removed = guard_.remove();
  // What cannot be given back takes storage, no more.
  if (log != nullptr) (void)log->release(std::numeric_limits<std::uint64_t>::max());
  return removed;
}

}  // namespace forebay
