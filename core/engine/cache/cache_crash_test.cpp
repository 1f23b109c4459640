// Goal: whatever fails and whenever a process or the machine dies, bytes that were acknowledged and
// synced are in the file after a recovery, nothing is replayed by half, and nothing hangs.
// Method: one workload with every call to the log and to the file failing in turn, for one call or
// for good, in new segments and in old ones, and the process killed at the end, before the file is
// closed or where the close failed; the same with calls to the log's directory (and in
// system_calls_test with those of the operating system); the power lost
// after every step; then random schedules of three ranks with a seed that is printed, against a
// model that knows of every byte which values it may have.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <mutex>

#include "core/engine/cache/cache_rig.hpp"
#include "core/engine/cache/flush_mark.hpp"
#include "core/engine/cache/forwarding_log_store.hpp"
#include "core/engine/cache/possible_content.hpp"
#include "core/engine/cache/replay.hpp"
#include "core/engine/cache/segment_reserve.hpp"

namespace forebay {
namespace {

using Content = std::vector<std::byte>;

Content filled(std::size_t size, int value) { return Content(size, static_cast<std::byte>(value)); }

/// Replays what is left of logs into what is left of the file.
Content recovered(const std::vector<std::shared_ptr<MemoryLog>>& logs,
                  const std::shared_ptr<VolatileInode>& file, Incomplete incomplete,
                  bool skip_damage = false) {
  std::vector<LogContents> contents;
  for (const auto& log : logs) {
    const auto store = log->open();
    auto read = read_log(*store, ReadDepth::payloads);
    if (read) {
      contents.push_back(std::move(*read));
    } else {
      EXPECT_EQ(read.error().kind, ErrorKind::no_such_file) << to_string(read.error());
    }
  }
  const auto opened = open_volatile_file(file);
  std::vector<Content> after;
  for (int i = 0; i < 2; ++i) {
    const auto report =
        replay(*opened, contents, {.incomplete = incomplete, .skip_damage = skip_damage});
    EXPECT_TRUE(report) << to_string(report.error());
    after.push_back(file->content());
  }
  EXPECT_EQ(after[0], after[1]) << "the second time changes nothing";
  return file->content();
}

constexpr std::size_t workload_bytes = 22'000;

/// Writes with overlaps, commits, a sync and a cut, larger than what the log may hold. Returns what
/// the file may hold.
PossibleContent workload(CachedFile& file) {
  PossibleContent possible(workload_bytes);
  const auto write = [&](Bytes offset, std::size_t length, int number) {
    const bool acknowledged = file.write_at(filled(length, number), offset).has_value();
    possible.tried(acknowledged, offset, length, static_cast<std::byte>(number));
  };
  int value = 1;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    for (int i = 0; i < 3; ++i, ++value) write(epoch * 4000 + i * 3000, 4000, value);
    (void)file.commit(file.epoch() + 1);
    if (epoch == 1) (void)file.sync();
    if (epoch == 2) {
      constexpr std::size_t cut = 14'000;
      possible.tried(file.resize(cut).has_value(), cut, workload_bytes - cut, std::byte{0});
    }
  }
  return possible;
}

/// The workload, killed at its end, or closed if that can be done. Nothing that was acknowledged is
/// lost, with what is left of log and file. Returns whether it was closed.
bool run_workload(const CacheRig& rig, std::unique_ptr<CachedFile> file, bool closes) {
  const PossibleContent possible = workload(*file);
  const bool closed = closes && file->close();
  file.reset();  // With its threads, so that nothing changes any more.
  if (closed) {
    EXPECT_EQ(possible.wrong(rig.file->content()), "");
  }
  std::mt19937_64 random(1);  // NOLINT(bugprone-random-generator-seed)
  const auto log = rig.log->after_crash(CrashKind::process_killed, random);
  const auto left = rig.file->after_crash(CrashKind::process_killed, random);
  EXPECT_EQ(possible.wrong(recovered({log}, left, Incomplete::replay)), "");
  return closed;
}

CacheRig workload_rig(CacheFlush policy) {
  CacheRig rig;
  rig.options.flush = policy;
  rig.options.flush_threads = 1;
  rig.options.flush_bytes = 4 * KiB;
  rig.options.log = {16 * KiB, 1 * KiB};
  rig.capacity = std::make_shared<Resource>("cache.local", 4 * 16 * KiB);
  rig.options.patience = std::chrono::milliseconds(1);
  return rig;
}

std::shared_ptr<SegmentReserve> empty_reserve(const std::shared_ptr<Resource>& capacity) {
  auto reserve = std::make_shared<SegmentReserve>(
      [spare = std::make_shared<MemoryLog>()]() -> Result<std::unique_ptr<LogStore>> {
        return spare->open();
      });
  reserve->use(capacity);
  return reserve;
}

/// Segments of a log of another file, whose values no other file here has.
class OldSegments {
 public:
  OldSegments() {
    CacheRig rig = workload_rig(CacheFlush::onclose);
    rig.capacity = capacity_;
    rig.options.log.reserve = reserve_;
    const auto file = rig.open();
    for (int i = 0; i < 12; ++i)
      EXPECT_TRUE(file->write_at(filled(4000, 200 + i), Bytes{3000} * i));
    EXPECT_TRUE(file->close());
    EXPECT_GT(reserve_->held(), 0);
  }
  const std::shared_ptr<SegmentReserve>& reserve() const { return reserve_; }

