// Goal: what is handed out to be flushed is committed or awaited, never twice at a time, and a
// record counts as flushed only when nothing that may happen later makes it needed again.
// Method: worked examples, the test itself taking the part of the thread that flushes; then a
// random history against a model that is crashed after every step.

#include "core/engine/cache/dirty_extents.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "core/storage/text_file.hpp"

namespace forebay {
namespace {

constexpr Bytes unit = 10;
constexpr std::chrono::milliseconds no_wait{0};
constexpr std::chrono::milliseconds short_time{1};
constexpr std::chrono::milliseconds long_time = std::chrono::hours(1);

FlushQueue queue() { return {{}, unit, 0}; }
Error some_error() { return {ErrorKind::io, 5, "write"}; }

std::uint64_t flushed_through(DirtyExtents& extents) {
  const std::uint64_t through = extents.begin_sync();
  extents.end_sync(true);
  return through;
}

/// What is handed out when nothing is waited for: the calls that would wait forever end by stop().
class Taker {
 public:
  explicit Taker(DirtyExtents& extents) : extents_(extents) {}
  ~Taker() {
    extents_.stop();
    if (thread_.joinable()) thread_.join();
  }
  Taker(const Taker&) = delete;
  Taker& operator=(const Taker&) = delete;

  /// Writes all that comes, failing while `failing`.
  void run() {
    thread_ = std::thread([this] {
      while (!extents_.stopping()) {
        auto work = extents_.take(std::chrono::hours(1));
        if (!work) continue;
        extents_.done(*work, failing ? Status(tl::unexpected(some_error())) : Status());
      }
    });
  }
  std::atomic<bool> failing = false;

