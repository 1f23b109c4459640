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
    : exchange_(exchange), cost_(cost), counters_(counters), history_(exchange.history()) {
  if (history_ == nullptr) {
    history_ = std::make_shared<CallHistory>();
    exchange.keep(history_);
  }
  history_->question_paths();
}

CallRecord CallAgreement::describe(const Access& access, const StridedTree& tree) {
  const ScopedNanoseconds timer(counters_.schedule_ns);
  CallRecord mine;
  mine.tree = tree.fingerprint();
  mine.seamless = seamless(access.view);
  if (access.length > 0) {
    mine.displacement = access.view.displacement;
    mine.extent = access.view.extent;
    mine.start = access.start;
    mine.length = access.length;
  }
  return mine;
}

Result<std::shared_ptr<const Schedule>> CallAgreement::agree(const Access& access,
                                                             const Setting& setting) {
  // A rank that moves nothing has no view to tell of.
  const StridedTree tree = access.length == 0 ? StridedTree() : access.view.tree;
  const CallRecord mine = describe(access, tree);
  CostWord word = cost_.speak();
  if (exchange_.size() > small_world) {
    Call* known = find_by_reduction(mine, word, setting);
    if (known != nullptr) return renewed(*known);
    word = {};  // It was heard.
  }
  auto records = gather_records(mine, word);
  if (!records) return tl::unexpected(std::move(records.error()));
  for (auto known = history_->calls().rbegin(); known != history_->calls().rend(); ++known) {
    if (known->setting == setting && known->records == *records) return renewed(*known);
  }
  if (auto known = gather_trees(*records, tree); !known) return tl::unexpected(known.error());
  return planned(std::move(*records), setting);
}

Result<std::vector<CallRecord>> CallAgreement::gather_records(const CallRecord& mine,
                                                              const CostWord& word) {
  std::vector<std::byte> wires(static_cast<std::size_t>(exchange_.size()) * call_record_bytes);
  {
    const ScopedNanoseconds timer(counters_.waiting_ns);
    exchange_.all_gather(encode_call_record(mine, word), wires);
  }
  Counters::add(counters_.metadata_bytes, static_cast<Bytes>(call_record_bytes));
  Result<CallRecords> decoded = decode_call_records(wires);
  if (!decoded) return tl::unexpected(std::move(decoded.error()));
  cost_.hear(decoded->costs);
  all_seamless_ = std::ranges::all_of(decoded->calls, &CallRecord::seamless);
  return std::move(decoded->calls);
}

Result<std::shared_ptr<const Schedule>> CallAgreement::planned(std::vector<CallRecord> records,
                                                               const Setting& setting) {
  const ScopedNanoseconds timer(counters_.schedule_ns);
  std::vector<RankPart> parts;
  parts.reserve(records.size());
  for (const CallRecord& record : records) {
    parts.push_back({{history_->trees().at(record.tree), record.displacement, record.extent},
                     record.start,
                     record.length});
  }
  const Path path = choose_path(parts, question(setting));
  auto schedule = std::make_shared<const Schedule>(
      build_schedule(std::move(parts), setting.domains, path, setting.cached.granule));
  Counters::add(counters_.schedules_built, 1);
  history_->add({std::move(records), setting, 0, schedule, cost_.changes()});
  return schedule;
}

CallAgreement::Call* CallAgreement::find_by_reduction(const CallRecord& mine, const CostWord& word,
                                                      const Setting& setting) {
  // If every rank means the same schedule, the lowest and the highest number meant are equal.
  const auto rank = static_cast<std::size_t>(exchange_.rank());
  Call* candidate = nullptr;
  for (Call& known : history_->calls()) {
    if (known.setting == setting && known.records[rank] == mine) candidate = &known;
  }
  const std::int64_t number = candidate == nullptr ? -1 : candidate->number;
  std::array<std::int64_t, 2 + std::tuple_size_v<AgreedCost::Contribution>> words{number, -number};
  AgreedCost::Contribution costs = AgreedCost::contribute(word);
  std::copy(costs.begin(), costs.end(), words.begin() + 2);
  {
    const ScopedNanoseconds timer(counters_.waiting_ns);
    exchange_.all_reduce(words, Reduce::min);
  }
  Counters::add(counters_.metadata_bytes, static_cast<Bytes>(sizeof words));
  std::copy(words.begin() + 2, words.end(), costs.begin());
  cost_.hear(costs);
  if (number < 0 || words[0] != number || words[1] != -number) return nullptr;
  all_seamless_ = std::ranges::all_of(candidate->records, &CallRecord::seamless);
  return candidate;
}

std::shared_ptr<const Schedule> CallAgreement::renewed(Call& known) {
  const ScopedNanoseconds timer(counters_.schedule_ns);
  if (known.cost_changes != cost_.changes()) {
    known.cost_changes = cost_.changes();
    const Path path = choose_path(known.schedule->parts, question(known.setting));
    if (path != known.schedule->path) {
      known.schedule = std::make_shared<const Schedule>(build_schedule(
          known.schedule->parts, known.setting.domains, path, known.setting.cached.granule));
      Counters::add(counters_.schedules_built, 1);
      return known.schedule;
    }
  }
  Counters::add(counters_.schedules_reused, 1);
  return known.schedule;
}

PathQuestion CallAgreement::question(const Setting& setting) const {
  return {setting.writing,    setting.layout,  cost_.of(setting.writing),
          setting.collective, setting.domains, setting.cached};
}

Status CallAgreement::gather_trees(const std::vector<CallRecord>& records,
                                   const StridedTree& mine) {
  auto& trees = history_->trees();
  history_->bound_trees();
  const auto unknown = [&trees](const CallRecord& record) { return !trees.contains(record.tree); };
  if (std::ranges::none_of(records, unknown)) return {};
  std::vector<std::byte> wire;
  if (!trees.contains(mine.fingerprint())) wire = mine.serialize();
  Counters::add(counters_.metadata_bytes, static_cast<Bytes>(wire.size()));
  const auto damaged = [](std::size_t rank, const std::string& problem) {
    return tl::unexpected(
        Error{ErrorKind::internal, 0, fmt::format("agree on a call: rank {}: {}", rank, problem)});
  };
  const auto gather = [&] {
    const ScopedNanoseconds timer(counters_.waiting_ns);
    return exchange_.all_gather_varying(wire);
  };
  const auto wires = gather();
  for (std::size_t rank = 0; rank < wires.size(); ++rank) {
    if (wires[rank].empty()) continue;
    const auto tree = StridedTree::parse(wires[rank]);
    if (!tree) return damaged(rank, tree.error().what);
    trees.insert_or_assign(tree->fingerprint(), *tree);
  }
  const auto missing = std::ranges::find_if(records, unknown);
  if (missing == records.end()) return {};
  return damaged(static_cast<std::size_t>(missing - records.begin()),
                 "it sent another file view than it announced");
}

}  // namespace forebay