 private:
  std::shared_ptr<Resource> capacity_ = std::make_shared<Resource>("cache.local", 64 * MiB);
  std::shared_ptr<SegmentReserve> reserve_ = empty_reserve(capacity_);
};

class EveryCall : public ::testing::TestWithParam<std::tuple<CacheFlush, int, bool, bool>> {};

/// The workload with the nth call of a kind failing, killed or closed. True: there was one.
bool run_with_fault(CacheRig rig, bool local, const Fault& fault, bool closes) {
  const auto plan = std::make_shared<FaultPlan>(std::vector<Fault>{fault});
  (local ? rig.log_plan : rig.file_plan) = plan;
  if (run_workload(rig, rig.open(), closes)) {
    EXPECT_TRUE(rig.log->destroyed());
  }
  return plan->fired() > 0;
}

TEST_P(EveryCall, MayFailAndNothingIsLost) {
  const auto [policy, os_errno, lasting, reused] = GetParam();
  int runs = 0;
  for (const bool local : {true, false}) {
    for (int kind = 0; kind < storage_calls; ++kind) {
      for (const bool closes : {false, true}) {
        // Which call is whose turn varies with the threads, so there may be one more or less.
        for (std::int64_t nth = 0; !HasFailure(); ++nth, ++runs) {
          SCOPED_TRACE(testing::Message() << (local ? "log, call " : "file, call ") << kind
                                          << ", number " << nth << ", closes " << closes);
          CacheRig rig = workload_rig(policy);
          std::optional<OldSegments> old;
          if (reused) rig.options.log.reserve = old.emplace().reserve();
          const Fault fault{.call = static_cast<StorageCall>(kind),
                            .nth = nth,
                            .os_errno = os_errno,
                            .after_bytes = 100,
                            .lasting = lasting};
          if (!run_with_fault(rig, local, fault, closes)) break;
        }
      }
    }
  }
  EXPECT_GT(runs, 100);
}

INSTANTIATE_TEST_SUITE_P(
    Errors, EveryCall,
    ::testing::Combine(::testing::Values(CacheFlush::immediate, CacheFlush::onclose),
                       ::testing::Values(EIO, ENOSPC), ::testing::Bool(), ::testing::Bool()));

/// The calls of LogStore but create(), which is among those of files. One of them fails, once or
/// from then on.
enum class NameCall { open, rename, move, remove, sync, destroy };
struct NameFault {
  NameCall call = NameCall::rename;
  int nth = 0;
  bool lasting = false;
  int os_errno = 0;
  int calls = 0;  ///< Of that kind, so far.

