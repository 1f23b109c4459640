// Goal: what a program reads is told ahead, in another thread, and ends when it has to.
// Method: a source that writes down what it is told; the advice itself is tested with BlockAdvice.

#include "core/engine/prefetch/adviser.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <mutex>
#include <string>

#include "core/plan/block_advice.hpp"
#include "core/plan/extent_advice.hpp"
#include "core/storage/descriptor.hpp"

namespace forebay {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

/// What was told, to wait for.
class Told {
 public:
  void add(Extent extent, bool is_needed) {
    const std::lock_guard lock(mutex_);
    all_.push_back({extent, is_needed});
    changed_.notify_all();
  }
  std::vector<ReadAdvice::Item> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return all_.size() >= count; });
    return all_;
  }
  /// Whether `extent` was told to be needed, waiting for it until `is_over` says that there is no
  /// use in that.
  template <typename IsOver>
  bool wait_for(Extent extent, IsOver&& is_over) {
    const auto is_told = [&] {
      return std::ranges::find(all_, ReadAdvice::Item{extent, true}) != all_.end();
    };
    std::unique_lock lock(mutex_);
    while (!is_told() && !is_over()) changed_.wait_for(lock, std::chrono::milliseconds(1));
    return is_told();
  }
  /// While it is held, whoever tells waits.
  std::unique_lock<std::mutex> hold() { return std::unique_lock(mutex_); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ReadAdvice::Item> all_;
};

class ToldSource final : public FetchSource {
 public:
  explicit ToldSource(Told& told, bool refuses = false) : told_(told), refuses_(refuses) {}
  Result<Bytes> read(std::span<std::byte>, Bytes) override { return 0; }
  std::optional<FileVersion> version() override { return std::nullopt; }
  Bytes resident(Extent) override { return 0; }
  Status advise(Extent extent, bool is_needed) override {
    told_.add(extent, is_needed);
    if (refuses_) return tl::unexpected(error_from_errno(EINVAL, "advise"));
    return {};
  }
  int descriptor() const override { return -1; }

 private:
  Told& told_;
  const bool refuses_;
};

std::unique_ptr<ReadAdvice> advice_for(Bytes size) {
  return std::make_unique<BlockAdvice>(std::vector<Extent>{}, size, BlockAdvice::Shape{10, 2, 1});
}

TEST(Adviser, TellsWhatFollowsAReadAndGivesUpTheOldest) {
  Told told;
  Adviser adviser;
  const auto file = adviser.add("a", std::make_unique<ToldSource>(told), advice_for(100));
  file->note({0, 10});
  file->note({10, 10});
  EXPECT_THAT(told.wait_for(4),
              ElementsAre(ReadAdvice::Item{{0, 10}, true}, ReadAdvice::Item{{10, 10}, true},
                          ReadAdvice::Item{{20, 10}, true}, ReadAdvice::Item{{0, 10}, false}));
  EXPECT_EQ(file->figures().reads, 2);
  EXPECT_EQ(file->figures().bytes_asked, 20);
  EXPECT_TRUE(file->figures().is_by_page_cache);
  EXPECT_FALSE(file->figures().has_unseen_reads);
}

TEST(Adviser, CountsWhatWasBroughtAndNotPassedYet) {
  Told told;
  Adviser adviser;
  const auto file = adviser.add("a", std::make_unique<ToldSource>(told), advice_for(100));
  for (Bytes at = 0; at < 100; at += 10) file->note({at, 10});
  told.wait_for(18);  // All blocks, and all of them but the last two given up.
  adviser.end();
  EXPECT_EQ(file->figures().memory_peak, 20);
  EXPECT_EQ(file->figures().bytes_fetched, 100);
}

TEST(Adviser, WhatCannotBeBroughtTakesNoMemory) {
  Told told;
  Adviser adviser;
  const auto file = adviser.add("a", std::make_unique<ToldSource>(told, true), advice_for(100));
  file->note({0, 10});
  told.wait_for(2);
  adviser.end();
  EXPECT_EQ(file->figures().memory_peak, 0);
}

