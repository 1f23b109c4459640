// Goal: where the system gives a process no more threads, or some and then none, no rank fails,
// none waits for ever, and every byte is in the file in the end: the cache is done without. Method:
// a child process whose ranks are threads, of one host or as if of two, that may make 0, 1, 2, ...
// threads more from the opening on, or from the first write on. An alarm ends one that hangs.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>

#include "core/engine/collective/coherent_cache_rig.hpp"
#include "core/engine/collective/few_threads_rig.hpp"
#include "core/engine/collective/thread_exchange.hpp"

namespace forebay {
namespace {

constexpr int ranks = 3;
constexpr int hang_s = 100;

struct Case {
  int ranks_of_a_host;
  bool before_open;
};

class FewThreads : public CacheTest, public ::testing::WithParamInterface<Case> {
 protected:
  /// Whether all went well with so many threads more.
  bool goes_well(int more) const {
    std::atomic<bool> well{true};
    const auto body = [&](const std::shared_ptr<Exchange>& exchange) {
      const auto expect = [&](bool right) { well = well && right; };
      const auto limit = [&] {
        exchange->barrier();
        if (exchange->rank() == 0) allow_threads(more, 1 + ranks, base_.string());
        exchange->barrier();
      };
      if (GetParam().before_open) limit();
      OpenedCache opened;
      open(*exchange, opened);
      if (!GetParam().before_open) limit();
      // Without a cache each of them writes to the file itself.
      StorageFile& file =
          opened.cache != nullptr ? static_cast<StorageFile&>(*opened.cache) : *opened.file;
      // Into a granule of its own, and into one that all of them have bytes of.
      const Content bytes(100, static_cast<std::byte>(1 + exchange->rank()));
      for (const Bytes at : {exchange->rank() * cache_granule,
                             ranks * cache_granule + exchange->rank() * Bytes{100}}) {
        expect(file.write_at(bytes, at).has_value());
      }
      if (opened.cache != nullptr) expect(opened.cache->commit().has_value());
      exchange->barrier();
      Content seen(100);
      const int other = (exchange->rank() + 1) % ranks;
      expect(file.read_at(seen, other * cache_granule).has_value());
      expect(seen == Content(100, static_cast<std::byte>(1 + other)));
      exchange->barrier();
      if (opened.cache != nullptr) expect(opened.cache->close_together().has_value());
      exchange->barrier();
    };
    run_ranks(ranks, std::min(ranks, GetParam().ranks_of_a_host), body, GetParam().ranks_of_a_host);
    const Content content = file_content();
    for (int rank = 0; rank < ranks; ++rank) {
      const Content right(100, static_cast<std::byte>(1 + rank));
      for (const Bytes at : {rank * cache_granule, ranks * cache_granule + rank * Bytes{100}}) {
        well = well && static_cast<Bytes>(content.size()) >= at + 100 &&
               std::equal(right.begin(), right.end(), content.begin() + at);
      }
    }
    return well && logs_left() == 0;
  }
};

TEST_P(FewThreads, AreNoError) {
  GTEST_FLAG_SET(death_test_style, "fast");
  // The last of these lets all of them have all.
  for (const int more : {0, 1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 40}) {
    const auto child = [&] {
      ::alarm(hang_s);
      ::_exit(goes_well(more) ? 0 : 1);
    };
    EXPECT_EXIT(child(), testing::ExitedWithCode(0), "") << "with " << more << " threads more";
  }
}

INSTANTIATE_TEST_SUITE_P(All, FewThreads,
                         ::testing::Values(Case{ranks, true}, Case{ranks, false}, Case{1, true},
                                           Case{1, false}));

}  // namespace
}  // namespace forebay