  Status meet(NameCall now) {
    if (now != call) return {};
    const int number = calls++;
    if (number != nth && !(lasting && number > nth)) return {};
    return tl::unexpected(error_from_errno(os_errno, "log"));
  }
};

class FaultyNames final : public ForwardingLogStore {
 public:
  FaultyNames(std::unique_ptr<LogStore> inner, std::shared_ptr<NameFault> fault)
      : ForwardingLogStore(std::move(inner)), fault_(std::move(fault)) {}
  Result<std::unique_ptr<StorageFile>> open(const std::string& name) override {
    if (auto met = meet(NameCall::open); !met) return tl::unexpected(met.error());
    return ForwardingLogStore::open(name);
  }
  Status move_to(LogStore& other, const std::string& name, const std::string& as) override {
    auto met = meet(NameCall::move);
    return met ? ForwardingLogStore::move_to(other, name, as) : met;
  }
  Status rename(const std::string& from, const std::string& to) override {
    auto met = meet(NameCall::rename);
    return met ? ForwardingLogStore::rename(from, to) : met;
  }
  Status remove(const std::string& name) override {
    auto met = meet(NameCall::remove);
    return met ? ForwardingLogStore::remove(name) : met;
  }
  Status sync() override {
    auto met = meet(NameCall::sync);
    return met ? ForwardingLogStore::sync() : met;
  }
  Status destroy() override {
    auto met = meet(NameCall::destroy);
    return met ? ForwardingLogStore::destroy() : met;
  }

 private:
  Status meet(NameCall call) {
    const std::scoped_lock lock(mutex_);
    return fault_->meet(call);
  }

  std::mutex mutex_;
  const std::shared_ptr<NameFault> fault_;
};

class EveryNameCall : public ::testing::TestWithParam<std::tuple<CacheFlush, NameCall, bool, int>> {
};

/// The workload on a log in the store that `made` makes of one, killed and closed.
void run_workload_on(
    CacheFlush policy,
    const std::function<std::unique_ptr<LogStore>(std::unique_ptr<LogStore>)>& made,
    const std::shared_ptr<SegmentReserve>& reserve = nullptr) {
  for (const bool closes : {false, true}) {
    CacheRig rig = workload_rig(policy);
    rig.options.log.reserve = reserve;
    LogIdentity identity;
    identity.log = "log-0";
    auto file = CachedFile::open(open_volatile_file(rig.file), made(rig.log->open()), identity,
                                 rig.capacity, rig.options);
    ASSERT_TRUE(file);
    run_workload(rig, std::move(*file), closes);
  }
}

TEST_P(EveryNameCall, MayFailAndNothingIsLost) {
  const auto [policy, call, lasting, os_errno] = GetParam();
  const auto run = [policy = policy](const NameFault& fault) {
    const auto shared = std::make_shared<NameFault>(fault);
    // It takes what the log does not need any more; else that is removed.
    const auto capacity = std::make_shared<Resource>("cache.local", 64 * MiB);
    const auto reserve = fault.call == NameCall::move ? empty_reserve(capacity) : nullptr;
    run_workload_on(
        policy,
        [&](std::unique_ptr<LogStore> store) {
          *shared = fault;
          return std::make_unique<FaultyNames>(std::move(store), shared);
        },
        reserve);
    return shared->calls;
  };
  const int calls = run({call, -1, false, 0});
  ASSERT_GT(calls, 0);
  for (int nth = 0; nth < calls; ++nth) {
    SCOPED_TRACE(nth);
    run({call, nth, lasting, os_errno});
  }
}

INSTANTIATE_TEST_SUITE_P(
    Errors, EveryNameCall,
    ::testing::Combine(::testing::Values(CacheFlush::immediate, CacheFlush::onclose),
                       ::testing::Values(NameCall::open, NameCall::rename, NameCall::move,
                                         NameCall::remove, NameCall::sync, NameCall::destroy),
                       ::testing::Bool(), ::testing::Values(EIO, ENOSPC, EROFS)));

/// The flush mark has faults of its own.
class FaultyMark final : public ForwardingLogStore {
 public:
  FaultyMark(std::unique_ptr<LogStore> inner, std::shared_ptr<FaultPlan> plan)
      : ForwardingLogStore(std::move(inner)), plan_(std::move(plan)) {}
  Result<LogFile> create(const std::string& name, Bytes size) override {
    auto file = ForwardingLogStore::create(name, size);
    if (file && name == flush_mark_name)
      file->storage = make_faulty(std::move(file->storage), plan_);
    return file;
  }

