// Goal: what is in the page cache is found out by few reads, also after it was otherwise.
// Method: times of reads, as memory and as storage take them.

#include "core/plan/cache_trial.hpp"

#include <gtest/gtest.h>

namespace forebay {
namespace {

constexpr Bytes piece = 256 * KiB;
constexpr std::int64_t memory_ns = 60'000;
constexpr std::int64_t storage_ns = 3'000'000;

/// Pieces that are fetched before the next one that is left.
int fetched_before_next(CacheTrial& trial) {
  int pieces = 0;
  while (!trial.leaves(false)) ++pieces;
  return pieces;
}

TEST(CacheTrial, ThreeFastReadsShowIt) {
  CacheTrial trial;
  EXPECT_TRUE(trial.leaves(true));
  trial.took(piece, memory_ns);
  EXPECT_EQ(fetched_before_next(trial), 1);
  trial.took(piece, memory_ns);
  EXPECT_FALSE(trial.is_warm());
  EXPECT_EQ(fetched_before_next(trial), 1);
  trial.took(piece, memory_ns);
  EXPECT_TRUE(trial.is_warm());
}

TEST(CacheTrial, OfWhatSeemsToBeThereTheFirstPieceOfEachOpeningIsLeft) {
  CacheTrial trial;
  for (int i = 0; i < 3; ++i) trial.took(piece, memory_ns);
  EXPECT_TRUE(trial.leaves(true));
  EXPECT_FALSE(trial.leaves(false));
  EXPECT_TRUE(trial.leaves(true));
  trial.took(piece, storage_ns);
  EXPECT_FALSE(trial.is_warm());
  EXPECT_FALSE(trial.leaves(true)) << "others have shown that it is not";
}

TEST(CacheTrial, OfWhatIsNotThereFewAreLeft) {
  CacheTrial trial;
  EXPECT_EQ(fetched_before_next(trial), 0);
  for (const int apart : {16, 32, 64, 128, 256, 256}) {
    trial.took(piece, storage_ns);
    EXPECT_EQ(fetched_before_next(trial), apart);
  }
  trial.took(piece, memory_ns);
  EXPECT_EQ(fetched_before_next(trial), 1) << "somebody has read it meanwhile";
  trial.took(piece, storage_ns);
  EXPECT_EQ(fetched_before_next(trial), 16);
}

TEST(CacheTrial, NobodyIsAskedWhileAnAnswerIsOut) {
  CacheTrial trial;
  EXPECT_TRUE(trial.leaves(true));
  EXPECT_EQ(fetched_before_next(trial), 16);
  trial.took(piece, memory_ns);
  EXPECT_EQ(fetched_before_next(trial), 1);
  EXPECT_EQ(fetched_before_next(trial), 16);
}

}  // namespace
}  // namespace forebay
