// Goal: what a program reads is told ahead, in another thread, and ends when it has to.
// Method: a source that writes down what it is told; the advice itself is tested with BlockAdvice.

#include "core/engine/prefetch/adviser.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "core/plan/block_advice.hpp"

namespace forebay {
namespace {

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

/// A reader that is seen at one place after the other, as often as it is looked at.
class SeenProgress final : public ReadProgress {
 public:
  explicit SeenProgress(std::vector<Extent> seen) : seen_(std::move(seen)) {}
  std::optional<Extent> look(std::span<const Extent>) override {
    if (next_ == seen_.size()) return std::nullopt;
    return seen_[next_++];
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
