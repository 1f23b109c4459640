// Goal: whichever call to the log of a rank or to the file that ranks share fails, for want of
// space or by an error of the device, once or from then on: all ranks return, what they read is
// right, and what was acknowledged is in the file after a close that succeeded, or comes back with
// a recovery. A log that takes no more costs no call of the program, and turns all ranks to the
// file.
// Method: one workload of ranks that write into each other's granules, once for every call that it
// makes. Ranks are threads, of one host or as if of several; files are in memory. In the end the
// file is closed or not, and then processes are killed or the machine loses power. Not all settings
// are combined: every two values of two settings meet. What is read meanwhile, and what is left, is
// compared with a model that knows of every byte which values it may have.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/engine/cache/crash_model.hpp"
#include "core/engine/cache/recovered_content.hpp"
#include "core/engine/collective/coherent_cache_power_rig.hpp"
#include "core/engine/collective/coherent_cache_steps.hpp"
#include "core/engine/collective/thread_exchange.hpp"
#include "core/storage/faulty_file.hpp"

namespace forebay {
namespace {

using Content = std::vector<std::byte>;
using Kind = CacheStep::Kind;

constexpr int ranks = CacheStep::ranks;
constexpr Bytes granule = cache_granule;
constexpr Bytes room = 12 * granule;

struct Setting {
  CacheFlush flush;
  SyncScope scope;
  int os_errno;
  bool lasting;
  std::size_t log;  ///< If it is a log that fails: of this rank.
  int ranks_per_host;
  bool closes;
  CrashKind crash;
  Incomplete incomplete;

