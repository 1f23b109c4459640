// Goal: the advice of the paper: blocks ahead of the reader are announced once, and no more than so
// many are held.  Method: small files in blocks of 10 bytes, worked through by hand. [MERCURY]

#include "core/plan/block_advice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace forebay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Advice = ReadAdvice::Item;
constexpr BlockAdvice::Shape shape{10, 4, 2};

Advice need(Bytes block) { return {{block * 10, 10}, true}; }
Advice give_up(Bytes block) { return {{block * 10, 10}, false}; }

TEST(BlockAdvice, TheBlocksOfAReadAndThoseAheadAreAnnouncedOnce) {
  BlockAdvice advice({}, 1000, shape);
  EXPECT_THAT(advice.observe({0, 5}), ElementsAre(need(0), need(1), need(2)));
  EXPECT_THAT(advice.observe({5, 5}), IsEmpty());
  EXPECT_THAT(advice.observe({10, 5}), ElementsAre(need(3)));
}

TEST(BlockAdvice, TheOldestBlocksAreGivenUp) {
  BlockAdvice advice({}, 1000, shape);
  advice.observe({0, 5});
  EXPECT_THAT(advice.observe({20, 1}), ElementsAre(need(3), need(4), give_up(0)));
  EXPECT_THAT(advice.observe({500, 1}),
              ElementsAre(need(50), need(51), need(52), give_up(1), give_up(2), give_up(3)));
}

TEST(BlockAdvice, WhatWasNotDeclaredIsNotAnnounced) {
  BlockAdvice advice({{0, 5}, {35, 10}, {90, 0}}, 100, shape);
  EXPECT_THAT(advice.observe({0, 5}), ElementsAre(need(0)));
  EXPECT_THAT(advice.observe({25, 1}), ElementsAre(need(3), need(4)));
  EXPECT_THAT(advice.observe({75, 1}), ElementsAre(need(9)));
}

TEST(BlockAdvice, EnormousExtentsGoToTheEndOfTheFile) {
  BlockAdvice advice({{30, std::numeric_limits<Bytes>::max()}}, 100, shape);
  EXPECT_THAT(advice.observe({0, 5}), IsEmpty());
  EXPECT_THAT(advice.observe({25, 1}), ElementsAre(need(3), need(4)));
}

TEST(BlockAdvice, EnormousWishesAreCutToWhatCanBeCarriedOut) {
  constexpr Bytes most = std::numeric_limits<Bytes>::max();
  ReadIntent wishes;
  wishes.block = most;
  wishes.ahead = std::numeric_limits<int>::max();
  wishes.budget = most;
  const auto fitted = BlockAdvice::shape_of(wishes);
  EXPECT_EQ(fitted.block, GiB);
  EXPECT_LT(fitted.ahead, fitted.cached);
  BlockAdvice advice({}, most, fitted);
  EXPECT_EQ(advice.observe({0, 1}).size(), static_cast<std::size_t>(fitted.ahead) + 1);
}

TEST(BlockAdvice, WishesAreOfWholePages) {
  ReadIntent wishes;
  wishes.block = 5000;
  wishes.budget = 64 * KiB;
  wishes.ahead = 3;
  const auto fitted = BlockAdvice::shape_of(wishes);
  EXPECT_EQ(fitted.block, 8 * KiB);
  EXPECT_EQ(fitted.cached, 8);
  EXPECT_EQ(fitted.ahead, 3);
  wishes.ahead = 16;
  EXPECT_EQ(BlockAdvice::shape_of(wishes).ahead, 7) << "more would be given up unread";
}

TEST(BlockAdvice, NothingIsAnnouncedBehindTheEndOfTheFile) {
  BlockAdvice advice({}, 25, shape);
  EXPECT_THAT(advice.observe({12, 100}), ElementsAre(need(1), Advice{{20, 5}, true}));
  EXPECT_THAT(advice.observe({30, 10}), IsEmpty());
}

}  // namespace
}  // namespace forebay
