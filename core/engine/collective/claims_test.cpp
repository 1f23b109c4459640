// Goal: a granule has one owner at a time, and who asks its owner for it gets an answer, whether
// that one still answers, never did, or is gone; also where ranks do not share the memory in which
// the claims are.
// Method: ranks are threads with one piece of memory, none of them, some or all but the first with
// a connection to it in place of their own hands on it; answers are counted.

#include "core/engine/collective/claims.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/engine/collective/claims_rig.hpp"

namespace forebay {
namespace {

constexpr Bytes granule = claims_granule;

/// Which ranks of three are remote.
class ClaimsTest : public ::testing::TestWithParam<std::vector<int>> {
 protected:
  static constexpr int ranks = 3;
  ClaimsRig rig_{ranks, GetParam()};
  std::unique_ptr<Claims> zero_ = rig_.rank(0), one_ = rig_.rank(1), two_ = rig_.rank(2);
};

/// What is no error.
template <typename T>
T sure(Result<T> result) {
  EXPECT_TRUE(result) << to_string(result.error());
  return result.value_or(T{});
}

TEST_P(ClaimsTest, AGranuleHasOneOwner) {
  EXPECT_FALSE(sure(one_->claim({50, 200}))) << "granules 0 to 2";
  EXPECT_FALSE(sure(one_->claim({0, 10}))) << "its own already";
  EXPECT_FALSE(sure(one_->foreign({0, 300})));
  const auto foreign = sure(two_->claim({250, 300}));
  ASSERT_TRUE(foreign);
  EXPECT_EQ(foreign->rank, 1);
  EXPECT_EQ(foreign->extent.offset, 200);
  EXPECT_EQ(foreign->extent.length, 100);
  EXPECT_FALSE(sure(two_->foreign({300, 100})));
  one_->release({0, 300});
  EXPECT_FALSE(sure(two_->claim({250, 300})));
  EXPECT_EQ(sure(one_->foreign({0, 1000}))->extent.offset, 200);
  EXPECT_EQ(sure(one_->foreign({0, 1000}))->extent.length, 400);
  EXPECT_EQ(sure(zero_->foreign({0, 1000}))->rank, 2);
}

TEST_P(ClaimsTest, NobodyTakesAwayWhatIsAnotherRanks) {
  ASSERT_FALSE(sure(one_->claim({0, 100})));
  two_->release({0, 100});
  two_->release_all();
  EXPECT_TRUE(sure(two_->foreign({0, 100})));
  one_->release_all();
  EXPECT_FALSE(sure(two_->foreign({0, 100})));
}

TEST_P(ClaimsTest, WhatWasGivenBackHasToBeClaimedAgain) {
  ASSERT_FALSE(sure(one_->claim({0, 300})));
  one_->release({100, 100});
  ASSERT_FALSE(sure(two_->claim({100, 100})));
  EXPECT_EQ(sure(one_->foreign({0, 300}))->rank, 2);
  EXPECT_EQ(sure(one_->claim({0, 300}))->extent.offset, 100);
  one_->release_all();
  ASSERT_FALSE(sure(two_->claim({0, 300})));
  EXPECT_EQ(sure(one_->claim({0, 300}))->extent.offset, 0);
}

TEST_P(ClaimsTest, OfManyWhoClaimAtOnceOneSucceeds) {
  constexpr int granules = 200;
  std::vector<std::atomic<int>> owners(granules);
  std::vector<std::thread> threads;
  for (Claims* const claims : {zero_.get(), one_.get(), two_.get()}) {
    threads.emplace_back([&owners, claims] {
      for (int i = 0; i < granules; ++i) {
        if (!sure(claims->claim({i * granule, granule}))) ++owners[static_cast<std::size_t>(i)];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& count : owners) EXPECT_EQ(count, 1);
}

TEST_P(ClaimsTest, WhoAsksGetsTheAnswer) {
  Claims& owner = *two_;
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
  EXPECT_EQ(sure(zero_->next_open(0)), 2);
  EXPECT_FALSE(sure(one_->next_open(3)));
  const auto right = zero_->ask(2, {Claims::Wish::write, {100, 200}});
  EXPECT_TRUE(right.status);
  EXPECT_EQ(right.epoch, 7U);
  EXPECT_TRUE(right.was_dirty);
  const auto wrong = one_->ask(2, {Claims::Wish::write_through, {}});
  ASSERT_FALSE(wrong.status);
  EXPECT_EQ(wrong.status.error().kind, ErrorKind::no_space);
  EXPECT_EQ(wrong.status.error().os_errno, 28);
  owner.close();
  answering.join();
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(heard[0].wish, Claims::Wish::write);
  EXPECT_EQ(heard[0].extent.offset, 100);
  EXPECT_EQ(heard[0].extent.length, 200);
  EXPECT_FALSE(sure(one_->next_open(0)));
  EXPECT_TRUE(one_->ask(2, {Claims::Wish::write, {0, 1}}).status) << "it has closed";
}

/// While all wait for each other's answers, what they answer needs calls of their own.
TEST_P(ClaimsTest, RanksMayAskEachOtherAtATime) {
  const std::vector<Claims*> all{zero_.get(), one_.get(), two_.get()};
  constexpr int questions = 30;
  std::atomic<int> heard{0};
  std::vector<std::thread> answering;
  for (Claims* const claims : all) {
    claims->open(::getpid());
    answering.emplace_back([&heard, claims] {
      claims->answer([&heard, claims](const Claims::Question& question) {
        claims->release(question.extent);
        ++heard;
        return Claims::Answer{};
      });
    });
  }
  std::vector<std::thread> asking;
  for (int rank = 0; rank < ranks; ++rank) {
    asking.emplace_back([&all, rank] {
      for (int i = 0; i < questions; ++i) {
        Claims& mine = *all[static_cast<std::size_t>(rank)];
        const auto foreign = sure(mine.claim({0, 2 * granule}));
        const int other = foreign ? foreign->rank : (rank + 1) % ranks;
        EXPECT_TRUE(mine.ask(other, {Claims::Wish::write, {0, 2 * granule}}).status);
      }
    });
  }
  for (std::thread& thread : asking) thread.join();
  for (Claims* const claims : all) claims->close();
  for (std::thread& thread : answering) thread.join();
  EXPECT_EQ(heard, ranks * questions);
}

TEST_P(ClaimsTest, WhoHasNoLogNeedNotBeAsked) {
  EXPECT_TRUE(zero_->ask(1, {Claims::Wish::write, {0, 1}}).status);
  EXPECT_TRUE(two_->ask(1, {Claims::Wish::write, {0, 1}}).status);
  EXPECT_TRUE(two_->ask(0, {Claims::Wish::write, {0, 1}}).status);
}

TEST_P(ClaimsTest, ARankOfThisHostThatIsGoneIsAnError) {
  // Its process has ended: a child's number, which is nobody's once it was waited for.
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  zero_->open(child);
  for (Claims* const asker : {one_.get(), two_.get()}) {
    const auto answer = asker->ask(0, {Claims::Wish::read, {0, 1}});
    ASSERT_FALSE(answer.status);
    EXPECT_EQ(answer.status.error().kind, ErrorKind::io);
  }
}

/// As where containers have spaces of process numbers of their own.
TEST_P(ClaimsTest, ARankWhoseNumberIsThatOfALivingProcessIsGoneOnceItHasEnded) {
  zero_->open(::getpid());
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    zero_->answer([](const Claims::Question&) { return Claims::Answer{.epoch = 5}; });
    ::_exit(1);  // Nobody closes it.
  }
  for (Claims* const asker : {one_.get(), two_.get()}) {
    EXPECT_EQ(asker->ask(0, {Claims::Wish::read, {0, 1}}).epoch, 5U);
  }
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  for (Claims* const asker : {one_.get(), two_.get(), one_.get()}) {
    const auto answer = asker->ask(0, {Claims::Wish::read, {0, 1}});
    ASSERT_FALSE(answer.status);
    EXPECT_EQ(answer.status.error().kind, ErrorKind::io);
  }
}

/// Ranks of other hosts are asked by way of the process that serves them.
TEST(RelayedClaims, AreGoneWithTheProcessThatServesThem) {
  auto made = SharedMemory::create(SharedClaims::bytes(2));
  ASSERT_TRUE(made);
  const std::shared_ptr<SharedMemory> memory = *std::move(made);
  memory->unlink();
  std::array<int, 2> told{};
  ASSERT_EQ(::pipe(told.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto server = ClaimsServer::start(memory, 2, granule, {1});
    const auto remote = RemoteClaims::connect((*server)->door(), 1, granule);
    (*remote)->open(0);
    (void)!::write(told[1], "", 1);
    ::pause();
    ::_exit(1);
  }
  ::close(told[1]);
  char opened = 0;
  ASSERT_EQ(::read(told[0], &opened, 1), 1) << "the child has ended";
  ::close(told[0]);
  SharedClaims local(memory->bytes(), 2, 0, granule);
  ASSERT_EQ(sure(local.next_open(0)), 1);
  ::kill(child, SIGKILL);
  // Nobody has waited for it yet: its number is no sign that it lives.
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  const auto answer = local.ask(1, {Claims::Wish::read, {0, 1}});
  ASSERT_FALSE(answer.status);
  EXPECT_EQ(answer.status.error().kind, ErrorKind::io);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_P(ClaimsTest, EndsAreTheRanksOwnAndTheHighestCounts) {
  ASSERT_FALSE(sure(one_->claim({0, 500})));
  ASSERT_FALSE(sure(two_->claim({600, 50})));
  ASSERT_FALSE(sure(two_->claim({600, 20})));
  EXPECT_EQ(sure(one_->end()), 650);
  ASSERT_TRUE(sure(one_->claim({500, 1000}))) << "not all of it is to be had";
  EXPECT_EQ(sure(two_->end()), 650);
  two_->set_end(10);
  EXPECT_EQ(sure(two_->end()), 500);
  one_->release_all();
  EXPECT_EQ(sure(zero_->end()), 10);
  ASSERT_FALSE(sure(two_->claim({600, 50}))) << "its own, and the end is told again";
  EXPECT_EQ(sure(zero_->end()), 650);
}

TEST_P(ClaimsTest, PlacesAreSharedOnlyByGranulesThatAreFarApart) {
  Bytes far = granule;
  while (!one_->shares_places(far)) far *= 2;
  ASSERT_FALSE(sure(one_->claim({0, granule})));
  EXPECT_TRUE(sure(two_->foreign({far / 2, granule}))) << "the same place";
  EXPECT_FALSE(sure(two_->foreign({far / 4, granule})));
}

TEST_P(ClaimsTest, FlagsAreSeenByWhoOpensClaimsOrIsAsked) {
  two_->open(::getpid());
  std::atomic<std::uint32_t> seen{0};
  std::thread answering([&] {
    two_->answer([&](const Claims::Question&) {
      seen = two_->flags();
      return Claims::Answer{};
    });
  });
  one_->set_flag(1);
  EXPECT_EQ(one_->flags(), 1U);
  EXPECT_TRUE(one_->ask(2, {Claims::Wish::write_through, {}}).status);
  EXPECT_EQ(seen, 1U);
  zero_->set_flag(2);
  EXPECT_EQ(zero_->flags(), 3U);
  ASSERT_FALSE(sure(one_->claim({0, 1})));
  EXPECT_EQ(one_->flags(), 3U);
  zero_->clear_flag(1);
  one_->open(::getpid());
  EXPECT_EQ(one_->flags(), 2U);
  two_->close();
  answering.join();
}

TEST_P(ClaimsTest, ConflictsAreCountedOverAllRanks) {
  EXPECT_EQ(zero_->count_conflict(), 1U);
  EXPECT_EQ(one_->count_conflict(), 2U);
  EXPECT_EQ(two_->count_conflict(), 3U);
}

TEST_P(ClaimsTest, WhereAllLeaveNothingIsForeign) {
  for (Claims* const claims : {zero_.get(), one_.get(), two_.get()}) claims->leave();
  for (Claims* const claims : {zero_.get(), one_.get(), two_.get()}) {
    EXPECT_FALSE(sure(claims->foreign({0, 1000})));
    EXPECT_EQ(sure(claims->end()), 0);
    EXPECT_FALSE(sure(claims->next_open(0)));
  }
}

INSTANTIATE_TEST_SUITE_P(Places, ClaimsTest,
                         ::testing::Values(std::vector<int>{}, std::vector<int>{2},
                                           std::vector<int>{1, 2}));

}  // namespace
}  // namespace forebay