TEST(Adviser, CountsWhatHadBeenDeclared) {
  Told told;
  Adviser adviser;
  auto advice = std::make_unique<BlockAdvice>(std::vector<Extent>{{0, 10}, {200, 5}}, 100,
                                              BlockAdvice::Shape{10, 2, 1});
  const auto file = adviser.add("a", std::make_unique<ToldSource>(told), std::move(advice));
  file->note({5, 20});
  EXPECT_EQ(file->figures().bytes_asked_declared, 5);
  EXPECT_EQ(file->figures().bytes_planned, 10);
  EXPECT_EQ(file->figures().extents_outside, 1);
}

TEST(Adviser, ARefusalIsCounted) {
  Told told;
  Adviser adviser;
  const auto file = adviser.add("a", std::make_unique<ToldSource>(told, true), advice_for(10));
  file->note({0, 1});
  told.wait_for(1);
  adviser.end();
  EXPECT_EQ(file->figures().requests_failed, 1);
  EXPECT_EQ(file->figures().bytes_fetched, 0);
}

/// On a file system with a memory of its own: the kernel's page cache has nothing of the file.
class ServedSource final : public FetchSource {
 public:
  explicit ServedSource(Told& told) : told_(told) {}
  Result<Bytes> read(std::span<std::byte> into, Bytes) override {
    return static_cast<Bytes>(into.size());
  }
  std::optional<FileVersion> version() override { return std::nullopt; }
  Bytes resident(Extent) override { return 0; }
  Status advise(Extent extent, bool is_needed) override {
    told_.add(extent, is_needed);
    return {};
  }
  bool advises_servers() const override { return true; }
  int descriptor() const override { return -1; }

 private:
  Told& told_;
};

TEST(Adviser, AFileSystemWithAMemoryOfItsOwnIsToldWhatWouldBeFetched) {
  Told told;
  Adviser adviser;
  constexpr Bytes piece = 64 * KiB;
  std::vector<Extent> willneed;
  for (Bytes at = 0; at < 8 * MiB; at += MiB) willneed.push_back({at, piece});
  const auto file =
      adviser.add("a", std::make_unique<ServedSource>(told),
                  std::make_unique<ExtentAdvice>(willneed, 8 * MiB, 4 * piece, Bytes{0}),
                  std::make_unique<PageCacheFetch>(nullptr, 8 * MiB));
  for (const Extent& extent : willneed) file->note(extent);
  EXPECT_TRUE(told.wait_for(willneed.back(), [] { return false; }));
  file->finish();
  EXPECT_THAT(told.wait_for(1), Contains(ReadAdvice::Item{willneed.back(), false}));
  EXPECT_EQ(file->figures().stopped, "");
}

/// A reader that is seen at one place after the other, as often as it is looked at.
class SeenProgress final : public ReadProgress {
 public:
  explicit SeenProgress(std::vector<Extent> seen) : seen_(std::move(seen)) {}
  std::optional<Seen> look(std::span<const Extent>) override {
    if (next_ == seen_.size()) return std::nullopt;
    return Seen{seen_[next_++]};
  }

 private:
  const std::vector<Extent> seen_;
  std::size_t next_ = 0;
};

TEST(Adviser, AReaderThatDoesNotCallIsWatched) {
  Told told;
  Adviser adviser;
  const auto file = adviser.add("a", std::make_unique<ToldSource>(told), advice_for(100));
  file->watch(std::make_shared<SeenProgress>(std::vector<Extent>{{9, 1}, {19, 1}}));
  EXPECT_THAT(told.wait_for(4),
              ElementsAre(ReadAdvice::Item{{0, 10}, true}, ReadAdvice::Item{{10, 10}, true},
                          ReadAdvice::Item{{20, 10}, true}, ReadAdvice::Item{{0, 10}, false}));
  EXPECT_EQ(file->figures().reads, 0);
}

