#include "core/engine/prefetch/request_memory.hpp"

#include <utility>

namespace forebay {

void RequestMemory::learn(std::uint64_t device, const RequestTuner& tuner) {
  auto found = tuner.found();
  const std::scoped_lock lock(mutex_);
  if (found) {
    of_device_.insert_or_assign(device, *std::move(found));
  } else if (tuner.is_refuted()) {
    of_device_.erase(device);
  }
}

void RequestMemory::teach(std::uint64_t device, RequestTuner& tuner, const FetchPlan& plan) const {
  const std::scoped_lock lock(mutex_);
  const auto known = of_device_.find(device);
  if (known == of_device_.end()) return;
  tuner.begin_with(known->second, plan.coming(RequestTuner::extents_to_weigh));
}

bool RequestMemory::leaves(std::uint64_t device, bool is_first) {
  const std::scoped_lock lock(mutex_);
  return trials_[device].leaves(is_first);
}

bool RequestMemory::took(std::uint64_t device, Bytes bytes, std::int64_t ns) {
  const std::scoped_lock lock(mutex_);
  CacheTrial& trial = trials_[device];
  trial.took(bytes, ns);
  return trial.is_warm();
}

}  // namespace forebay
