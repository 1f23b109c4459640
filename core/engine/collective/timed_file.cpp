#include "core/engine/collective/timed_file.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/storage/piece_walk.hpp"

namespace forebay {
namespace {

/// After the first calls, one in so many is timed: a prime, to be out of step with programs that
/// make, say, one large call after every seven small ones.
constexpr std::uint64_t timed_one_in = 13;

constexpr Bytes failed = -1;

}  // namespace

NanosecondClock steady_nanoseconds() {
  return [] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
}

TimedFile::TimedFile(std::unique_ptr<StorageFile> inner, NanosecondClock clock)
    : ForwardingFile(std::move(inner)), clock_(std::move(clock)) {}

template <typename Call, typename Moved>
auto TimedFile::timed(Times& times, Call call, Moved moved) {
  const std::uint64_t number = times.calls.fetch_add(1, std::memory_order_relaxed);
  if (number >= kept && number % timed_one_in != 0) return call();
  const std::int64_t begin = clock_();
  auto result = call();
  const std::int64_t ns = clock_() - begin;
  if (const Bytes bytes = moved(result); bytes >= 0) {
    const std::scoped_lock lock(times.mutex);
    times.ring[times.timed++ % kept] = {bytes, ns};
  }
  return result;
}

std::vector<TimedCall> TimedFile::take_news(bool writing) {
  Times& times = writing ? writes_ : reads_;
  const std::scoped_lock lock(times.mutex);
  if (times.timed - times.taken < std::clamp(times.taken, handful, kept)) return {};
  times.taken = times.timed;
  const auto count = static_cast<std::ptrdiff_t>(std::min(times.timed, kept));
  return {times.ring.begin(), times.ring.begin() + count};
}

Status TimedFile::write_pieces(std::span<const iovec> pieces, Bytes offset) {
  return timed(
      writes_, [&] { return ForwardingFile::write_pieces(pieces, offset); },
      [&](const Status& done) { return done ? total_bytes(pieces) : failed; });
}

Result<Bytes> TimedFile::read_pieces(std::span<const iovec> pieces, Bytes offset) {
  return timed(
      reads_, [&] { return ForwardingFile::read_pieces(pieces, offset); },
      [](const Result<Bytes>& done) { return done ? *done : failed; });
}

}  // namespace forebay
