// Goal: it is known when a file is read more than once, and of which file. Method: reads by hand.

#include "core/intercept/posix/earlier_reads.hpp"

#include <gtest/gtest.h>

#include "core/model/extent.hpp"

namespace forebay::posix {
namespace {

/// Whether reading `extent` in parts of a MiB, of which all was declared, was told to be repeated.
bool read(EarlierReads& reads, Extent extent) {
  bool is_repeated = false;
  for (Bytes at = extent.offset; at < extent.end(); at += MiB) {
    is_repeated = reads.add({at, MiB}, MiB);
  }
  return is_repeated;
}

TEST(EarlierReads, ASecondPassIsTold) {
  EarlierReads reads;
  EXPECT_FALSE(read(reads, {0, 64 * MiB}));
  EXPECT_FALSE(read(reads, {0, 9 * MiB}));
  EXPECT_FALSE(reads.are_repeated());
  EXPECT_TRUE(read(reads, {9 * MiB, MiB}));
  EXPECT_TRUE(reads.are_repeated());
  EXPECT_TRUE(read(reads, {100 * MiB, MiB})) << "whatever comes now";
}

TEST(EarlierReads, ALittleOfALargeFileIsNoSecondPass) {
  EarlierReads reads;
  read(reads, {0, 1000 * MiB});
  EXPECT_FALSE(read(reads, {0, 100 * MiB}));
  EXPECT_TRUE(read(reads, {0, 100 * MiB})) << "an eighth of all that was read";
}

TEST(EarlierReads, AHeaderThatIsReadWithEachPieceIsNoSecondPass) {
  EarlierReads reads;
  for (Bytes at = MiB; at < 1000 * MiB; at += MiB) {
    EXPECT_FALSE(read(reads, {0, MiB}));
    EXPECT_FALSE(read(reads, {at, MiB}));
  }
}

TEST(EarlierReads, WhatWasNotDeclaredDoesNotCount) {
  EarlierReads reads;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(reads.add({0, MiB}, 0));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(reads.add({0, MiB}, 4096));
}

TEST(EarlierReads, WhereThePageCacheIsOfNoUseNothingIsTold) {
  EarlierReads reads;
  read(reads, {0, 10 * MiB});
  read(reads, {0, 10 * MiB});
  EXPECT_TRUE(reads.are_repeated());
  reads.stop();
  EXPECT_FALSE(reads.are_repeated());
  EXPECT_FALSE(read(reads, {0, 10 * MiB}));
}

TEST(FilesReadEarlier, AreToldApartByTheirVersionsAndTheLastAreKnown) {
  const auto version = [](std::uint64_t inode, Bytes size) {
    return FileVersion{.id = {1, inode}, .size = size};
  };
  FilesReadEarlier files;
  const auto first = files.of(version(1, 10));
  EXPECT_EQ(files.of(version(1, 10)), first);
  EXPECT_NE(files.of(version(1, 11)), first) << "it was changed";
  EXPECT_EQ(files.find(version(2, 10)), nullptr);
  read(*first, {0, 10 * MiB});
  read(*first, {0, 10 * MiB});
  EXPECT_TRUE(files.are_repeated(version(1, 10)));
  EXPECT_FALSE(files.are_repeated(version(1, 11)));
  for (std::uint64_t inode = 2; inode < 100; ++inode) files.of(version(inode, 10));
  EXPECT_TRUE(files.are_repeated(version(1, 10))) << "somebody has it open";
  EXPECT_EQ(files.find(version(3, 10)), nullptr);
}

}  // namespace
}  // namespace forebay::posix