/// What numpy.fromfile does for each piece: a stream on a descriptor that others move, too, which
/// seeks to the page where the piece begins, and reads whole pages. Hundreds of streams come and go
/// before the thread looks again; then the program goes back to the beginning.
TEST(Adviser, AStreamThatGoesBackIsFoundAgain) {
  constexpr int count = 200;
  constexpr Bytes page = 4 * KiB;
  std::vector<Extent> pieces;
  pieces.reserve(count);
  for (int i = 0; i < count; ++i) pieces.push_back({100'000 * i + 8 * i, 10'000});
  std::string name = ::testing::TempDir() + "adviser_XXXXXX";
  const Descriptor program(::mkstemp(name.data()));
  ::unlink(name.c_str());
  const FileId id = version_of(program.get()).value_or(FileVersion{}).id;

  Told told;
  Adviser adviser;
  auto held = told.hold();
  const auto file = adviser.add("a", std::make_unique<ToldSource>(told),
                                std::make_unique<ExtentAdvice>(pieces, 100'000 * count, 160 * KiB));
  const auto read = [&](const Extent& piece, bool only_seeks) {
    ::lseek(program.get(), piece.offset, SEEK_SET);
    file->watch(std::make_shared<PositionProgress>(program.get(), id));
    const Bytes to = only_seeks ? piece.offset / page : (piece.end() + page - 1) / page;
    ::lseek(program.get(), to * page, SEEK_SET);
    file->closing(program.get());
  };
  for (int i = 0; i < count / 2; ++i) read(pieces[i], i % 3 == 0);
  held.unlock();
  for (int i = 0; i < count - 1; ++i) read(pieces[i], false);
  EXPECT_TRUE(told.wait_for(pieces.back(), [&] { return file->figures().plans_given_up > 0; }));
}

/// As on a busy machine, where a program has closed its file before the thread ran at all.
TEST(Adviser, AFileWhoseAdviceHasYetToBeginIsNotDone) {
  Told told;
  std::promise<void> gate;
  Adviser adviser([&] { gate.get_future().wait(); });
  const auto file =
      adviser.add("a", std::make_unique<ToldSource>(told),
                  std::make_unique<ExtentAdvice>(std::vector<Extent>{{0, MiB}}, MiB, MiB));
  EXPECT_FALSE(file->is_done());
  gate.set_value();
  told.wait_for(1);
  EXPECT_FALSE(file->is_done());
  file->finish();
  EXPECT_TRUE(file->is_done());
}

TEST(Adviser, ForeseesWhatIsReadNext) {
  Told told;
  Adviser adviser;
  const std::vector<Extent> willneed = {{8 * MiB, 64 * KiB}, {0, 64 * KiB}, {16 * MiB, 8 * MiB}};
  const auto file =
      adviser.add("file", std::make_unique<ToldSource>(told),
                  std::make_unique<ExtentAdvice>(willneed, 32 * MiB, MiB, std::nullopt));
  EXPECT_TRUE(file->foresees(8 * MiB));
  EXPECT_FALSE(file->foresees(20 * MiB)) << "megabytes later";
  EXPECT_FALSE(file->foresees(4 * MiB)) << "not declared";
  file->note({17 * MiB, MiB});
  EXPECT_TRUE(file->foresees(18 * MiB + 4096));
  EXPECT_FALSE(file->foresees(8 * MiB)) << "long passed";
  file->note({24 * MiB - 4096, 8192});
  EXPECT_TRUE(file->foresees(24 * MiB - 1)) << "that read ended outside";
}

TEST(Adviser, AfterItsEndNothingIsTold) {
  Told told;
  Adviser adviser;
  const auto file = adviser.add("a", std::make_unique<ToldSource>(told), advice_for(100));
  adviser.end();
  file->note({0, 10});
  adviser.end();
  EXPECT_EQ(file->figures().requests, 0);
}

}  // namespace
}  // namespace forebay
