// Goal: where the system gives a process no more threads, or some and then none, no rank fails,
// none waits for ever, and every byte is in the file in the end: the cache is done without. Method:
// a child process whose ranks are threads, of one host or as if of two, that may make 0, 1, 2, ...
// threads more from the opening on, or from the first write on, and that closes the file early or
// not. An alarm ends one that hangs.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

#include "core/engine/collective/coherent_cache_rig.hpp"
#include "core/engine/collective/few_threads_rig.hpp"
#include "core/engine/collective/thread_exchange.hpp"
#include "core/storage/background_thread.hpp"

namespace forebay {
namespace {

constexpr int ranks = 3;
constexpr int hang_s = 100;
/// So many more let all of them have all.
constexpr int enough = 60;

struct Case {
  int ranks_of_a_host;
  bool before_open;
  bool closes_early;
};

enum Outcome { well, wrong, no_limit, no_cache };

class FewThreads : public CacheTest, public ::testing::WithParamInterface<Case> {
 protected:
  /// In a child process that gets so many threads more.
  int outcome_with(int more) {
    const Case how = GetParam();
    ::alarm(hang_s);
    if (how.closes_early) hints_.cache_flush = CacheFlush::deferred;
    std::atomic<bool> is_right{true};
    std::atomic<bool> is_limited{true};
    std::atomic<bool> is_cached{true};
    const auto body = [&](const std::shared_ptr<Exchange>& exchange) {
      const auto expect = [&](bool right) { is_right = is_right && right; };
      const auto limit = [&] {
        exchange->barrier();
        if (exchange->rank() == 0) {
          allow_threads(more, 1 + ranks, base_.string());
          if (more == 0 && try_background_thread([] {})) is_limited = false;
        }
        exchange->barrier();
      };
      if (how.before_open) limit();
      OpenedCache opened;
      open(*exchange, opened);
      if (!how.before_open) limit();
      // Without a cache each of them writes to the file itself.
      CoherentCache* const cache = opened.cache.get();
      StorageFile& file = cache != nullptr ? static_cast<StorageFile&>(*cache) : *opened.file;
      // Into a granule of its own, and into one that all of them have bytes of.
      const Content bytes(100, static_cast<std::byte>(1 + exchange->rank()));
      for (const Bytes at : places_of(exchange->rank())) {
        expect(file.write_at(bytes, at).has_value());
      }
      if (cache != nullptr) expect(cache->commit().has_value());
      exchange->barrier();
      Content seen(100);
      const int other = (exchange->rank() + 1) % ranks;
      expect(file.read_at(seen, other * cache_granule).has_value());
      expect(seen == Content(100, static_cast<std::byte>(1 + other)));
      exchange->barrier();
      if (cache != nullptr) expect(close(*exchange, *cache));
      exchange->barrier();
      is_cached = is_cached && opened.counters.cache_absorbed > 0;
    };
    run_ranks(ranks, std::min(ranks, how.ranks_of_a_host), body, how.ranks_of_a_host);
    if (!is_limited) return no_limit;
    if (more >= enough && !is_cached) return no_cache;
    return is_right && all_is_in_the_file() && logs_left() == 0 ? well : wrong;
  }

  /// As it was: a child gave all of it away.
  void make_anew() const {
    std::filesystem::remove_all(base_);
    make_files();
  }

 private:
  static std::array<Bytes, 2> places_of(int rank) {
    return {rank * cache_granule, ranks * cache_granule + rank * Bytes{100}};
  }

  static bool close(Exchange& exchange, CoherentCache& cache) {
    if (!GetParam().closes_early) return cache.close_together().has_value();
    const bool is_closed = cache.close_early().has_value();
    exchange.barrier();
    cache.start_finishing();
    return cache.finish().has_value() && is_closed;
  }

  bool all_is_in_the_file() const {
    const Content content = file_content();
    bool all = true;
    for (int rank = 0; rank < ranks; ++rank) {
      const Content right(100, static_cast<std::byte>(1 + rank));
      for (const Bytes at : places_of(rank)) {
        all = all && static_cast<Bytes>(content.size()) >= at + 100 &&
              std::equal(right.begin(), right.end(), content.begin() + at);
      }
    }
    return all;
  }
};

TEST_P(FewThreads, AreNoError) {
  for (const int more : {0, 1, 2, 3, 4, 5, 6, 8, 10, 14, 20, enough}) {
    make_anew();
    const int outcome = in_child([&] { return outcome_with(more); });
    if (outcome == may_not) GTEST_SKIP() << "threads cannot be limited";
    EXPECT_EQ(outcome, well) << "with " << more << " threads more";
  }
}

INSTANTIATE_TEST_SUITE_P(All, FewThreads,
                         ::testing::Values(Case{ranks, true, false}, Case{ranks, false, false},
                                           Case{1, true, false}, Case{1, false, false},
                                           Case{ranks, false, true}, Case{1, false, true}));

}  // namespace
}  // namespace forebay
