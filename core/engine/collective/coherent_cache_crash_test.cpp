// Goal: when a program whose ranks write into each other's bytes is killed, a recovery leaves every
// byte as the newest access that was acknowledged made it, or one that was under way; never as an
// older one. Here files are real, and so is the kill; what loses power is in
// coherent_cache_power_test.
// Method: random schedules from seeds that are printed, or that the environment names
// (SCHEDULE_SEEDS=N or N-M). In a process of its own, whose ranks are threads, of one host or as if
// of several, ranks take turns and then all write at once and close the file, until one of them
// kills the process. The logs that it left are replayed, and the file is compared with what the
// same schedule may leave, as far as the process had told in shared memory how far it was.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <random>

#include "core/engine/cache/crash_model.hpp"
#include "core/engine/cache/schedule_seeds.hpp"
#include "core/engine/collective/coherent_cache_rig.hpp"
#include "core/engine/collective/thread_exchange.hpp"
#include "core/storage/child_rig.hpp"

namespace forebay {
namespace {

using Content = std::vector<std::byte>;

constexpr int ranks = 3;
constexpr Bytes longest = 2 * cache_granule;
constexpr Bytes last_offset = 24 * cache_granule;
/// Where ranks write together, each does behind the one before.
constexpr Bytes room = last_offset + ranks * longest;

struct Step {
  enum class Kind { write, write_together, read, sync, settle, resize };
  Kind kind = Kind::write;
  int rank = 0;
  ByteWrite write = {};  ///< Or what is read; a size is its offset.
};

/// Told by the process, for who finds it dead.
struct Told {
  std::array<std::atomic<std::size_t>, ranks> at_once;  ///< Steps of each rank that it has done.
};

struct Schedule {
  std::vector<Step> in_turn;
  std::array<std::vector<Step>, ranks> at_once;
  int killer = 0;
  std::size_t last_of_killer = 0;  ///< So many of its steps at once are done when it kills.
  CacheFlush flush = CacheFlush::immediate;
  Incomplete incomplete = Incomplete::drop;

  explicit Schedule(unsigned seed) : random_(seed) {
    flush = std::array{CacheFlush::immediate, CacheFlush::onsync, CacheFlush::onclose}[any(3)];
    incomplete = any(2) == 0 ? Incomplete::drop : Incomplete::replay;
    for (std::size_t i = any(40); i > 0; --i) in_turn.push_back(any_step());
    for (int rank = 0; rank < ranks; ++rank) {
      for (int i = 0; i < 8; ++i) {
        Step step = any_write(rank);
        if (any(4) == 0) step.kind = Step::Kind::read;
        at_once[static_cast<std::size_t>(rank)].push_back(step);
      }
    }
    killer = static_cast<int>(any(ranks));
    last_of_killer = any(9);
  }

  /// What the file may hold afterwards.
  CrashModel model(const Told& told) const {
    CrashModel model(room, true);
    for (const Step& step : in_turn) {
      if (step.kind == Step::Kind::resize) model.resize(true, step.write.offset);
      if (step.kind == Step::Kind::write) model.write(step.write);
      if (step.kind != Step::Kind::write_together) continue;
      ByteWrite all = step.write;
      all.length *= ranks;
      model.write(all);
    }
    std::array<std::vector<ByteWrite>, ranks> done;
    std::vector<ByteWrite> under_way;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (std::size_t i = 0; i < at_once[rank].size() && i <= told.at_once[rank]; ++i) {
        const Step& step = at_once[rank][i];
        if (step.kind != Step::Kind::write) continue;
        (i < told.at_once[rank] ? done[rank] : under_way).push_back(step.write);
      }
    }
    model.write_at_once(done, under_way);
    return model;
  }

 private:
  std::size_t any(std::size_t below) { return random_() % below; }

  Step any_write(int rank) {
    return {Step::Kind::write,
            rank,
            {static_cast<Bytes>(any(last_offset)), 1 + static_cast<Bytes>(any(longest)),
             static_cast<std::byte>(1 + any(255))}};
  }
  Step any_step() {
    Step step = any_write(static_cast<int>(any(ranks)));
    const std::size_t kind = any(20);
    if (kind >= 10) step.kind = Step::Kind::write_together;
    if (kind >= 13) step.kind = Step::Kind::read;
    if (kind == 17) step.kind = Step::Kind::sync;
    if (kind == 18) step.kind = Step::Kind::settle;
    if (kind == 19) step.kind = Step::Kind::resize;
    return step;
  }

  std::mt19937 random_;
};

void require(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "%s failed\n", what);
  ::_exit(1);
}

/// One rank of the process.
class Rank {
 public:
  Rank(Exchange& exchange, CoherentCache& cache) : exchange_(exchange), cache_(cache) {}

