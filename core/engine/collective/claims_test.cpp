// Goal: a granule has one owner at a time, and who asks its owner for it gets an answer, whether
// that one still answers, never did, or is gone.
// Method: ranks are threads with one piece of memory; answers are counted.

#include "core/engine/collective/claims.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace forebay {
namespace {

constexpr Bytes granule = 100;

class ClaimsTest : public ::testing::Test {
 protected:
  Claims rank(int rank) { return {memory_, ranks, rank, granule}; }

  static constexpr int ranks = 3;
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_ =
      std::vector<Line>(static_cast<std::size_t>(Claims::bytes(ranks)) / sizeof(Line) + 1);
  std::span<std::byte> memory_ = std::as_writable_bytes(std::span(lines_));
};

TEST_F(ClaimsTest, AGranuleHasOneOwner) {
  Claims one = rank(0), two = rank(1);
  EXPECT_FALSE(one.claim({50, 200})) << "granules 0 to 2";
  EXPECT_FALSE(one.claim({0, 10})) << "its own already";
  EXPECT_FALSE(one.foreign({0, 300}));
  const auto foreign = two.claim({250, 300});
  ASSERT_TRUE(foreign);
  EXPECT_EQ(foreign->rank, 0);
  EXPECT_EQ(foreign->extent.offset, 200);
  EXPECT_EQ(foreign->extent.length, 100);
  EXPECT_FALSE(two.foreign({300, 100}));
  one.release({0, 300});
  EXPECT_FALSE(two.claim({250, 300}));
  EXPECT_EQ(one.foreign({0, 1000})->extent.offset, 200);
  EXPECT_EQ(one.foreign({0, 1000})->extent.length, 400);
}

TEST_F(ClaimsTest, NobodyTakesAwayWhatIsAnotherRanks) {
  Claims one = rank(0), two = rank(1);
  ASSERT_FALSE(one.claim({0, 100}));
  two.release({0, 100});
  two.release_all();
  EXPECT_TRUE(two.foreign({0, 100}));
  one.release_all();
  EXPECT_FALSE(two.foreign({0, 100}));
}

TEST_F(ClaimsTest, WhoAsksGetsTheAnswer) {
  Claims owner = rank(2);
  owner.open(::getpid());
  std::vector<Claims::Question> heard;
  std::thread answering([&] {
    owner.answer([&](const Claims::Question& question) {
      heard.push_back(question);
      Claims::Answer answer{.status = {}, .epoch = 7, .was_dirty = true};
      if (question.wish == Claims::Wish::write_through) {
        answer.status = tl::unexpected(Error{ErrorKind::no_space, 28, "full"});
      }
      return answer;
    });
  });
  const auto right = rank(0).ask(2, {Claims::Wish::write, {100, 200}});
  EXPECT_TRUE(right.status);
  EXPECT_EQ(right.epoch, 7U);
  EXPECT_TRUE(right.was_dirty);
  const auto wrong = rank(1).ask(2, {Claims::Wish::write_through, {}});
  ASSERT_FALSE(wrong.status);
  EXPECT_EQ(wrong.status.error().kind, ErrorKind::no_space);
  EXPECT_EQ(wrong.status.error().os_errno, 28);
  owner.close();
  answering.join();
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(heard[0].wish, Claims::Wish::write);
  EXPECT_EQ(heard[0].extent.offset, 100);
  EXPECT_EQ(heard[0].extent.length, 200);
}

TEST_F(ClaimsTest, WhoHasNoLogNeedNotBeAsked) {
  EXPECT_TRUE(rank(0).ask(1, {Claims::Wish::write, {0, 1}}).status);
}

TEST_F(ClaimsTest, ARankThatIsGoneIsAnError) {
  Claims owner = rank(1);
  // Its process has ended: a child's number, which is nobody's once it was waited for.
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  owner.open(child);
  const auto answer = rank(0).ask(1, {Claims::Wish::read, {0, 1}});
  ASSERT_FALSE(answer.status);
  EXPECT_EQ(answer.status.error().kind, ErrorKind::io);
}

TEST_F(ClaimsTest, EndsAreTheRanksOwnAndTheHighestCounts) {
  Claims one = rank(0), two = rank(1);
  one.raise_end(500);
  two.raise_end(300);
  two.raise_end(200);
  EXPECT_EQ(one.end(), 500);
  one.reset_end();
  EXPECT_EQ(one.end(), 300);
}

TEST_F(ClaimsTest, PlacesAreSharedOnlyByGranulesThatAreFarApart) {
  Claims one = rank(0), two = rank(1);
  Bytes far = granule;
  while (!one.shares_places(far)) far *= 2;
  ASSERT_FALSE(one.claim({0, granule}));
  EXPECT_TRUE(two.foreign({far / 2, granule})) << "the same place";
  EXPECT_FALSE(two.foreign({far / 4, granule}));
}

}  // namespace
}  // namespace forebay
