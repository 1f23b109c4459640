#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

#include "core/model/extent.hpp"

namespace forebay::testbed {

/// A point in time: nanoseconds since the epoch of whatever clock the caller uses. Time is always
/// an argument, so the same code runs under the mounted file system and under a test's virtual
/// time.
using Time = std::chrono::nanoseconds;
constexpr Bytes ns_per_s = 1'000'000'000;

struct ServerParameters {
  Bytes bandwidth_bytes_per_s = 0;  ///< At least 1.
  Time latency{};                   ///< From the end of a request's transfer to its answer.
  int slots = 1;                    ///< Requests in service at once; at least 1.
};

/// One storage server, as a virtual-deadline clock.
///
/// Requests are served in the order of arrival. Request k, of b bytes, arriving at t:
///   start(k)  = max(t, answer(k - slots))                   a slot is held from start to answer
///   finish(k) = max(start(k), finish(k - 1)) + b / bandwidth + extra
///   answer(k) = finish(k) + latency
/// So transfers never overlap, latencies do, and the answer is known when the request arrives: no
/// thread waits for it. `extra` is time for which the server is busy besides the transfer.
///
/// Worked example: 4 MiB/s, 3 ms, 10 slots: 64 KiB take 15.625 ms, so requests arriving together
/// are answered after 18.625, 34.25, 49.875 ... ms. Empty requests: 10 after 3 ms, 10 more after 6
/// ms.
class ServerQueue {
 public:
  explicit ServerQueue(const ServerParameters& parameters);

  /// Accepts a request that arrives at `now` and returns when it is answered. Calls must not go
  /// back in time. Answers never decrease from call to call.
  Time submit(Time now, Bytes bytes, Time extra);

  /// Requests accepted and not answered at `now`.
  std::size_t unanswered(Time now) const;

  /// Time for which the server is or will be busy with the requests accepted so far.
  Time busy() const { return busy_; }

 private:
  ServerParameters parameters_;
  Time free_{};  // finish of the last request
  Time busy_{};  // sum of transfers and extras
  std::deque<Time>
      answers_;  // increasing; those of the past are dropped, but the last `slots` stay
};

}  // namespace forebay::testbed