  /// Of all ranks together.
  void take_part(const Step& step) {
    const bool mine = exchange_.rank() == step.rank;
    switch (step.kind) {
      case Step::Kind::write:
        if (mine) alone(step);
        break;
      case Step::Kind::read:  // After a sync, as MPI asks: others may have written it.
        if (mine) read(step.write);
        break;
      case Step::Kind::write_together: {
        ByteWrite part = step.write;
        part.offset += exchange_.rank() * part.length;
        write(part);
        std::int64_t epoch = static_cast<std::int64_t>(cache_.epoch());
        exchange_.all_reduce({&epoch, 1}, Reduce::max);
        require(cache_.commit(static_cast<std::uint64_t>(epoch) + 1).has_value(), "commit");
        break;
      }
      case Step::Kind::sync:
        require(cache_.sync().has_value(), "sync");
        break;
      case Step::Kind::settle:
        if (mine) require(cache_.settle().has_value(), "settle");
        break;
      case Step::Kind::resize:
        require(cache_.settle().has_value(), "settle");
        exchange_.barrier();
        if (mine) require(cache_.resize(step.write.offset).has_value(), "resize");
        break;
    }
    exchange_.barrier();
  }

  void alone(const Step& step) {
    if (step.kind == Step::Kind::read) return read(step.write);
    write(step.write);
    require(cache_.commit().has_value(), "commit");
  }

 private:
  void read(const ByteWrite& what) {
    Content bytes(static_cast<std::size_t>(what.length));
    require(cache_.read_at(bytes, what.offset).has_value(), "read");
  }
  void write(const ByteWrite& write) {
    const Content bytes(static_cast<std::size_t>(write.length), write.value);
    require(cache_.write_at(bytes, write.offset).has_value(), "write");
  }

  Exchange& exchange_;
  CoherentCache& cache_;
};

/// How many ranks share a host.
class CoherentCacheCrash : public CacheTest, public ::testing::WithParamInterface<int> {
 protected:
  /// What the process does.
  void run(const Schedule& schedule, Told& told) const {
    run_ranks(
        ranks, std::min(ranks, GetParam()),
        [&](const std::shared_ptr<Exchange>& exchange) {
          OpenedCache opened;
          open(*exchange, opened);
          require(opened.cache != nullptr, "open");
          Rank rank(*exchange, *opened.cache);
          for (const Step& step : schedule.in_turn) rank.take_part(step);
          const bool kills = exchange->rank() == schedule.killer;
          const auto mine = static_cast<std::size_t>(exchange->rank());
          for (std::size_t i = 0; i <= schedule.at_once[mine].size(); ++i) {
            if (kills && i == schedule.last_of_killer) ::kill(::getpid(), SIGKILL);
            if (i == schedule.at_once[mine].size()) break;
            rank.alone(schedule.at_once[mine][i]);
            told.at_once[mine] = i + 1;
          }
          if (!kills) require(opened.cache->close(false).has_value(), "close");
          exchange->barrier();  // The killer comes to none.
        },
        GetParam());
  }

  void crash(std::uint64_t seed) {
    const Schedule schedule(static_cast<unsigned>(seed));
    hints_.cache_flush = schedule.flush;
    std::ofstream(path_).close();
    const SharedWithChildren<Told> told;
    const pid_t process = ::fork();
    if (process == 0) {
      run(schedule, *told);
      ::_exit(2);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(process, &status, 0), process);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;
    const CrashModel model = schedule.model(*told);
    recover_logs({.incomplete = schedule.incomplete});
    EXPECT_EQ(model.wrong_after(file_content()), "");
    EXPECT_EQ(logs_left(), 0);
  }
};

/// What a rank has read of another one's log is nobody's from then on, and may still be in that
/// log.
TEST_P(CoherentCacheCrash, LeavesWhatWasWrittenOverBytesThatWereRead) {
  hints_.cache_flush = CacheFlush::onclose;
  hints_.cache_sync_to_node = true;
  run_ranks(
      ranks, std::min(ranks, GetParam()),
      [&](const std::shared_ptr<Exchange>& exchange) {
        OpenedCache opened;
        open(*exchange, opened);
        CoherentCache& cache = *opened.cache;
        const auto sync = [&] {  // As MPI asks before others touch the bytes.
          exchange->barrier();
          EXPECT_TRUE(cache.sync());
          exchange->barrier();
        };
        for (const int writer : {2, 0}) {
          if (exchange->rank() == writer) {
            EXPECT_TRUE(cache.write_at(Content(100, static_cast<std::byte>(writer + 1)), 0));
            EXPECT_TRUE(cache.commit());
          }
          sync();
          if (writer == 2 && exchange->rank() == 1) {
            Content back(100);
            EXPECT_TRUE(cache.read_at(back, 0));
          }
          sync();
        }
      },
      GetParam());  // Nobody closes.
  recover_logs();
  EXPECT_EQ(file_content(), Content(100, std::byte{1}));
}

TEST_P(CoherentCacheCrash, LeavesTheNewestBytesWhoeverWroteThem) {
  run_schedules(25, [this](std::uint64_t seed) { crash(seed); });
}

INSTANTIATE_TEST_SUITE_P(RanksOfAHost, CoherentCacheCrash, ::testing::Values(100, 2, 1));

}  // namespace
}  // namespace forebay
