#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/engine/collective/collective_file.hpp"
#include "core/plan/schedule.hpp"

namespace forebay {

/// How the ranks of a file come to the same plan for a collective call, and keep it: a call like an
/// earlier one costs one small reduction or gather; a new one, a gather of positions; and each view
/// crosses the network once, as a tree.
class CallAgreement {
 public:
  CallAgreement(Exchange& exchange, Counters& counters);

  struct Settings {
    bool writing = false;
    PathQuestion question;
    const FileDomains& domains;
  };

  /// Collective. The schedule lives as long as this object, or until `most_schedules` newer ones
  /// were made.
  std::shared_ptr<const Schedule> agree(const Access& access, const Settings& settings);

  /// All ranks' views are seamless, as far as the last agreement tells.
  bool all_seamless() const { return all_seamless_; }

  /// Forgets all schedules; collective. To be called when hints changed what was decided.
  void forget() { schedules_.clear(); }

 private:
  static constexpr std::size_t most_schedules = 64;
  static constexpr std::size_t most_trees = 4096;

  /// What a rank says of its call; on the wire as it is, between ranks of one machine type.
  struct Record {
    std::uint64_t tree = 0;  ///< Fingerprint of the view's tree.
    Bytes displacement = 0;
    Bytes extent = 0;
    Bytes start = 0;
    Bytes length = 0;
    std::int64_t seamless = 0;  ///< The view is, also where length is 0.
    bool operator==(const Record&) const = default;
  };
  struct Known {
    std::vector<Record> records;
    bool writing = false;
    std::int64_t number = 0;
    std::shared_ptr<const Schedule> schedule;
  };

  std::shared_ptr<const Schedule> find_by_reduction(const Record& mine, bool writing);
  void gather_trees(const std::vector<Record>& records, const StridedTree& mine);

  Exchange& exchange_;
  Counters& counters_;
  std::deque<Known> schedules_;  ///< Newest last; the same on every rank.
  std::int64_t made_ = 0;
  bool all_seamless_ = false;
  /// Every tree that any rank ever sent, by fingerprint: the same on every rank, so that all know
  /// without asking what the others know.
  std::unordered_map<std::uint64_t, StridedTree> trees_;
};

}  // namespace forebay
