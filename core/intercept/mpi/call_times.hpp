#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace forebay {

/// The classes under which the report times and counts MPI calls (docs/formats/report.md).
enum class CallClass { open, write, read, sync, close, other };

constexpr std::array<std::string_view, 6> call_class_names = {"open", "write", "read",
                                                              "sync", "close", "other"};

/// Classes that a program waits for together, and what the report calls them.
struct CallGroup {
  std::string_view name;
  std::span<const CallClass> classes;
};
namespace call_groups {
inline constexpr std::array writing = {CallClass::write, CallClass::sync, CallClass::close};
inline constexpr std::array data = {CallClass::write, CallClass::read};
inline constexpr std::array all = {CallClass::open, CallClass::write, CallClass::read,
                                   CallClass::sync, CallClass::close, CallClass::other};
inline constexpr std::array<CallGroup, 3> list = {
    {{"writing", writing}, {"data", data}, {"all", all}}};
}  // namespace call_groups

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
  /// What this rank spent in several classes. The slowest rank of each class need not be the same:
  /// who writes longer waits less in the close.
  std::int64_t elapsed_ns(std::span<const CallClass> together) const {
    std::int64_t sum = 0;
    for (const CallClass one : together) sum += elapsed_ns(static_cast<std::size_t>(one));
    return sum;
  }
  std::int64_t calls(std::size_t call_class) const { return calls_[call_class]; }

 private:
  std::array<std::atomic<std::int64_t>, call_class_names.size()> elapsed_ns_{};
  std::array<std::atomic<std::int64_t>, call_class_names.size()> calls_{};
};

}  // namespace forebay
