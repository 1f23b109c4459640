// Goal: whichever call of the operating system fails, on the node or on the global file system, for
// want of space or by an error of the device, once or from then on: bytes that were acknowledged
// are in the file or come back with a recovery, what is read is right, and nothing hangs. Method:
// functions that stand in front of the C library's for all of this program. One workload on a real
// log, a real file and its notice, once for every call that it makes; the process killed at the
// end, before the file is closed or after. Logs are on a disk, and in memory, where they are mapped
// and begin in segments of an earlier log. The same for every call of a recovery, after which
// another brings all to the file. A process that is killed at a call is in killed_writer_test.

#include <gtest/gtest.h>

#include <cerrno>
#include <climits>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "core/engine/cache/cache_site.hpp"
#include "core/engine/cache/intercepted_calls.hpp"
#include "core/engine/cache/possible_content.hpp"

namespace forebay {
namespace {

using Device = CacheSite::Device;
using Side = CacheSite::Side;

/// Of a call that fails, all but which one it is.
struct Failure {
  Side side = Side::node;
  int os_errno = 0;
  bool lasting = false;
};

constexpr std::size_t file_bytes = 12'000;

/// Writes over each other, more than the log may hold, commits, a sync, a cut, and reads. Returns
/// what the file may hold.
PossibleContent work(CachedFile& file) {
  PossibleContent possible(file_bytes);
  const auto write = [&](Bytes offset, std::size_t length, int number) {
    const auto value = static_cast<std::byte>(number);
    const std::vector<std::byte> bytes(length, value);
    possible.tried(file.write_at(bytes, offset).has_value(), offset, length, value);
  };
  const auto look = [&](Bytes offset) {
    std::vector<std::byte> back(3000);
    const auto got = file.read_at(back, offset);
    back.resize(static_cast<std::size_t>(got.value_or(0)));
    EXPECT_EQ(possible.wrong_at(offset, back), "");
  };
  for (int epoch = 0; epoch < 3; ++epoch) {
    write(epoch * 2000, 3000, 1 + 2 * epoch);
    write(epoch * 2000 + 2000, 5000, 2 + 2 * epoch);
    (void)file.commit(file.epoch() + 1);
    look(epoch * 2000 + 500);
    if (epoch == 0) {
      (void)file.sync();
      (void)file.drain();  // Where that was a sync of the log alone.
      look(0);
    }
    if (epoch == 1) {
      look(0);
      constexpr Bytes cut = 5000;
      possible.tried(file.resize(cut).has_value(), cut, file_bytes - cut, std::byte{0});
    }
    if (epoch == 2) (void)file.allocate(12'000);
  }
  return possible;
}

Injected plan_for(const CacheSite& place, const Failure& failure, CallKind kind, int nth) {
  return {.place = place.side(failure.side),
          .kind = kind,
          .nth = nth,
          .os_errno = failure.os_errno,
          .lasting = failure.lasting};
}

struct Case {
  Device device = Device::disk;
  CacheFlush policy = CacheFlush::immediate;
  Failure failure;
  bool closes = false;
};

/// One run. True: the call was made that was to fail.
bool run(const Case& now, CallKind kind, int nth) {
  CacheSite place(now.device);
  place.begin_process();
  Injected plan = plan_for(place, now.failure, kind, nth);
  injected = &plan;
  auto file = place.open(now.policy, CacheSite::scope_of(now.policy));
  PossibleContent possible(file_bytes);
  bool closed = false;
  if (file != nullptr) {
    possible = work(*file);
    closed = now.closes && file->close();
  }
  file.reset();
  place.end_process();
  injected = nullptr;
  if (closed) {
    EXPECT_EQ(possible.wrong(place.content()), "") << "closed";
  }
  place.recover();
  EXPECT_EQ(possible.wrong(place.content()), "") << "recovered";
  return plan.met();
}

/// A recovery in which a call fails, and one more. True: the call was made.
bool recover_twice(Device device, const Failure& failure, CallKind kind, int nth) {
  CacheSite place(device);
  place.begin_process();
  auto file = place.open(CacheFlush::onclose);
  EXPECT_NE(file, nullptr);
  if (file == nullptr) return false;
  const PossibleContent possible = work(*file);
  file.reset();
  place.end_process();
  Injected plan = plan_for(place, failure, kind, nth);
  injected = &plan;
  const Status done = place.try_to_recover();
  injected = nullptr;
  if (done) {
    EXPECT_EQ(possible.wrong(place.content()), "") << "recovered, as it said";
  }
  place.recover();
  EXPECT_EQ(possible.wrong(place.content()), "") << "recovered once more";
  return plan.met();
}

/// How many calls of each kind `run(kind, nth)` made: one more run for each, in which it fails.
template <typename Run>
std::map<CallKind, int> calls_that_failed(Run run) {
  std::map<CallKind, int> calls;
  for (const CallKind kind : all_calls) {
    // Which call is whose turn varies with the threads, so there may be one more or less.
    for (int nth = 0; !testing::Test::HasFailure(); ++nth) {
      SCOPED_TRACE(testing::Message() << to_string(kind) << ", number " << nth);
      if (!run(kind, nth)) break;
      ++calls[kind];
    }
  }
  return calls;
}

/// Times that something on the global side is made durable by the first write to a log.
int durable_by_a_write(SyncScope scope) {
  CacheSite place(Device::disk);
  Injected none;
  none.place = place.side(Side::global);
  none.kind = CallKind::sync;
  none.nth = INT_MAX;
  auto file = place.open(CacheFlush::onclose, scope);
  injected = &none;
  const std::vector<std::byte> bytes(100);
  EXPECT_TRUE(file->write_at(bytes, 0));
  injected = nullptr;
  EXPECT_TRUE(file->close());
  return none.calls;
}

/// Else who opens the file after a crash of the node would not know of the log, and write.
TEST(Notice, IsAsDurableAsTheLogIsToBe) {
  EXPECT_EQ(durable_by_a_write(SyncScope::file), 0);
  EXPECT_EQ(durable_by_a_write(SyncScope::node), 3) << "the notice, its name, and its directory's";
}

struct Failing {
  CacheFlush policy = CacheFlush::immediate;
  int os_errno = 0;
};

class EverySystemCall
    : public ::testing::TestWithParam<std::tuple<Device, Side, Failing, bool, bool>> {};

TEST_P(EverySystemCall, MayFailAndNothingIsLost) {
  const auto [device, side, failing, lasting, closes] = GetParam();
  const Case now{device, failing.policy, {side, failing.os_errno, lasting}, closes};
  auto calls = calls_that_failed([&now](CallKind kind, int nth) { return run(now, kind, nth); });
  for (const CallKind call : all_calls) {
    if (!CacheSite::is_made(call, side, device)) continue;
    EXPECT_GT(calls[call], 0) << to_string(call);
  }
}

INSTANTIATE_TEST_SUITE_P(
    LogsOnADisk, EverySystemCall,
    ::testing::Combine(::testing::Values(Device::disk), ::testing::Values(Side::node, Side::global),
                       ::testing::Values(Failing{CacheFlush::immediate, EIO},
                                         Failing{CacheFlush::immediate, ENOSPC},
                                         Failing{CacheFlush::onclose, EIO},
                                         Failing{CacheFlush::onclose, ENOSPC},
                                         Failing{CacheFlush::onsync, EIO},
                                         Failing{CacheFlush::deferred, ENOSPC}),
                       ::testing::Bool(), ::testing::Bool()));

INSTANTIATE_TEST_SUITE_P(
    LogsInMemory, EverySystemCall,
    ::testing::Combine(::testing::Values(Device::memory), ::testing::Values(Side::node),
                       ::testing::Values(Failing{CacheFlush::immediate, ENOSPC},
                                         Failing{CacheFlush::onclose, EIO},
                                         Failing{CacheFlush::onsync, ENOSPC},
                                         Failing{CacheFlush::deferred, EIO}),
                       ::testing::Bool(), ::testing::Bool()));

class EverySystemCallOfARecovery
    : public ::testing::TestWithParam<std::tuple<Device, Side, int, bool>> {};

TEST_P(EverySystemCallOfARecovery, MayFailAndTheNextOneBringsAllToTheFile) {
  const auto [device, side, os_errno, lasting] = GetParam();
  const Failure failure{side, os_errno, lasting};
  auto calls = calls_that_failed([device = device, &failure](CallKind kind, int nth) {
    return recover_twice(device, failure, kind, nth);
  });
  for (const CallKind call : {CallKind::open, CallKind::remove}) {
    EXPECT_GT(calls[call], 0) << to_string(call);
  }
  // Logs are read, and the file is written.
  const auto of_this_side = side == Side::node ? std::vector{CallKind::read}
                                               : std::vector{CallKind::write, CallKind::sync};
  for (const CallKind call : of_this_side) EXPECT_GT(calls[call], 0) << to_string(call);
}

INSTANTIATE_TEST_SUITE_P(Logs, EverySystemCallOfARecovery,
                         ::testing::Combine(::testing::Values(Device::disk, Device::memory),
                                            ::testing::Values(Side::node, Side::global),
                                            ::testing::Values(EIO, ENOSPC), ::testing::Bool()));

}  // namespace
}  // namespace forebay