 private:
  DirtyExtents& extents_;
  std::thread thread_;
};

TEST(DirtyExtents, HandsOutWhatIsCommitted) {
  DirtyExtents extents(queue(), true);
  extents.add({0, 5}, 1, {});
  extents.add({12, 5}, 2, {});
  extents.commit(3);
  extents.add({7, 8}, 4, {});  // In both units, and over the second write.
  auto work = extents.take(no_wait);
  ASSERT_TRUE(work);
  EXPECT_EQ(work->unit, 0);
  ASSERT_EQ(work->pieces.size(), 1U) << "not what is not committed";
  EXPECT_EQ(work->pieces[0].extent, (Extent{0, 5}));
  extents.done(*work, {});
  EXPECT_FALSE(extents.any({0, 5}));
  EXPECT_TRUE(extents.any({7, 3}));

  work = extents.take(no_wait);
  ASSERT_TRUE(work);
  ASSERT_EQ(work->pieces.size(), 1U);
  EXPECT_EQ(work->pieces[0].extent, (Extent{15, 2}));
  extents.done(*work, {});
  EXPECT_EQ(flushed_through(extents), 1U) << "record 2 counts again if record 4 is dropped";
  extents.commit(5);
  EXPECT_EQ(flushed_through(extents), 3U);
  EXPECT_EQ(extents.totals().dirty, 8);
  EXPECT_EQ(extents.totals().added, 18);
  EXPECT_EQ(extents.totals().written, 7);
}

TEST(DirtyExtents, HandsOutWhatIsToBeFlushedThoughNobodyWaitsAndNothingThatComesLater) {
  DirtyExtents extents(queue(), false);
  extents.add({0, 5}, 1, {});
  extents.begin_drain(2);
  EXPECT_FALSE(extents.take(no_wait)) << "it is not committed yet";
  extents.commit(2);
  const auto work = extents.take(no_wait);
  ASSERT_TRUE(work);
  EXPECT_EQ(work->pieces.at(0).extent, (Extent{0, 5}));
  extents.done(*work, {});
  extents.add({0, 5}, 3, {});
  extents.commit(4);
  EXPECT_FALSE(extents.take(no_wait));
  extents.begin_drain(4);
  EXPECT_TRUE(extents.take(no_wait));
}

TEST(DirtyExtents, CountsWhatIsWrittenWhileMoreIsWaiting) {
  DirtyExtents extents(queue(), true);
  const auto write_one = [&] {
    const auto work = extents.take(no_wait);
    ASSERT_TRUE(work);
    extents.done(*work, {});
  };
  for (const Bytes at : {0, 1, 2, 3}) extents.add({at * unit, unit}, at + 1, {});
  extents.commit(5);
  write_one();
  EXPECT_EQ(extents.totals().pressed, 0) << "how long the first one took is not known";
  write_one();
  write_one();
  write_one();
  EXPECT_EQ(extents.totals().pressed, 3 * unit);
  extents.add({0, unit}, 6, {});
  extents.commit(7);
  write_one();
  EXPECT_EQ(extents.totals().pressed, 3 * unit) << "after a time in which nothing waited";
}

TEST(DirtyExtents, WaitsForALullUnlessSomebodyWaitsForTheFlush) {
  DirtyExtents extents(queue(), true, long_time, long_time);
  extents.add({0, 5}, 1, {});
  extents.commit(2);
  EXPECT_FALSE(extents.take(no_wait));
  Taker taker(extents);
  taker.run();
  EXPECT_TRUE(extents.drain(2));
}

TEST(DirtyExtents, NoLullEndsDuringAnAccess) {
  DirtyExtents extents(queue(), true, short_time, long_time);
  extents.begin_access();
  extents.add({0, 5}, 1, {});
  extents.commit(2);
  EXPECT_FALSE(extents.take(std::chrono::milliseconds(20)));
  extents.end_access();
  EXPECT_TRUE(extents.take(long_time));
}

TEST(DirtyExtents, HandsOutDuringAnAccessAfterTheLongestBurst) {
  DirtyExtents extents(queue(), true, long_time, short_time);
  extents.begin_access();
  extents.add({0, 5}, 1, {});
  extents.commit(2);
  EXPECT_TRUE(extents.take(long_time));
}

TEST(DirtyExtents, HandsOutByItselfAfterALull) {
  DirtyExtents extents(queue(), true, short_time, long_time);
  extents.add({0, 5}, 1, {});
  extents.commit(2);
  EXPECT_TRUE(extents.take(long_time));
}

/// Whether a thread of this process waits for something. [proc(5), the state in .../stat]
bool waits(pid_t thread) {
  const auto text = text_of("/proc/self/task/" + std::to_string(thread) + "/stat");
  return text && text->find(") S ") != std::string::npos;
}

/// One that sleeps before two units are written, and one that looks again and again, as the first
/// that flushes does, get a unit each at the end of the burst.
void expect_work_for_all(DirtyExtents& extents, bool in_access) {
  std::atomic<pid_t> waiting = 0;
  std::atomic<int> busy = 0;
  std::thread one_that_waits([&] {
    waiting = ::gettid();
    if (extents.take(long_time)) ++busy;
  });
  while (waiting == 0 || !waits(waiting)) std::this_thread::yield();
  if (in_access) extents.begin_access();
  extents.add({4 * unit, 2 * unit}, 3, {});
  extents.commit(4);
  std::optional<DirtyExtents::Work> first;
  while (!first) first = extents.take(no_wait);
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (busy == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(busy, 1) << "it has the other unit meanwhile";
  extents.stop();
  one_that_waits.join();
}

TEST(DirtyExtents, HandsOutToAllWhoWaitAfterALull) {
  DirtyExtents extents(queue(), true, short_time, long_time);
  expect_work_for_all(extents, false);
}

TEST(DirtyExtents, HandsOutToAllWhoWaitAfterTheLongestBurst) {
  DirtyExtents extents(queue(), true, long_time, short_time);
  expect_work_for_all(extents, true);
}

TEST(DirtyExtents, HandsOutToWhoWaitedBeforeAnAccessBeganInALull) {
  DirtyExtents extents(queue(), true, short_time, std::chrono::milliseconds(100));
  extents.add({0, unit}, 1, {});
  extents.commit(2);
  const auto under_way = extents.take(long_time);  // The lull is over, and nothing else is there.
  ASSERT_TRUE(under_way);
  expect_work_for_all(extents, true);
}

TEST(DirtyExtents, AnAccessEndsWithTheLastOfSeveral) {
  DirtyExtents extents(queue(), true, short_time, long_time);
  extents.begin_access();
  extents.begin_access();
  extents.add({0, 5}, 1, {});
  extents.commit(2);
  extents.end_access();
  EXPECT_FALSE(extents.take(std::chrono::milliseconds(20)));
  extents.end_access();
  EXPECT_TRUE(extents.take(long_time));
}

TEST(DirtyExtents, DoesNotHandOutAUnitThatIsUnderWay) {
  DirtyExtents extents(queue(), true);
  extents.add({0, 5}, 1, {});
  extents.commit(2);
  auto old = extents.take(no_wait);
  ASSERT_TRUE(old);
  extents.add({0, 5}, 3, {});
  extents.commit(4);
  extents.add({20, 5}, 5, {});
  extents.commit(6);
  auto other = extents.take(no_wait);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->unit, 2) << "unit 0 comes when its older write has landed";
  extents.done(std::move(*old), {});
  EXPECT_TRUE(extents.any({0, 5})) << "the newer bytes";
  auto again = extents.take(no_wait);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->unit, 0);
  EXPECT_EQ(again->pieces[0].order, 3U);
}

TEST(DirtyExtents, FlushesWhatSomebodyWaitsForAlthoughNobodyCommittedIt) {
  DirtyExtents extents(queue(), false);
  Taker taker(extents);
  extents.add({0, 5}, 1, {});
  extents.add({30, 5}, 2, {});
  taker.run();
  EXPECT_TRUE(extents.drain(1));
  EXPECT_FALSE(extents.any({0, 5}));
  EXPECT_TRUE(extents.any({30, 5}));
  EXPECT_EQ(flushed_through(extents), 1U);
  EXPECT_TRUE(extents.drain(Extent{28, 4}));
  EXPECT_FALSE(extents.any({30, 5}));
  EXPECT_TRUE(extents.drain(Extent{0, 1000})) << "nothing to wait for";
}

TEST(DirtyExtents, DoesNotWaitForWhatIsWrittenOverMeanwhile) {
  DirtyExtents extents(queue(), false);
  extents.add({0, 5}, 1, {});
  std::thread waiter([&] { EXPECT_TRUE(extents.drain(1)); });
  // It is handed out because somebody waits for it; nothing else ever wakes the waiter.
  auto work = extents.take(std::chrono::hours(1));
  extents.add({0, 5}, 2, {});
  waiter.join();
  ASSERT_TRUE(work);
  extents.done(*work, {});
  EXPECT_TRUE(extents.any({0, 5}));
}

TEST(DirtyExtents, TellsOfAFailureOnceAndTriesAgain) {
  DirtyExtents extents(queue(), true);
  Taker taker(extents);
  taker.failing = true;
  taker.run();
  extents.add({0, 5}, 1, {});
  extents.commit(2);
  std::optional<Error> failure;
  while (!failure) failure = extents.take_failure();
  EXPECT_EQ(failure->kind, ErrorKind::io);

  EXPECT_EQ(extents.drain(2).error().kind, ErrorKind::io);
  EXPECT_TRUE(extents.any({0, 5})) << "the bytes are still dirty";
  EXPECT_EQ(flushed_through(extents), 0U);
  taker.failing = false;  // Before it is asked: then what failed is tried again, at once.
  EXPECT_FALSE(extents.take_failure()) << "who waited was told";
  EXPECT_TRUE(extents.drain(2));
  EXPECT_FALSE(extents.any({0, 5}));
}

TEST(DirtyExtents, WritesAgainWhatAFailedSyncMayHaveLost) {
  DirtyExtents extents(queue(), false);
  Taker taker(extents);
  taker.run();
  extents.add({0, 5}, 1, {});
  extents.add({10, 5}, 2, {});  // In the other unit.
  extents.commit(3);
  ASSERT_TRUE(extents.drain(3));
  EXPECT_EQ(extents.begin_sync(), 3U);
  extents.add({3, 9}, 4, {});  // Newer than both, and flushed while the sync is under way.
  extents.commit(5);
  ASSERT_TRUE(extents.drain(5));
  extents.end_sync(false);
  const auto pieces = extents.overlapping({0, 100});
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[0].extent, (Extent{0, 3}));
  EXPECT_EQ(pieces[1].extent, (Extent{3, 9}));
  EXPECT_EQ(pieces[1].order, 4U) << "not the bytes below";
  EXPECT_EQ(pieces[2].extent, (Extent{12, 3}));
  EXPECT_EQ(flushed_through(extents), 0U);
  ASSERT_TRUE(extents.drain(5));
  EXPECT_EQ(flushed_through(extents), 5U);
}

