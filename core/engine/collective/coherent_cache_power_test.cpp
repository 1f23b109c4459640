// Goal: when ranks write into each other's bytes, cut the file and close it, and all of them are
// killed at once or their machine loses power, wherever they are: a recovery leaves of every byte
// what was promised, never what is older, and after a sync or a close the length that the file had.
// Method: examples of what goes past logs; then random schedules from seeds that are printed, and
// with SCHEDULE_SEEDS=N or N-M in the environment of those seeds alone. Ranks are threads, of one
// host or as if of several; they take turns, or write all at once; files are in memory and stop to
// change at some change that the schedule names, often one of the close. What is read meanwhile,
// and what a recovery makes of what is left, is compared with a model that knows of every byte
// which values it may have.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/engine/cache/cache_rig.hpp"
#include "core/engine/cache/crash_model.hpp"
#include "core/engine/cache/recovered_content.hpp"
#include "core/engine/cache/schedule_seeds.hpp"
#include "core/engine/collective/coherent_cache_power_rig.hpp"
#include "core/engine/collective/coherent_cache_steps.hpp"
#include "core/engine/collective/thread_exchange.hpp"

namespace forebay {
namespace {

using Content = std::vector<std::byte>;

constexpr int ranks = CacheStep::ranks;
constexpr Bytes longest = 2 * cache_granule;
constexpr Bytes last_offset = 16 * cache_granule;
/// Where ranks write together, each does behind the one before.
constexpr Bytes room = last_offset + ranks * longest;

struct Schedule {
  CacheFlush flush = CacheFlush::immediate;
  SyncScope scope = SyncScope::file;
  CrashKind crash = CrashKind::process_killed;
  Incomplete incomplete = Incomplete::drop;
  StripeLayout layout;
  Bytes capacity = 64 * MiB;
  bool trial = false;
  int ranks_per_host = ranks;
  std::vector<CacheStep> steps;
  std::size_t last = 0;      ///< In this step the power goes off, if it goes off in one.
  std::int64_t changes = 0;  ///< After so many in it.

  explicit Schedule(std::uint64_t seed) : random_(seed) {
    flush = std::array{CacheFlush::immediate, CacheFlush::onsync, CacheFlush::onclose,
                       CacheFlush::deferred, CacheFlush::none}[any(5)];
    if (any(2) == 0) scope = SyncScope::node;
    crash = static_cast<CrashKind>(any(3));
    if (any(2) == 0) incomplete = Incomplete::replay;
    if (any(2) == 0) layout = {cache_granule, 2, false};
    if (any(3) == 0) capacity = 384 * KiB;
    trial = scope == SyncScope::file && flush != CacheFlush::none && any(4) == 0;
    ranks_per_host = std::array{ranks, 2, 1}[seed % 3];
    bool is_atomic = false;
    for (std::size_t i = any(30); i > 0; --i) {
      steps.push_back(any_step(is_atomic));
      if (steps.back().kind == CacheStep::Kind::atomic) is_atomic = true;
      if (steps.back().kind == CacheStep::Kind::not_atomic) is_atomic = false;
    }
    const bool closes = any(4) != 0;
    if (closes) steps.push_back({.kind = CacheStep::Kind::close});
    last = closes && any(2) == 0 ? steps.size() - 1 : any(steps.size() + 1);
    changes = static_cast<std::int64_t>(any(any(2) == 0 ? 10 : 60));
  }

  bool killed() const { return crash == CrashKind::process_killed; }

  std::string told() const {
    std::ostringstream text;
    text << "flush " << static_cast<int>(flush) << ", scope " << static_cast<int>(scope)
         << ", crash " << static_cast<int>(crash) << ", incomplete " << static_cast<int>(incomplete)
         << ", capacity " << capacity << ", trial " << trial << ", power off in step " << last
         << " after " << changes << " changes; steps";
    for (const CacheStep& step : steps) {
      text << "\n  " << static_cast<int>(step.kind) << " of " << step.rank << ":";
      const auto tell = [&text](const ByteWrite& write) {
        text << " [" << write.offset << ", " << write.offset + write.length << ") "
             << std::to_integer<int>(write.value);
      };
      if (step.kind != CacheStep::Kind::write_at_once) tell(step.write);
      for (const auto& writes : step.at_once) std::ranges::for_each(writes, tell);
    }
    return text.str();
  }

 private:
  std::size_t any(std::size_t below) { return random_() % below; }

  ByteWrite any_write() {
    return {static_cast<Bytes>(any(last_offset)), 1 + static_cast<Bytes>(any(longest)),
            static_cast<std::byte>(1 + any(255))};
  }
  CacheStep any_step(bool is_atomic) {
    CacheStep step{.rank = static_cast<int>(any(ranks)), .write = any_write()};
    using enum CacheStep::Kind;
    constexpr std::array kinds = {write,  write,  write,          write,          write,
                                  write,  write,  write_together, write_together, write_at_once,
                                  read,   read,   read,           sync,           sync,
                                  settle, resize, resize,         allocate,       give_up};
    step.kind = kinds[any(kinds.size())];
    if (step.kind == give_up && any(4) != 0) step.kind = is_atomic ? not_atomic : atomic;
    if (step.kind == write_at_once) {
      for (auto& writes : step.at_once) {
        for (int i = 0; i < 4; ++i) writes.push_back(any_write());
      }
    }
    return step;
  }

