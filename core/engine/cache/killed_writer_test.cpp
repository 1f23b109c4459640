// Goal: wherever a program is killed that writes to a file through the cache, a recovery leaves
// every byte as the newest write that was acknowledged made it, or as the one that was under way,
// and no log. A recovery that drops what is incomplete does so of what was committed. As long as
// bytes are missing from the file, a notice says so.
// Method: one workload on a real log, a real file and its notice, in a process of its own, which is
// killed at each call of the operating system in turn, until it ends by itself: before the call,
// and where that writes, once half of its bytes are written. Most records are written by a call of
// their own, and so is every mark: the process dies between any two of them, and in the middle of
// each. It tells in shared memory how far it was. Recoveries drop and replay in turn. Logs are on a
// disk, where segments are new or were the same log's before, and in memory, where the first ones
// were an earlier log's. What that had filled of them is mapped, and records are copied there
// without a call: the process dies between any two accesses as well, and log_crash_test cuts such
// segments at and within every record.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "core/engine/cache/cache_site.hpp"
#include "core/engine/cache/crash_model.hpp"
#include "core/engine/cache/intercepted_calls.hpp"
#include "core/storage/child_rig.hpp"

namespace forebay {
namespace {

using Device = CacheSite::Device;
using Side = CacheSite::Side;

/// No byte of the file lies behind it.
constexpr std::size_t room = 6000;

struct Step {
  enum class Kind { write, read, commit, sync, resize, allocate, close };
  Kind kind = Kind::write;
  ByteWrite write = {};  ///< Or what is read; a size is its offset.
};

constexpr Step write_of(int value, Bytes offset, Bytes length) {
  return {Step::Kind::write, {offset, length, static_cast<std::byte>(value)}};
}
constexpr Step read_of(Bytes offset, Bytes length) { return {Step::Kind::read, {offset, length}}; }
constexpr Step size_of(Step::Kind kind, Bytes size) { return {kind, {.offset = size}}; }

constexpr std::array steps = {
    // One record each, since a payload ends where a KiB does. The sync leaves a segment that is
    // half full, which is used again.
    write_of(1, 0, 1024),
    write_of(2, 1024, 900),
    Step{Step::Kind::commit},
    write_of(3, 500, 500),
    write_of(4, 2048, 1024),
    write_of(5, 4096, 1024),
    Step{Step::Kind::sync},
    // The cut brings all to the file before.
    write_of(6, 1000, 5000),
    Step{Step::Kind::commit},
    write_of(7, 100, 800),
    read_of(0, 3000),
    size_of(Step::Kind::resize, 3000),
    // More than the log may hold on a disk.
    write_of(8, 0, 6000),
    Step{Step::Kind::commit},
    write_of(9, 0, 5500),
    write_of(10, 200, 5800),
    Step{Step::Kind::commit},
    write_of(11, 0, 6000),
    write_of(12, 3072, 1024),
    write_of(13, 0, 5800),
    write_of(14, 0, 5000),
    size_of(Step::Kind::allocate, 6000),
    Step{Step::Kind::close},
};

bool take(const Step& step, CachedFile& file) {
  const ByteWrite& write = step.write;
  std::vector<std::byte> bytes(static_cast<std::size_t>(write.length), write.value);
  switch (step.kind) {
    case Step::Kind::write:
      return file.write_at(bytes, write.offset).has_value();
    case Step::Kind::read:
      return file.read_at(bytes, write.offset).has_value();
    case Step::Kind::commit:
      return file.commit(file.epoch() + 1).has_value();
    case Step::Kind::sync:
      return file.sync().has_value();
    case Step::Kind::resize:
      return file.resize(write.offset).has_value();
    case Step::Kind::allocate:
      return file.allocate(write.offset).has_value();
    case Step::Kind::close:
      return file.close().has_value();
  }
  return false;
}

void take(const Step& step, bool acknowledged, CrashModel& model) {
  switch (step.kind) {
    case Step::Kind::read:
      return;
    case Step::Kind::write:
      acknowledged ? model.write(step.write) : model.write_at_once({}, {&step.write, 1});
      return;
    case Step::Kind::allocate:
      model.allocate(acknowledged, step.write.offset);
      return;
    case Step::Kind::resize:
      model.resize(acknowledged, step.write.offset);
      break;
    case Step::Kind::commit:
    case Step::Kind::sync:
    case Step::Kind::close:
      break;
  }
  // What was before is committed, which outlives a process as what is synced does a machine.
  if (acknowledged) model.synced();
}

/// By the process, for who finds it dead.
struct Told {
  std::atomic<std::size_t> begun{0};  ///< Steps.
  std::atomic<std::size_t> done{0};
};

/// When the process is killed: at a call, or before a step.
struct Death {
  Side side = Side::node;
  CallKind kind = CallKind::open;
  int nth = INT_MAX;  ///< Of such calls.
  Fate fate = Fate::kills;
  std::size_t step = steps.size();
};

struct Case {
  Device device = Device::disk;
  CacheFlush policy = CacheFlush::immediate;
  Incomplete incomplete = Incomplete::drop;
};

/// All that the process does. Returns its exit status.
int write_file(CacheSite& place, const Case& now, const Death& death, Told& told) {
  place.begin_process();
  Injected plan{
      .place = place.side(death.side), .kind = death.kind, .nth = death.nth, .fate = death.fate};
  injected = &plan;
  const auto file = place.open(now.policy, CacheSite::scope_of(now.policy));
  if (file == nullptr) return 2;
  for (const Step& step : steps) {
    if (told.begun == death.step) kill_this_process();
    ++told.begun;
    // And one that is deferred begins with the close.
    if (step.kind == Step::Kind::close && now.policy == CacheFlush::deferred) {
      file->start_draining();
    }
    if (!take(step, *file)) return 3;
    ++told.done;
  }
  return testing::Test::HasFailure() ? 1 : 0;
}

CrashModel model_of(const Told& told, Incomplete incomplete) {
  CrashModel model(room, incomplete == Incomplete::replay);
  for (std::size_t i = 0; i < told.begun; ++i) take(steps[i], i < told.done, model);
  return model;
}

/// One process, and what a recovery makes of what it left. False: it was not killed.
bool kill_and_recover(const Case& now, const Death& death) {
  CacheSite place(now.device);
  const SharedWithChildren<Told> told;
  const pid_t process = ::fork();
  if (process == 0) ::_exit(write_file(place, now, death, *told));
  int status = 0;
  EXPECT_EQ(::waitpid(process, &status, 0), process);
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  EXPECT_TRUE(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << "status " << status;
  EXPECT_TRUE(killed || !place.has_notice());
  SCOPED_TRACE(testing::Message() << told->begun << " steps begun, " << told->done << " done");
  const CrashModel model = model_of(*told, now.incomplete);
  const std::string missing = model.wrong_after(place.content());
  EXPECT_TRUE(missing.empty() || place.has_notice()) << missing;
  place.recover(now.incomplete);
  EXPECT_EQ(model.wrong_after(place.content()), "");
  EXPECT_TRUE(place.logs().empty());
  return killed;
}

class KilledWriter : public ::testing::TestWithParam<std::tuple<Device, CacheFlush>> {
 protected:
  /// At one call of that kind after the other, as many as there are. Which one is whose turn varies
  /// with the threads.
  static int kills(Side side, CallKind kind, Fate fate) {
    const auto [device, policy] = GetParam();
    Death death{.side = side, .kind = kind, .fate = fate};
    for (death.nth = 0; !HasFailure(); ++death.nth) {
      SCOPED_TRACE(testing::Message() << (side == Side::node ? "node" : "global") << ", "
                                      << to_string(kind) << ", number " << death.nth);
      // What is dropped before a write is replayed in its middle, and the other way round.
      const bool drops = (death.nth % 2 == 0) == (fate == Fate::kills);
      const Incomplete incomplete = drops ? Incomplete::drop : Incomplete::replay;
      if (!kill_and_recover({device, policy, incomplete}, death)) break;
    }
    return death.nth;
  }
};

TEST_P(KilledWriter, LosesNothingAtAnyCall) {
  for (const Side side : {Side::node, Side::global}) {
    std::map<CallKind, int> times;
    // What is read, mapped or made durable leaves nothing else to a recovery.
    for (const CallKind call :
         {CallKind::open, CallKind::make_directory, CallKind::allocate, CallKind::write,
          CallKind::resize, CallKind::rename, CallKind::remove}) {
      times[call] = kills(side, call, Fate::kills);
      if (!CacheSite::is_made(call, side, std::get<Device>(GetParam()))) continue;
      EXPECT_GT(times[call], 0) << to_string(call);
    }
    if (side == Side::global) continue;
    // A segment has its storage once, and a name for each use. The flush mark and the status have
    // storage, too.
    EXPECT_GT(times[CallKind::rename], times[CallKind::allocate] - 2);
    EXPECT_GT(times[CallKind::write], 15);
  }
}

TEST_P(KilledWriter, LosesNothingInTheMiddleOfAnyWrite) {
  EXPECT_GT(kills(Side::node, CallKind::write, Fate::kills_within), 15);
  EXPECT_GT(kills(Side::global, CallKind::write, Fate::kills_within), 3);
}

constexpr auto policies = {CacheFlush::immediate, CacheFlush::onsync, CacheFlush::onclose,
                           CacheFlush::deferred};

INSTANTIATE_TEST_SUITE_P(Logs, KilledWriter,
                         ::testing::Combine(::testing::Values(Device::disk, Device::memory),
                                            ::testing::ValuesIn(policies)));

/// On a disk the log is written by calls alone.
class KilledWriterInMemory : public ::testing::TestWithParam<std::tuple<CacheFlush, Incomplete>> {};

TEST_P(KilledWriterInMemory, LosesNothingBetweenAnyTwoAccesses) {
  const auto [policy, incomplete] = GetParam();
  for (std::size_t step = 0; step < steps.size() && !HasFailure(); ++step) {
    SCOPED_TRACE(step);
    EXPECT_TRUE(kill_and_recover({Device::memory, policy, incomplete}, {.step = step}));
  }
}

INSTANTIATE_TEST_SUITE_P(Logs, KilledWriterInMemory,
                         ::testing::Combine(::testing::ValuesIn(policies),
                                            ::testing::Values(Incomplete::drop,
                                                              Incomplete::replay)));

}  // namespace
}  // namespace forebay