/// A record that is in the file, and over it one that is not finished.
void begin_over_what_is_flushed(DirtyExtents& extents) {
  extents.add({0, 5}, 1, {});
  extents.commit(2);
  ASSERT_TRUE(extents.drain(2));
  extents.add({0, 5}, 3, {});
}

/// What lies over it may be dropped: then it counts again, and storage may not have it.
TEST(DirtyExtents, KeepsWhatAFailedSyncMayHaveLostBelowAnUncommittedRecord) {
  DirtyExtents extents(queue(), false);
  Taker taker(extents);
  taker.run();
  begin_over_what_is_flushed(extents);
  EXPECT_EQ(extents.begin_sync(), 2U);
  extents.end_sync(false);
  EXPECT_EQ(flushed_through(extents), 0U);
  ASSERT_TRUE(extents.drain(3));
  EXPECT_EQ(flushed_through(extents), 3U) << "its place in the file is taken for good";
}

TEST(DirtyExtents, KeepsItAlsoWhereTheRecordAboveWasWrittenAndIsDirtyAgain) {
  DirtyExtents extents(queue(), false);
  Taker taker(extents);
  taker.run();
  begin_over_what_is_flushed(extents);
  ASSERT_TRUE(extents.drain(3));
  EXPECT_EQ(extents.begin_sync(), 3U);
  extents.end_sync(false);
  EXPECT_EQ(flushed_through(extents), 0U);
  extents.commit(4);
  EXPECT_EQ(flushed_through(extents), 2U) << "it is superseded for good";
}

