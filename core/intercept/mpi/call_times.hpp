#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace forebay {

/// The classes under which the report times and counts MPI calls (docs/formats/report.md).
enum class CallClass { open, write, read, sync, close, other };

constexpr std::array<std::string_view, 6> call_class_names = {"open", "write", "read",
                                                              "sync", "close", "other"};

/// Wall time inside the MPI calls on one file, and their number, per class; one rank's share.
/// Measured by the same code whether Forebay or the MPI carries the calls out.
class CallTimes {
 public:
  void add(CallClass call_class, std::chrono::nanoseconds elapsed) {
    const auto index = static_cast<std::size_t>(call_class);
    elapsed_ns_[index].fetch_add(elapsed.count(), std::memory_order_relaxed);
    calls_[index].fetch_add(1, std::memory_order_relaxed);
  }

  std::int64_t elapsed_ns(std::size_t call_class) const { return elapsed_ns_[call_class]; }
  std::int64_t calls(std::size_t call_class) const { return calls_[call_class]; }

 private:
  std::array<std::atomic<std::int64_t>, call_class_names.size()> elapsed_ns_{};
  std::array<std::atomic<std::int64_t>, call_class_names.size()> calls_{};
};

}  // namespace forebay
