// Goal: whatever fails and whenever a process or the machine dies, bytes that were acknowledged and
// synced are in the file after a recovery, nothing is replayed by half, and nothing hangs.
// Method: one workload with every call to the log and to the file failing in turn, for one call or
// for good, in new segments and in old ones, and the process killed at the end, before the file is
// closed or where the close failed; the same with calls to the log's directory (and in
// system_calls_test with those of the operating system, at which killed_writer_test kills it); the
// power lost after every step of another one. Random schedules, of ranks that share a file, are in
// coherent_cache_power_test.

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <functional>
#include <mutex>

#include "core/engine/cache/cache_rig.hpp"
#include "core/engine/cache/crash_model.hpp"
#include "core/engine/cache/flush_mark.hpp"
#include "core/engine/cache/forwarding_log_store.hpp"
#include "core/engine/cache/possible_content.hpp"
#include "core/engine/cache/recovered_content.hpp"
#include "core/engine/cache/segment_reserve.hpp"

namespace forebay {
namespace {

using Content = std::vector<std::byte>;

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

class EveryCall
    : public ::testing::TestWithParam<std::tuple<CacheFlush, SyncScope, int, bool, bool>> {};

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
  const auto [policy, scope, os_errno, lasting, reused] = GetParam();
  int runs = 0;
  for (const bool local : {true, false}) {
    for (int kind = 0; kind < storage_calls; ++kind) {
      for (const bool closes : {false, true}) {
        // Which call is whose turn varies with the threads, so there may be one more or less.
        for (std::int64_t nth = 0; !HasFailure(); ++nth, ++runs) {
          SCOPED_TRACE(testing::Message() << (local ? "log, call " : "file, call ") << kind
                                          << ", number " << nth << ", closes " << closes);
          CacheRig rig = workload_rig(policy);
          rig.options.sync = scope;
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
                       ::testing::Values(SyncScope::file), ::testing::Values(EIO, ENOSPC),
                       ::testing::Bool(), ::testing::Bool()));

INSTANTIATE_TEST_SUITE_P(
    ErrorsOfLogsThatAreSynced, EveryCall,
    ::testing::Combine(::testing::Values(CacheFlush::immediate, CacheFlush::onclose),
                       ::testing::Values(SyncScope::node), ::testing::Values(EIO),
                       ::testing::Bool(), ::testing::Values(false)));

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

constexpr std::size_t most_bytes = 50'000;

/// Whatever changes a file, followed by a sync and by what else there is.
enum class Act { write, commit, sync, resize, allocate, through, back };
constexpr std::array acts = {Act::write,  Act::write,    Act::commit, Act::write,   Act::sync,
                             Act::resize, Act::sync,     Act::write,  Act::resize,  Act::write,
                             Act::sync,   Act::allocate, Act::sync,   Act::through, Act::write,
                             Act::back,   Act::sync,     Act::write};

void take(int step, CachedFile& file, CrashModel& model) {
  switch (acts[static_cast<std::size_t>(step) % acts.size()]) {
    case Act::write: {
      const ByteWrite write{step * 900, 4000, static_cast<std::byte>(1 + step)};
      ASSERT_TRUE(file.write_at(filled(4000, 1 + step), write.offset));
      model.write(write);
      break;
    }
    case Act::commit:
      ASSERT_TRUE(file.commit(file.epoch() + 1));
      break;
    case Act::sync:
      ASSERT_TRUE(file.sync());
      model.synced();
      break;
    case Act::resize: {
      const Bytes size = model.size() - 2500;
      ASSERT_TRUE(file.resize(size));
      model.resize(true, size);
      break;
    }
    case Act::allocate: {
      const Bytes size = model.size() + 1500;
      ASSERT_TRUE(file.allocate(size));
      model.allocate(true, size);
      break;
    }
    case Act::through:
    case Act::back:
      ASSERT_TRUE(file.set_write_through(acts[static_cast<std::size_t>(step) % acts.size()] ==
                                         Act::through));
      break;
  }
}

/// The power is lost after each step in turn. What was synced is there, whatever else is.
TEST_P(EveryStep, MayBeTheLastBeforeThePowerIsLost) {
  const auto [policy, scope, kind] = GetParam();
  constexpr int steps = 2 * static_cast<int>(acts.size());
  for (int last = 0; last < steps; ++last) {
    SCOPED_TRACE(last);
    CacheRig rig = workload_rig(policy);
    rig.options.sync = scope;
    CrashModel model(most_bytes, false);
    auto file = rig.open();
    for (int step = 0; step <= last && !HasFatalFailure(); ++step) take(step, *file, model);
    file.reset();
    std::mt19937_64 random(static_cast<unsigned>(last));
    const auto log = rig.log->after_crash(kind, random);
    const auto left = rig.file->after_crash(kind, random);
    EXPECT_EQ(model.wrong_after(recovered({log}, left, Incomplete::drop, true)), "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    PowerLost, EveryStep,
    ::testing::Combine(::testing::Values(CacheFlush::immediate, CacheFlush::onclose),
                       ::testing::Values(SyncScope::file, SyncScope::node),
                       ::testing::Values(CrashKind::all_lost, CrashKind::partly_lost)));

}  // namespace
}  // namespace forebay
