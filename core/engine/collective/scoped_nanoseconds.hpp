#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/model/counters.hpp"

namespace forebay {

/// Adds the wall time of its own life to a counter.
class ScopedNanoseconds {
 public:
  explicit ScopedNanoseconds(std::atomic<std::int64_t>& counter)
      : counter_(counter), begin_(std::chrono::steady_clock::now()) {}
  ~ScopedNanoseconds() {
    Counters::add(counter_, std::chrono::duration_cast<std::chrono::nanoseconds>(
                                std::chrono::steady_clock::now() - begin_)
                                .count());
  }
  ScopedNanoseconds(const ScopedNanoseconds&) = delete;
  ScopedNanoseconds& operator=(const ScopedNanoseconds&) = delete;

 private:
  std::atomic<std::int64_t>& counter_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace forebay
