// Goal: where a log, its device or the capacity of the node has no room, a cached file waits, goes
// through or says so, and loses nothing.
// Method: worked examples, with devices that fill up and capacities of a few segments.

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "core/engine/cache/cache_rig.hpp"

namespace forebay {
namespace {

using Content = std::vector<std::byte>;
using std::chrono::milliseconds;

TEST(CachedFileRoom, GoesThroughWhereTheDeviceHasNoRoom) {
  CacheRig rig;
  rig.log_plan = std::make_shared<FaultPlan>(std::vector<Fault>{
      {.call = StorageCall::allocate, .nth = 1, .os_errno = ENOSPC, .lasting = true}});
  const auto file = rig.open();
  ASSERT_TRUE(file->write_at(filled(5000, 1), 0));
  EXPECT_EQ(read_all(*open_volatile_file(rig.file), 9000), filled(5000, 1));
  EXPECT_TRUE(file->state().write_through);
  EXPECT_EQ(file->state().reason.kind, ErrorKind::no_space);
  ASSERT_TRUE(file->close());
  EXPECT_TRUE(rig.log->destroyed());
}

TEST(CachedFileRoom, BringsTheLogToTheFileBeforeItGoesThrough) {
  CacheRig rig;
  rig.options.flush = CacheFlush::onclose;
  // The superblock, two records, and then no more.
  rig.log_plan = std::make_shared<FaultPlan>(
      std::vector<Fault>{{.call = StorageCall::write, .nth = 4, .os_errno = EIO, .lasting = true}});
  const auto file = rig.open();
  ASSERT_TRUE(file->write_at(filled(500, 1), 0));
  ASSERT_TRUE(file->write_at(filled(500, 2), 400));
  EXPECT_EQ(rig.file_plan->calls(StorageCall::write), 0);
  ASSERT_TRUE(file->write_at(filled(500, 3), 800));
  ASSERT_TRUE(file->write_at(filled(500, 4), 1200));
  EXPECT_EQ(file->state().reason.kind, ErrorKind::io);
  FileModel model;
  for (int i = 0; i < 4; ++i) model.write(i * 400, filled(500, i + 1));
  EXPECT_EQ(rig.file->content(), model.content());
  EXPECT_FALSE(file->dirty({0, 10'000}));
  EXPECT_FALSE(file->set_write_through(false)) << "the log is broken";
  ASSERT_TRUE(file->close());
}

TEST(CachedFileRoom, GivesUpWaitingForCapacityThatOthersKeep) {
  CacheRig rig;
  rig.options.patience = milliseconds(20);
  const auto greedy = *ResourceHolder::join(rig.capacity);
  ASSERT_TRUE(greedy->take(rig.capacity->amount()));
  const auto file = rig.open();
  ASSERT_TRUE(file->write_at(filled(500, 1), 0));
  EXPECT_TRUE(file->state().write_through);
  EXPECT_EQ(rig.file->content(), filled(500, 1));
  greedy->give_back(rig.capacity->amount());
  ASSERT_TRUE(file->set_write_through(false));
  ASSERT_TRUE(file->write_at(filled(500, 2), 500));
  EXPECT_TRUE(file->dirty({500, 500}));
  ASSERT_TRUE(file->close());
}

TEST(CachedFileRoom, GoesOnWithoutALogWhereTheDeviceIsFullOnceTheCapacityIsFree) {
  CacheRig rig;
  rig.options.patience = std::chrono::hours(1);
  // After the status and the flush mark: the segment.
  rig.log_plan = std::make_shared<FaultPlan>(std::vector<Fault>{
      {.call = StorageCall::allocate, .nth = 2, .os_errno = ENOSPC, .lasting = true}});
  const auto greedy = *ResourceHolder::join(rig.capacity);
  ASSERT_TRUE(greedy->take(rig.capacity->amount()));
  const auto file = rig.open();
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    while (!greedy->wanted_by_others() && !is_over) std::this_thread::yield();
    greedy->give_back(rig.capacity->amount());
  });
  const Status written = file->write_at(filled(500, 1), 0);
  is_over = true;
  other.join();
  EXPECT_TRUE(written) << "the file itself has room";
  EXPECT_TRUE(file->state().write_through);
  EXPECT_EQ(file->state().reason.kind, ErrorKind::no_space);
  EXPECT_EQ(rig.file->content(), filled(500, 1));
  ASSERT_TRUE(file->close());
}

TEST(CachedFileRoom, WaitsForItsOwnFlushWhereTheLogIsFull) {
  CacheRig rig;
  rig.options.flush = CacheFlush::onclose;
  rig.capacity = std::make_shared<Resource>("cache.local", 8 * 32 * KiB);
  const auto file = rig.open();
  FileModel model;
  for (int i = 0; i < 200; ++i) {
    const Content bytes = filled(3000, i);
    ASSERT_TRUE(file->write_at(bytes, i * 2500));
    model.write(i * 2500, bytes);
    ASSERT_LE(file->state().progress.dirty, rig.capacity->amount());
  }
  EXPECT_FALSE(file->state().write_through);
  EXPECT_GT(file->state().crowded_ns, 0);
  EXPECT_EQ(read_all(*file, model.size()), model.content());
  ASSERT_TRUE(file->close());
  EXPECT_EQ(rig.file->content(), model.content());
  EXPECT_EQ(rig.capacity->free(), rig.capacity->amount());
}

TEST(CachedFileRoom, WaitsForItsOwnFlushWithinOneWriteOverOlderOnes) {
  CacheRig rig;
  rig.capacity = std::make_shared<Resource>("cache.local", 8 * 32 * KiB);
  const auto file = rig.open();
  // The second lies over the first, is larger than the log, and is not committed meanwhile.
  ASSERT_TRUE(file->write_at(filled(100'000, 1), 0));
  ASSERT_TRUE(file->commit(2));
  ASSERT_TRUE(file->write_at(filled(1'000'000, 2), 0));
  EXPECT_FALSE(file->state().write_through);
  ASSERT_TRUE(file->close());
  EXPECT_EQ(rig.file->content(), filled(1'000'000, 2));
}

TEST(CachedFileRoom, TellsWhereAFullLogCannotBeFlushed) {
  CacheRig rig;
  rig.capacity = std::make_shared<Resource>("cache.local", 8 * 32 * KiB);
  rig.file_plan = std::make_shared<FaultPlan>(std::vector<Fault>{
      {.call = StorageCall::write, .nth = 0, .os_errno = ENOSPC, .lasting = true}});
  const auto file = rig.open();
  Status status;
  int writes = 0;
  while (status && writes < 1000) {
    status = file->write_at(filled(3000, writes), writes * 3000);
    ++writes;
  }
  EXPECT_EQ(status.error().kind, ErrorKind::no_space);
  for (int i = 0; i + 1 < writes; ++i) {
    Content back(3000);
    ASSERT_EQ(file->read_at(back, i * 3000).value(), 3000);
    EXPECT_EQ(back, filled(3000, i)) << "what was acknowledged is there";
  }
}

class CachedFileCapacity : public ::testing::TestWithParam<CacheFlush> {};

/// Under `deferred`, within a write of which the other ranks have not heard yet.
TEST_P(CachedFileCapacity, SharesTheCapacityWithOthersOfTheNode) {
  const auto capacity = std::make_shared<Resource>("cache.local", 8 * 32 * KiB);
  CacheRig first;
  CacheRig second;
  second.rank = 1;
  first.capacity = second.capacity = capacity;
  first.options.flush = second.options.flush = GetParam();
  if (GetParam() == CacheFlush::deferred) {
    first.options.lull = first.options.longest_burst = std::chrono::hours(1);
  }
  const auto one = first.open();
  const auto two = second.open();
  one->begin_access();
  // The first fills the device and rests; the second gets its share without the first being asked.
  FileModel model_one;
  FileModel model_two;
  for (int i = 0; i < 80; ++i) {
    ASSERT_TRUE(one->write_at(filled(3000, i), i * 3000));
    model_one.write(i * 3000, filled(3000, i));
  }
  ASSERT_TRUE(one->commit(2));
  for (int i = 0; i < 80; ++i) {
    ASSERT_TRUE(two->write_at(filled(3000, i + 7), i * 3000));
    model_two.write(i * 3000, filled(3000, i + 7));
  }
  EXPECT_FALSE(one->state().write_through);
  EXPECT_FALSE(two->state().write_through);
  EXPECT_EQ(read_all(*one, 1 << 20), model_one.content());
  ASSERT_TRUE(one->close());
  ASSERT_TRUE(two->close());
  EXPECT_EQ(first.file->content(), model_one.content());
  EXPECT_EQ(second.file->content(), model_two.content());
}

INSTANTIATE_TEST_SUITE_P(Policies, CachedFileCapacity,
                         ::testing::Values(CacheFlush::onclose, CacheFlush::deferred));

}  // namespace
}  // namespace forebay