TEST(DirtyExtents, CutsWhileNothingIsUnderWay) {
  DirtyExtents extents(queue(), false);
  extents.add({0, 15}, 1, {});
  {
    DirtyExtents::Pause pause(extents);
    pause.cut(7);
  }
  EXPECT_EQ(extents.end(), 7);
  extents.add({20, 1}, 2, {});
  EXPECT_EQ(extents.end(), 21);
}

TEST(DirtyExtents, ForgetsEverythingAndLetsWaitersGo) {
  DirtyExtents extents(queue(), false);
  extents.add({0, 15}, 1, {});
  std::thread waiting([&] { EXPECT_TRUE(extents.drain(1)); });
  extents.discard();
  waiting.join();
  EXPECT_EQ(extents.totals().dirty, 0);
}

/// What a crash now would leave after a replay: per byte the order of the write that counts.
RC_GTEST_PROP(DirtyExtentsProperty, never_counts_a_record_as_flushed_that_a_crash_needs, ()) {
  constexpr std::size_t file_bytes = 40;
  using Image = std::array<std::uint64_t, file_bytes>;
  struct Record {
    Extent extent;
    std::uint64_t order;
  };
  DirtyExtents extents(queue(), true);
  std::vector<Record> records;
  Image file{};
  std::uint64_t order = 0;
  std::uint64_t committed = 0;
  std::vector<DirtyExtents::Work> under_way;

  const auto put = [](Image& image, const Record& record) {
    for (Bytes at = record.extent.offset; at < record.extent.end(); ++at) {
      image[static_cast<std::size_t>(at)] = record.order;
    }
  };
  const auto check = [&] {
    // All that is committed must come back, whatever is said to be flushed.
    const std::uint64_t flushed = flushed_through(extents);
    Image recovered = file;
    Image wanted{};
    for (const Record& record : records) {
      if (record.order > committed) continue;
      put(wanted, record);
      if (record.order > flushed) put(recovered, record);
    }
    for (std::size_t at = 0; at < file_bytes; ++at) {
      RC_ASSERT(recovered[at] == wanted[at]);
    }
  };
  const int steps = *rc::gen::inRange(0, 60);
  for (int step = 0; step < steps; ++step) {
    switch (*rc::gen::inRange(0, 5)) {
      case 0:
      case 1: {
        const auto offset = *rc::gen::inRange<Bytes>(0, file_bytes);
        const Extent extent{
            offset, *rc::gen::inRange<Bytes>(1, static_cast<Bytes>(file_bytes) - offset + 1)};
        records.push_back({extent, ++order});
        extents.add(extent, order, {});
        break;
      }
      case 2:
        committed = ++order;
        extents.commit(committed);
        break;
      case 3:
        if (auto work = extents.take(no_wait)) {
          for (const auto& piece : work->pieces) RC_ASSERT(piece.order <= committed);
          for (const auto& other : under_way) RC_ASSERT(other.unit != work->unit);
          under_way.push_back(std::move(*work));
        }
        break;
      default:
        if (under_way.empty()) break;
        const auto which = *rc::gen::inRange<std::size_t>(0, under_way.size());
        DirtyExtents::Work work = std::move(under_way[which]);
        under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(which));
        const bool fails = *rc::gen::inRange(0, 4) == 0;
        for (const auto& piece : work.pieces) {
          if (fails && *rc::gen::arbitrary<bool>()) continue;
          put(file, {piece.extent, piece.order});
        }
        extents.done(work, fails ? Status(tl::unexpected(some_error())) : Status());
        (void)extents.take_failure();
    }
    check();
  }
}

}  // namespace
}  // namespace forebay
