#include "core/plan/cache_pace.hpp"

namespace forebay {
namespace {

constexpr std::int64_t least_logging_ns = 500'000'000;
constexpr std::int64_t least_flushing_ns = 250'000'000;
/// Of the file's rate.
constexpr double least_log_rate = 0.8;
/// Bytes a nanosecond.
constexpr double least_device_rate = 32.0 * MiB / 1e9;

double rate(Bytes bytes, std::int64_t ns) {
  return static_cast<double>(bytes) / static_cast<double>(ns);
}

}  // namespace

CachePace& CachePace::operator+=(const CachePace& other) {
  logged += other.logged;
  logging_ns += other.logging_ns;
  flushed += other.flushed;
  flushing_ns += other.flushing_ns;
  return *this;
}

bool log_is_slower(const CachePace& pace) {
  if (pace.logging_ns < least_logging_ns || pace.flushing_ns < least_flushing_ns) return false;
  return is_slower(pace);
}

bool is_slower(const CachePace& pace) {
  return rate(pace.logged, pace.logging_ns) < least_log_rate * rate(pace.flushed, pace.flushing_ns);
}

bool is_device_slow(Bytes logged, std::int64_t logging_ns) {
  return rate(logged, logging_ns) < least_device_rate;
}

}  // namespace forebay
