// Goal: what parallel file systems are told of reads to come is what their interfaces ask for.
// Method: server_advice.cpp is compiled against stand-ins of their headers, and finds their calls
// in this program, where they write down what they are told, and refuse on request.

#include "core/storage/server_advice.hpp"

#include <gmock/gmock.h>
#include <gpfs_fcntl.h>
#include <gtest/gtest.h>
#include <lustre/lustreapi.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace {

using ::forebay::Extent;
using ::testing::ElementsAre;

struct Told {
  std::vector<Extent> needed;
  std::vector<Extent> given_up;
  int calls = 0;
  int refusal = 0;  ///< An errno value.
  int takes = 8;    ///< Ranges of a call, of GPFS.
} told;

constexpr int descriptor = 7;
constexpr forebay::Bytes block = 100;

}  // namespace

extern "C" __attribute__((visibility("default"))) int llapi_ladvise(int fd,
                                                                    unsigned long long flags,
                                                                    int count,
                                                                    llapi_lu_ladvise* advice) {
  EXPECT_EQ(fd, descriptor);
  EXPECT_EQ(flags, LF_ASYNC);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(advice->lla_advice, LU_LADVISE_WILLREAD);
  ++told.calls;
  if (told.refusal != 0) {
    errno = told.refusal;
    return -1;
  }
  const auto start = static_cast<forebay::Bytes>(advice->lla_start);
  told.needed.push_back({start, static_cast<forebay::Bytes>(advice->lla_end) - start});
  return 0;
}

extern "C" __attribute__((visibility("default"))) int gpfs_fcntl(int fd, void* argument) {
  struct Message {
    gpfsFcntlHeader_t header;
    gpfsMultipleAccessRange_t hint;
  };
  auto& [header, hint] = *static_cast<Message*>(argument);
  EXPECT_EQ(fd, descriptor);
  EXPECT_EQ(header.totalLength, sizeof(Message));
  EXPECT_EQ(header.fcntlVersion, GPFS_FCNTL_CURRENT_VERSION);
  EXPECT_EQ(header.fcntlReserved, 0);
  EXPECT_EQ(hint.structLen, sizeof hint);
  EXPECT_EQ(hint.structType, GPFS_MULTIPLE_ACCESS_RANGE);
  EXPECT_LE(hint.accRangeCnt, GPFS_MAX_RANGE_COUNT);
  EXPECT_LE(hint.relRangeCnt, GPFS_MAX_RANGE_COUNT);
  ++told.calls;
  if (told.refusal != 0) {
    errno = told.refusal;
    return -1;
  }
  const auto extent = [](const gpfsRangeArray_t& range) {
    EXPECT_EQ(range.isWrite, 0);
    EXPECT_LE(range.start + range.length, block);
    return Extent{range.blockNumber * block + range.start, range.length};
  };
  hint.accRangeCnt = std::min(hint.accRangeCnt, told.takes);
  for (int i = 0; i < hint.accRangeCnt; ++i) told.needed.push_back(extent(hint.accRangeArray[i]));
  for (int i = 0; i < hint.relRangeCnt; ++i) told.given_up.push_back(extent(hint.relRangeArray[i]));
  return 0;
}

namespace forebay {
namespace {

class ServerAdviceTest : public ::testing::Test {
 protected:
  ServerAdviceTest() { told = {}; }
};

TEST_F(ServerAdviceTest, ThereIsNoneOnOtherFileSystems) {
  EXPECT_EQ(server_advice_for("ext4", 4096), nullptr);
  EXPECT_EQ(server_advice_for("fuse", 4096), nullptr);
}

TEST_F(ServerAdviceTest, TheServersOfLustreBringWhatIsNeededAndKeepItForOthers) {
  const auto advice = server_advice_for("lustre", 4096);
  ASSERT_NE(advice, nullptr);
  EXPECT_TRUE(advice->advise(descriptor, {5000, 300}, true));
  EXPECT_TRUE(advice->advise(descriptor, {5000, 300}, false));
  EXPECT_TRUE(advice->advise(descriptor, {9000, 0}, true));
  EXPECT_THAT(told.needed, ElementsAre(Extent{5000, 300}));
}

TEST_F(ServerAdviceTest, LustreIsNotAskedAgainWhenItHasRefused) {
  const auto advice = server_advice_for("lustre", 4096);
  told.refusal = EOPNOTSUPP;
  EXPECT_EQ(advice->advise(descriptor, {0, 1}, true).error().os_errno, EOPNOTSUPP);
  told.refusal = 0;
  EXPECT_EQ(advice->advise(descriptor, {1, 1}, true).error().os_errno, EOPNOTSUPP);
  EXPECT_EQ(told.calls, 1);
}

TEST_F(ServerAdviceTest, GpfsIsToldBlockByBlock) {
  const auto advice = server_advice_for("gpfs", block);
  ASSERT_NE(advice, nullptr);
  EXPECT_TRUE(advice->advise(descriptor, {250, 120}, true));
  EXPECT_THAT(told.needed, ElementsAre(Extent{250, 50}, Extent{300, 70}));
  EXPECT_TRUE(advice->advise(descriptor, {250, 120}, false));
  EXPECT_THAT(told.given_up, ElementsAre(Extent{250, 50}, Extent{300, 70}));
}

TEST_F(ServerAdviceTest, GpfsIsToldEightBlocksACall) {
  const auto advice = server_advice_for("gpfs", block);
  EXPECT_TRUE(advice->advise(descriptor, {0, 20 * block}, true));
  EXPECT_EQ(told.calls, 3);
  EXPECT_EQ(told.needed.size(), 20U);
}

TEST_F(ServerAdviceTest, WhatGpfsDidNotTakeIsNotGivenBack) {
  const auto advice = server_advice_for("gpfs", block);
  told.takes = 2;
  EXPECT_TRUE(advice->advise(descriptor, {0, 20 * block}, true));
  EXPECT_EQ(told.calls, 1) << "it has enough to do";
  EXPECT_TRUE(advice->advise(descriptor, {0, 20 * block}, false));
  EXPECT_THAT(told.given_up, ElementsAre(Extent{0, block}, Extent{block, block}));
  EXPECT_TRUE(advice->advise(descriptor, {0, 20 * block}, false));
  EXPECT_EQ(told.given_up.size(), 2U) << "once";
}

TEST_F(ServerAdviceTest, ARefusalOfGpfsIsTold) {
  const auto advice = server_advice_for("gpfs", block);
  told.refusal = EINVAL;
  EXPECT_EQ(advice->advise(descriptor, {0, block}, true).error().os_errno, EINVAL);
  EXPECT_TRUE(advice->advise(descriptor, {0, block}, false)) << "nothing was taken";
}

}  // namespace
}  // namespace forebay
