#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/model/nanosecond_clock.hpp"
#include "core/plan/storage_cost.hpp"
#include "core/storage/forwarding_file.hpp"

namespace forebay {

NanosecondClock steady_nanoseconds();

/// A file whose data calls are timed, for choosing how to make the next ones. The last few times of
/// each direction are kept; of many calls only some are timed, since reading the clock costs as
/// much as the twentieth part of a small write into a page cache. Calls that fail are left out.
class TimedFile final : public ForwardingFile {
 public:
  TimedFile(std::unique_ptr<StorageFile> inner, NanosecondClock clock);

  /// The newest times of one direction, in no order; empty if too few are newer than those given
  /// before: first a handful, then as many as there were, at most as many as are kept. So looking
  /// at them costs next to nothing however many calls there are.
  std::vector<TimedCall> take_news(bool writing);

  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override;
  Result<Bytes> read_pieces(std::span<const iovec> pieces, Bytes offset) override;

 private:
  static constexpr std::uint64_t kept = 32;
  static constexpr std::uint64_t handful = 4;

  struct Times {
    std::atomic<std::uint64_t> calls = 0;
    std::mutex mutex;
    std::array<TimedCall, kept> ring;  ///< Guarded by mutex, as are those below.
    std::uint64_t timed = 0;
    std::uint64_t taken = 0;  ///< Of `timed`, at the last take_news.
  };

  /// Makes a call, and remembers its time if it is one of those that are timed. `moved` says what
  /// its result moved, and is negative for a failure.
  template <typename Call, typename Moved>
  auto timed(Times& times, Call call, Moved moved);

  NanosecondClock clock_;
  Times writes_;
  Times reads_;
};

}  // namespace forebay
