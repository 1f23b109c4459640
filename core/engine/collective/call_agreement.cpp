#include "core/engine/collective/call_agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "core/engine/collective/scoped_nanoseconds.hpp"

namespace forebay {
namespace {

/// Up to this many ranks, gathering everybody's record costs no more than a reduction.
constexpr int small_world = 64;

}  // namespace

CallAgreement::CallAgreement(Exchange& exchange, AgreedCost& cost, Counters& counters)
    : exchange_(exchange), cost_(cost), counters_(counters) {}

Result<std::shared_ptr<const Schedule>> CallAgreement::agree(const Access& access,
                                                             const Settings& settings) {
  const ScopedNanoseconds timer(counters_.schedule_ns);
  // A rank that moves nothing has no view to tell of.
  const StridedTree tree = access.length == 0 ? StridedTree() : access.view.tree;
  CallRecord mine;
  mine.tree = tree.fingerprint();
  mine.seamless = seamless(access.view);
  if (access.length > 0) {
    mine.displacement = access.view.displacement;
    mine.extent = access.view.extent;
    mine.start = access.start;
    mine.length = access.length;
  }
  CostWord word = cost_.speak();
  if (exchange_.size() > small_world) {
    Known* known = find_by_reduction(mine, word, settings.writing);
    if (known != nullptr) return renewed(*known, settings);
    word = {};  // It was heard.
  }

  std::vector<std::byte> wires(static_cast<std::size_t>(exchange_.size()) * call_record_bytes);
  exchange_.all_gather(encode_call_record(mine, word), wires);
  Counters::add(counters_.metadata_bytes, static_cast<Bytes>(call_record_bytes));
  Result<CallRecords> decoded = decode_call_records(wires);
  if (!decoded) return tl::unexpected(std::move(decoded.error()));
  std::vector<CallRecord>& records = decoded->calls;
  cost_.hear(decoded->costs);
  all_seamless_ = std::all_of(records.begin(), records.end(),
                              [](const CallRecord& record) { return record.seamless; });
  for (auto known = schedules_.rbegin(); known != schedules_.rend(); ++known) {
    if (known->writing == settings.writing && known->records == records) {
      return renewed(*known, settings);
    }
  }

  if (auto known = gather_trees(records, tree); !known) return tl::unexpected(known.error());
  std::vector<RankPart> parts;
  parts.reserve(records.size());
  for (const CallRecord& record : records) {
    parts.push_back({{trees_.at(record.tree), record.displacement, record.extent},
                     record.start,
                     record.length});
  }
  const Path path = choose_path(parts, question(settings));
  auto schedule =
      std::make_shared<const Schedule>(build_schedule(std::move(parts), settings.domains, path));
  Counters::add(counters_.schedules_built, 1);
  if (schedules_.size() == most_schedules) schedules_.pop_front();
  schedules_.push_back({std::move(records), settings.writing, ++made_, schedule, cost_.changes()});
  return schedule;
}

CallAgreement::Known* CallAgreement::find_by_reduction(const CallRecord& mine, const CostWord& word,
                                                       bool writing) {
  // If every rank means the same schedule, the lowest and the highest number meant are equal.
  const auto rank = static_cast<std::size_t>(exchange_.rank());
  Known* candidate = nullptr;
  for (Known& known : schedules_) {
    if (known.writing == writing && known.records[rank] == mine) candidate = &known;
  }
  const std::int64_t number = candidate == nullptr ? -1 : candidate->number;
  std::array<std::int64_t, 2 + std::tuple_size_v<AgreedCost::Contribution>> words{number, -number};
  AgreedCost::Contribution costs = AgreedCost::contribute(word);
  std::copy(costs.begin(), costs.end(), words.begin() + 2);
  exchange_.all_reduce(words, Reduce::min);
  Counters::add(counters_.metadata_bytes, static_cast<Bytes>(sizeof words));
  std::copy(words.begin() + 2, words.end(), costs.begin());
  cost_.hear(costs);
  if (number < 0 || words[0] != number || words[1] != -number) return nullptr;
  all_seamless_ = std::all_of(candidate->records.begin(), candidate->records.end(),
                              [](const CallRecord& record) { return record.seamless; });
  return candidate;
}

std::shared_ptr<const Schedule> CallAgreement::renewed(Known& known, const Settings& settings) {
  if (known.cost_changes != cost_.changes()) {
    known.cost_changes = cost_.changes();
    const Path path = choose_path(known.schedule->parts, question(settings));
    if (path != known.schedule->path) {
      known.schedule = std::make_shared<const Schedule>(
          build_schedule(known.schedule->parts, settings.domains, path));
      Counters::add(counters_.schedules_built, 1);
      return known.schedule;
    }
  }
  Counters::add(counters_.schedules_reused, 1);
  return known.schedule;
}

PathQuestion CallAgreement::question(const Settings& settings) const {
  return {settings.writing, settings.layout, cost_.of(settings.writing), settings.collective,
          settings.domains};
}

Status CallAgreement::gather_trees(const std::vector<CallRecord>& records,
                                   const StridedTree& mine) {
  if (trees_.size() > most_trees) trees_.clear();
  const auto unknown = [this](const CallRecord& record) { return !trees_.contains(record.tree); };
  if (std::none_of(records.begin(), records.end(), unknown)) return {};
  std::vector<std::byte> wire;
  if (!trees_.contains(mine.fingerprint())) wire = mine.serialize();
  Counters::add(counters_.metadata_bytes, static_cast<Bytes>(wire.size()));
  const auto damaged = [](std::size_t rank, const std::string& problem) {
    return tl::unexpected(
        Error{ErrorKind::internal, 0, fmt::format("agree on a call: rank {}: {}", rank, problem)});
  };
  const auto wires = exchange_.all_gather_varying(wire);
  for (std::size_t rank = 0; rank < wires.size(); ++rank) {
    if (wires[rank].empty()) continue;
    const auto tree = StridedTree::parse(wires[rank]);
    if (!tree) return damaged(rank, tree.error().what);
    trees_.insert_or_assign(tree->fingerprint(), *tree);
  }
  const auto missing = std::find_if(records.begin(), records.end(), unknown);
  if (missing == records.end()) return {};
  return damaged(static_cast<std::size_t>(missing - records.begin()),
                 "it sent another file view than it announced");
}

}  // namespace forebay
