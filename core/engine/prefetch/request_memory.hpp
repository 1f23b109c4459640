#pragma once

#include <cstdint>
#include <map>
#include <memory>
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

  /// What shows whether files there are in the page cache, for all of them.
  std::shared_ptr<CacheTrial> cache_trial(std::uint64_t device);

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, RequestTuner::Found> of_device_;       ///< Guarded by mutex_.
  std::map<std::uint64_t, std::shared_ptr<CacheTrial>> trials_;  ///< Likewise.
};

}  // namespace forebay