  constexpr std::array<int, 9> values() const {
    return {static_cast<int>(flush),   static_cast<int>(scope), os_errno,
            static_cast<int>(lasting), static_cast<int>(log),   ranks_per_host,
            static_cast<int>(closes),  static_cast<int>(crash), static_cast<int>(incomplete)};
  }
};

constexpr auto file = SyncScope::file;
constexpr auto node = SyncScope::node;
constexpr auto killed = CrashKind::process_killed;
constexpr auto lost = CrashKind::partly_lost;
constexpr auto drop = Incomplete::drop;
constexpr auto replayed = Incomplete::replay;
constexpr std::array settings = {
    Setting{CacheFlush::immediate, file, EIO, true, 0, 1, true, killed, drop},
    Setting{CacheFlush::immediate, file, ENOSPC, true, 1, 3, true, lost, replayed},
    Setting{CacheFlush::immediate, node, ENOSPC, false, 2, 1, false, killed, replayed},
    Setting{CacheFlush::onclose, node, ENOSPC, false, 0, 3, false, lost, replayed},
    Setting{CacheFlush::onclose, node, EIO, true, 1, 1, false, killed, drop},
    Setting{CacheFlush::onclose, file, EIO, false, 2, 3, true, lost, drop},
    Setting{CacheFlush::deferred, node, ENOSPC, true, 0, 3, false, killed, replayed},
    Setting{CacheFlush::deferred, node, EIO, false, 1, 3, true, killed, replayed},
    Setting{CacheFlush::deferred, file, ENOSPC, true, 2, 1, false, lost, drop},
};

constexpr bool every_two_values_meet() {
  for (std::size_t a = 0; a < 9; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      for (const Setting& one : settings) {
        for (const Setting& other : settings) {
          const bool meet = std::ranges::any_of(settings, [&](const Setting& now) {
            return now.values()[a] == one.values()[a] && now.values()[b] == other.values()[b];
          });
          if (!meet) return false;
        }
      }
    }
  }
  return true;
}
static_assert(every_two_values_meet());

/// The last two collective writes are to bytes that nobody has written before.
std::vector<CacheStep> workload(bool closes) {
  int value = 0;
  const auto bytes = [&value](Bytes offset, Bytes length) {
    return ByteWrite{offset, length, static_cast<std::byte>(++value)};
  };
  const auto together = [&](Bytes offset, Bytes length) {
    return CacheStep{.kind = Kind::write_together, .write = bytes(offset, length)};
  };
  std::vector<CacheStep> steps = {
      together(0, granule),
      {.kind = Kind::write, .rank = 1, .write = bytes(granule / 2, granule)},
      {.kind = Kind::read, .rank = 2, .write = {1000, 2 * granule, {}}},
      {.kind = Kind::write_at_once,
       .at_once = {{{bytes(2000, 5000)}, {bytes(4000, 5000), bytes(6000, 100)}, {bytes(0, 3000)}}}},
      {.kind = Kind::sync},
      together(3 * granule, 3000),
      {.kind = Kind::resize, .write = {3 * granule + 5000, 0, {}}},
      together(3 * granule + 4000, 2000),
      {.kind = Kind::write, .rank = 2, .write = bytes(100, 5000)},
      {.kind = Kind::sync},
      {.kind = Kind::write, .rank = 0, .write = bytes(3 * granule, 2 * granule)},
      together(6 * granule, granule),
      together(9 * granule, granule),
      {.kind = Kind::read, .rank = 0, .write = {0, room, {}}},
  };
  if (closes) steps.push_back({.kind = Kind::close});
  return steps;
}

/// One call that fails, and what came of it.
struct Injected {
  bool local = false;  ///< A call to the log of one rank; else to the file.
  Fault fault;
  bool met = false;
  bool given_up = false;  ///< Logs, by any rank.
};

/// What a rank knew before a step, and whether all that it wrote then is in the file right after.
struct Seen {
  bool given_up = false;
  bool in_file = true;
};

bool holds(const Content& content, const ByteWrite& write) {
  if (static_cast<Bytes>(content.size()) < write.offset + write.length) return false;
  const auto first = content.begin() + write.offset;
  return std::all_of(first, first + write.length,
                     [&](std::byte found) { return found == write.value; });
}

class CoherentCacheFaults : public CacheTest, public ::testing::WithParamInterface<std::size_t> {
 protected:
  const Setting& setting() const { return settings.at(GetParam()); }
  void run(Injected& injected) const;
};

void CoherentCacheFaults::run(Injected& injected) const {
  PoweredRig rig(ranks, path_);
  rig.options.flush = setting().flush;
  rig.options.sync = setting().scope;
  if (setting().flush == CacheFlush::deferred) rig.options.lull = std::chrono::milliseconds(1);
  const auto plan = std::make_shared<FaultPlan>(std::vector<Fault>{injected.fault});
  (injected.local ? rig.log_plans.at(setting().log) : rig.file_plan) = plan;

  const std::vector<CacheStep> steps = workload(setting().closes);
  std::vector<StepOutcome> outcomes(steps.size());
  std::vector<std::array<Seen, ranks>> seen(steps.size());
  std::array<std::vector<std::string>, ranks> notes;
  run_ranks(
      ranks, setting().ranks_per_host,
      [&](const std::shared_ptr<Exchange>& exchange) {
        const auto me = static_cast<std::size_t>(exchange->rank());
        const auto opened = rig.open(*exchange);
        ASSERT_NE(opened->cache, nullptr) << opened->notes.at(0);
        StepTaker rank(*exchange, *opened->cache, rig.power, setting().flush, room);
        for (std::size_t step = 0; step < steps.size(); ++step) {
          Seen& mine = seen[step][me];
          mine.given_up = opened->cache->given_up();
          exchange->barrier();
          rank.take(steps[step], outcomes[step]);
          // Where all write at once, others may have written over it.
          if (!mine.given_up || steps[step].kind == Kind::write_at_once) continue;
          const Content content = rig.file->content();
          mine.in_file =
              std::ranges::all_of(outcomes[step].acknowledged[me],
                                  [&](const ByteWrite& write) { return holds(content, write); });
        }
        notes[me] = opened->cache->notes();
        exchange->barrier();
        if (me == 0) rig.power.stops_after(0);
        exchange->barrier();  // And nobody goes before.
      },
      setting().ranks_per_host);
  injected.met = plan->fired() > 0;

  CrashModel model(room, setting().crash == killed);
  const bool is_costless = injected.local && injected.fault.call != StorageCall::read;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    tell(steps[step], outcomes[step], model);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (is_costless) {
        EXPECT_EQ(outcomes[step].failed[rank], "");
      }
      EXPECT_TRUE(seen[step][rank].in_file) << "rank " << rank;
    }
  }
  const std::size_t read = steps.size() - (setting().closes ? 2 : 1);
  const auto knows = [](const Seen& rank) { return rank.given_up; };
  injected.given_up = std::ranges::any_of(seen[read], knows);
  // Whoever has not heard of it claims bytes by the first of the two, and hears of it then.
  if (std::ranges::any_of(seen[read - 2], knows)) {
    EXPECT_TRUE(std::ranges::all_of(seen[read], knows));
  }
  if (injected.given_up) {
    EXPECT_TRUE(std::ranges::any_of(notes, [](const auto& of_rank) {
      return std::ranges::any_of(of_rank, [](const std::string& note) {
        return note.starts_with("write-behind cache given up: ");
      });
    }));
  }
  if (setting().closes && outcomes.back().all) {
    EXPECT_EQ(model.wrong_now(0, room, rig.file->content()), "");
    for (const auto& log : rig.logs) EXPECT_TRUE(log->files().empty());
  }
  std::mt19937_64 random(static_cast<std::uint64_t>(injected.fault.nth));
  const auto left = rig.after_crash(setting().crash, random);
  // What a node that loses power had not synced may be missing anywhere, and then is damage.
  EXPECT_EQ(model.wrong_after(
                recovered(left.logs, left.file, setting().incomplete, setting().crash != killed)),
            "");
}

TEST_P(CoherentCacheFaults, LoseNothingThatWasAcknowledgedAndHoldNobodyUp) {
  int met = 0;
  int given_up = 0;
  for (const bool local : {true, false}) {
    for (int call = 0; call < storage_calls; ++call) {
      // Which call is whose turn varies with the threads, so there may be one more or less.
      for (std::int64_t nth = 0; !HasFailure(); ++nth) {
        SCOPED_TRACE(testing::Message()
                     << (local ? "log, call " : "file, call ") << call << ", number " << nth);
        // Of some writes to a log the first record is in it then, and the others are not.
        constexpr Bytes part = 100;
        Injected injected{.local = local,
                          .fault = {.call = static_cast<StorageCall>(call),
                                    .nth = nth,
                                    .os_errno = setting().os_errno,
                                    .after_bytes = part,
                                    .lasting = setting().lasting}};
        run(injected);
        met += injected.met ? 1 : 0;
        given_up += injected.given_up ? 1 : 0;
        if (!injected.met) break;
        // No log is given up for the sake of the file.
        EXPECT_TRUE(local || !injected.given_up);
      }
    }
  }
  std::cout << met << " faults, logs given up after " << given_up << " of them\n";
  EXPECT_GT(met, 100);
  EXPECT_GT(given_up, 10);
}

INSTANTIATE_TEST_SUITE_P(Settings, CoherentCacheFaults,
                         ::testing::Range(std::size_t{0}, settings.size()));

}  // namespace
}  // namespace forebay