  std::mt19937_64 random_;
};

class CoherentCachePower : public CacheTest {
 protected:
  void run(std::uint64_t seed);
};

void CoherentCachePower::run(std::uint64_t seed) {
  const Schedule schedule(seed);
  PoweredRig rig(ranks, path_, schedule.layout);
  rig.capacity = std::make_shared<Resource>("cache.local", schedule.capacity);
  rig.options.flush = schedule.flush;
  rig.options.sync = schedule.scope;
  if (schedule.flush == CacheFlush::deferred) rig.options.lull = std::chrono::milliseconds(1);
  const TrialRig trial;
  if (schedule.trial) rig.options.trial = trial.trial;

  std::vector<StepOutcome> outcomes(schedule.steps.size());
  std::size_t taken = 0;
  run_ranks(
      ranks, schedule.ranks_per_host,
      [&](const std::shared_ptr<Exchange>& exchange) {
        const auto opened = rig.open(*exchange);
        ASSERT_NE(opened->cache, nullptr) << opened->notes.at(0);
        StepTaker rank(*exchange, *opened->cache, rig.power, schedule.flush, room);
        const bool first = exchange->rank() == 0;
        for (std::size_t step = 0; step < schedule.steps.size(); ++step) {
          if (first && step == schedule.steps.size() / 3) trial.lose();
          if (first && step == schedule.last) rig.power.stops_after(schedule.changes);
          exchange->barrier();
          if (first) taken = step + 1;
          if (!rank.take(schedule.steps[step], outcomes[step])) break;
        }
        exchange->barrier();
        if (first) rig.power.stops_after(0);
        exchange->barrier();  // And nobody goes before.
      },
      schedule.ranks_per_host);

  SCOPED_TRACE(schedule.told());
  CrashModel model(room, schedule.killed());
  for (std::size_t step = 0; step < taken; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    for (const std::string& failed : outcomes[step].failed) EXPECT_EQ(failed, "");
    tell(schedule.steps[step], outcomes[step], model);
  }
  std::mt19937_64 random(seed);
  const auto left = rig.after_crash(schedule.crash, random);
  // What a node that loses power had not synced may be missing anywhere, and then is damage.
  const Content content = recovered(left.logs, left.file, schedule.incomplete, !schedule.killed());
  EXPECT_EQ(model.wrong_after(content), "");
}

TEST_F(CoherentCachePower, LeavesWhatWasPromisedWhereverItGoesOff) {
  run_schedules(200, [this](std::uint64_t seed) { run(seed); });
}

/// What rank 0 does to the file itself, while it has a log or before it has one.
TEST_F(CoherentCachePower, ASyncToTheNodeMakesDurableWhatWentPastTheLogs) {
  struct Case {
    const char* name;
    std::function<void(CoherentCache&, FileModel&)> change;
    bool is_atomic = false;
  };
  const std::array cases = {
      Case{"empties the file",
           [](CoherentCache& cache, FileModel& model) {
             EXPECT_TRUE(cache.resize(0));
             model.resize(0);
           }},
      Case{"lengthens the file",
           [](CoherentCache& cache, FileModel& model) {
             EXPECT_TRUE(cache.resize(9 * cache_granule));
             model.resize(9 * cache_granule);
           }},
      Case{"gets storage",
           [](CoherentCache& cache, FileModel& model) {
             EXPECT_TRUE(cache.allocate(9 * cache_granule));
             model.allocate(9 * cache_granule);
           }},
      Case{"writes in atomic mode",
           [](CoherentCache& cache, FileModel& model) {
             const Content bytes(100, std::byte{4});
             EXPECT_TRUE(cache.write_at(bytes, 3 * cache_granule));
             model.write(3 * cache_granule, bytes);
           },
           true},
  };
  for (const Case& now : cases) {
    for (const bool has_log : {true, false}) {
      SCOPED_TRACE(testing::Message() << now.name << ", has a log " << has_log);
      const Content old(static_cast<std::size_t>(8 * cache_granule), std::byte{1});
      PoweredRig rig(2, path_);
      rig.file = std::make_shared<VolatileInode>(old, StripeLayout{}, path_);
      rig.options.sync = SyncScope::node;
      rig.options.flush = CacheFlush::onclose;
      FileModel model;
      model.write(0, old);
      run_ranks(2, 2, [&](const std::shared_ptr<Exchange>& exchange) {
        const auto opened = rig.open(*exchange);
        CoherentCache& cache = *opened->cache;
        const bool first = exchange->rank() == 0;
        const Content bytes(100, static_cast<std::byte>(2 + exchange->rank()));
        const auto write = [&] {
          EXPECT_TRUE(cache.write_at(bytes, exchange->rank() * cache_granule));
          EXPECT_TRUE(cache.commit());
        };
        if (has_log || !first) write();
        if (now.is_atomic) {
          EXPECT_TRUE(cache.set_atomic(true));
        }
        EXPECT_TRUE(cache.settle());
        exchange->barrier();
        if (first) {
          now.change(cache, model);
          for (int rank = 0; rank < 2; ++rank) {
            model.write(rank * cache_granule, Content(100, static_cast<std::byte>(2 + rank)));
          }
        }
        exchange->barrier();
        if (now.is_atomic) {
          EXPECT_TRUE(cache.set_atomic(false));
        }
        exchange->barrier();
        write();
        exchange->barrier();
        EXPECT_TRUE(cache.sync());
        exchange->barrier();
        if (first) rig.power.stops_after(0);
        exchange->barrier();
      });
      std::mt19937_64 random(1);  // NOLINT(bugprone-random-generator-seed)
      const auto left = rig.after_crash(CrashKind::all_lost, random);
      EXPECT_EQ(recovered(left.logs, left.file, Incomplete::drop), model.content());
    }
  }
}

}  // namespace
}  // namespace forebay
