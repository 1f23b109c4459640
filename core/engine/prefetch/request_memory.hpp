#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "core/plan/cache_trial.hpp"
#include "core/plan/fetch_plan.hpp"
#include "core/plan/request_tuner.hpp"

namespace forebay {

/// What files of this process showed of their storage, for the next file that lies there: a program
/// that reads one file after the other would measure for each which gaps are worth fetching, and
/// whether the page cache has it.
/// Storage is told apart by the number of its device. Thread-safe.
class RequestMemory {
 public:
  /// `tuner`, of a file there, has decided something.
  void learn(std::uint64_t device, const RequestTuner& tuner);
  /// `tuner`: of a file there of which nothing was fetched yet, by this plan.
  void teach(std::uint64_t device, RequestTuner& tuner, const FetchPlan& plan) const;

  // Whether files there are in the page cache, where the kernel does not tell: as CacheTrial has
  // it.
  bool leaves(std::uint64_t device, bool is_first);
  /// Whether what is read there seems to be in the page cache after this.
  bool took(std::uint64_t device, Bytes bytes, std::int64_t ns);

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, RequestTuner::Found> of_device_;  ///< Guarded by mutex_.
  std::map<std::uint64_t, CacheTrial> trials_;              ///< Likewise.
};

}  // namespace forebay