 private:
  const std::shared_ptr<FaultPlan> plan_;
};

/// What is written after it failed must not be older than what the log is believed to hold.
TEST(CacheFlushMark, MayFailAndNothingIsLost) {
  for (const CacheFlush policy : {CacheFlush::immediate, CacheFlush::onclose}) {
    const auto run = [policy](const std::vector<Fault>& faults) {
      std::shared_ptr<FaultPlan> plan;
      run_workload_on(policy, [&](std::unique_ptr<LogStore> store) {
        plan = std::make_shared<FaultPlan>(faults);
        return std::make_unique<FaultyMark>(std::move(store), plan);
      });
      return plan;
    };
    const auto none = run({});
    for (const StorageCall call : {StorageCall::write, StorageCall::sync}) {
      ASSERT_GT(none->calls(call), 0);
      for (int nth = 0; nth < none->calls(call); ++nth) {
        for (const bool lasting : {false, true}) {
          SCOPED_TRACE(testing::Message() << "call " << nth << ", lasting " << lasting);
          run({{call, nth, EIO, 0, lasting}});
        }
      }
    }
  }
}

class EveryStep : public ::testing::TestWithParam<std::tuple<CacheFlush, SyncScope, CrashKind>> {};

/// Writes with overlaps, commits, and every so often a sync; the power is lost after each step in
/// turn. What was synced is there, whatever else is.
TEST_P(EveryStep, MayBeTheLastBeforeThePowerIsLost) {
  const auto [policy, scope, kind] = GetParam();
  constexpr std::size_t size = 40'000;
  constexpr int steps = 36;
  for (int last = 0; last < steps; ++last) {
    SCOPED_TRACE(last);
    CacheRig rig = workload_rig(policy);
    rig.options.sync = scope;
    PossibleContent possible(size);
    Content now(size);
    auto file = rig.open();
    for (int step = 0; step <= last; ++step) {
      if (step % 6 == 4) {
        ASSERT_TRUE(file->commit(file->epoch() + 1));
      } else if (step % 6 == 5) {
        ASSERT_TRUE(file->sync());
        for (std::size_t i = 0; i < size; ++i) possible.written(static_cast<Bytes>(i), 1, now[i]);
      } else {
        const Bytes offset = step / 6 * 4000 + step % 6 * 3000;
        ASSERT_TRUE(file->write_at(filled(4000, 1 + step), offset));
        possible.may_be_written(offset, 4000, static_cast<std::byte>(1 + step));
        std::fill_n(now.begin() + offset, 4000, static_cast<std::byte>(1 + step));
      }
    }
    file.reset();
    std::mt19937_64 random(static_cast<unsigned>(last));
    const auto log = rig.log->after_crash(kind, random);
    const auto left = rig.file->after_crash(kind, random);
    EXPECT_EQ(possible.wrong(recovered({log}, left, Incomplete::drop, true)), "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    PowerLost, EveryStep,
    ::testing::Combine(::testing::Values(CacheFlush::immediate, CacheFlush::onclose),
                       ::testing::Values(SyncScope::file, SyncScope::node),
                       ::testing::Values(CrashKind::all_lost, CrashKind::partly_lost)));

/// A rank of a schedule. Ranks own alternate stripes of the file.
constexpr Bytes stripe = 4096;
constexpr int ranks = 3;
constexpr std::size_t file_bytes = 16 * stripe;

struct Schedule {
  std::uint64_t seed = 0;
  std::mt19937_64 random;

  explicit Schedule(std::uint64_t number) : seed(number), random(number) {}
  int below(int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); }
};

void run_schedule(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Schedule schedule(seed);
  const auto file = std::make_shared<VolatileInode>(StripeLayout{stripe, 2, false}, "volatile");
  CacheRig::Content now(file_bytes);     // What the ranks see.
  PossibleContent possible(file_bytes);  // After a crash of this kind, with this choice.
  CacheRig::Content committed(file_bytes);

  const auto kind = static_cast<CrashKind>(schedule.below(3));
  const bool node_sync = schedule.below(3) == 0;
  const auto incomplete = schedule.below(2) == 0 ? Incomplete::drop : Incomplete::replay;
  const bool killed = kind == CrashKind::process_killed;
  const auto capacity =
      std::make_shared<Resource>("cache.local", schedule.below(2) == 0 ? 24 * 16 * KiB : 64 * MiB);
  // What is in memory alone is not there after the power was lost.
  std::optional<OldSegments> old;
  if (killed && seed % 2 == 0) old.emplace();
  const TrialRig trial;
  std::vector<CacheRig> rigs(ranks);
  std::vector<std::unique_ptr<CachedFile>> files;
  for (int rank = 0; rank < ranks; ++rank) {
    CacheRig& rig = rigs[static_cast<std::size_t>(rank)];
    rig.rank = rank;
    rig.file = file;
    rig.capacity = capacity;
    rig.options.log = {16 * KiB, stripe};
    if (old) rig.options.log.reserve = old->reserve();
    rig.options.flush = schedule.below(2) == 0 ? CacheFlush::immediate : CacheFlush::onclose;
    rig.options.sync = node_sync ? SyncScope::node : SyncScope::file;
    if (seed % 4 < 2) rig.options.trial = trial.trial;
    files.push_back(rig.open());
  }

  std::uint64_t epoch = 1;
  const int steps = schedule.below(60);
  for (int step = 0; step < steps; ++step) {
    if (step == steps / 3) trial.lose();
    const int rank = schedule.below(ranks);
    CachedFile& mine = *files[static_cast<std::size_t>(rank)];
    switch (schedule.below(8)) {
      case 0:  // The end of a collective call.
        ++epoch;
        for (const auto& each : files) ASSERT_TRUE(each->commit(epoch));
        committed = now;
        if (killed) {
          for (std::size_t i = 0; i < file_bytes; ++i) {
            possible.written(static_cast<Bytes>(i), 1, now[i]);
          }
        }
        break;
      case 1:
        for (const auto& each : files) ASSERT_TRUE(each->sync());
        committed = now;
        for (std::size_t i = 0; i < file_bytes; ++i) {
          possible.written(static_cast<Bytes>(i), 1, now[i]);
        }
        break;
      case 2: {
        Content back(file_bytes);
        const Bytes offset = schedule.below(static_cast<int>(file_bytes / stripe)) * stripe;
        CachedFile& owner = *files[static_cast<std::size_t>(offset / stripe % ranks)];
        const auto got = owner.read_at(std::span(back).first(stripe), offset);
        ASSERT_TRUE(got);
        for (Bytes i = 0; i < *got; ++i) {
          ASSERT_EQ(back[static_cast<std::size_t>(i)], now[static_cast<std::size_t>(offset + i)]);
        }
        break;
      }
      case 3:
        ASSERT_TRUE(mine.drain());
        break;
      default: {
        const int stripes = static_cast<int>(file_bytes / stripe);
        int number = schedule.below(stripes);
        number -= (number - rank % ranks + ranks) % ranks;
        if (number < 0) number += ranks;
        const Bytes begin = schedule.below(stripe);
        const Bytes length = 1 + schedule.below(static_cast<int>(stripe - begin));
        const auto value = static_cast<std::byte>(1 + schedule.below(255));
        const Bytes offset = number * stripe + begin;
        ASSERT_EQ(offset / stripe % ranks, rank);
        ASSERT_TRUE(mine.write_at(
            filled(static_cast<std::size_t>(length), std::to_integer<int>(value)), offset));
        std::fill_n(now.begin() + offset, length, value);
        if (killed && incomplete == Incomplete::replay) {
          possible.written(offset, static_cast<std::size_t>(length), value);
        } else {
          possible.may_be_written(offset, static_cast<std::size_t>(length), value);
        }
      }
    }
  }
  // The logs first: what is flushed meanwhile is in the log and in the file, not in neither.
  std::vector<std::shared_ptr<MemoryLog>> logs;
  for (const CacheRig& rig : rigs) logs.push_back(rig.log->after_crash(kind, schedule.random));
  const auto left = file->after_crash(kind, schedule.random);
  files.clear();
  // What a node that loses power had not synced may be missing anywhere, and then is damage.
  const Content content = recovered(logs, left, incomplete, !killed);
  EXPECT_EQ(possible.wrong(content), "");
}

TEST(CacheSchedules, KeepWhatWasPromisedWhateverHappens) {
  constexpr std::uint64_t first_seed = 1;
  constexpr std::uint64_t schedules = 200;
  RecordProperty("first_seed", std::to_string(first_seed));
  std::cout << "schedules with seeds " << first_seed << " to " << first_seed + schedules - 1
            << "\n";
  for (std::uint64_t seed = first_seed; seed < first_seed + schedules; ++seed) {
    run_schedule(seed);
    if (HasFailure()) {
      std::cout << "the first to fail has seed " << seed << "\n";
      return;
    }
  }
}

}  // namespace
}  // namespace forebay
