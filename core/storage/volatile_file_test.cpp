// Goal: a crash takes from a VolatileFile what its fault model says, and never anything durable.
// Method: worked examples, and chance over many crashes.

#include "core/storage/volatile_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace forebay {
namespace {

using Content = std::vector<std::byte>;

Content filled(std::size_t size, int value) { return Content(size, static_cast<std::byte>(value)); }

struct Rig {
  std::shared_ptr<VolatileInode> inode = std::make_shared<VolatileInode>();
  std::unique_ptr<StorageFile> file = open_volatile_file(inode);
  std::mt19937_64 random{1};
};

TEST(VolatileFile, IsReadAsItWasWritten) {
  Rig rig;
  ASSERT_TRUE(rig.file->write_at(filled(10, 1), 5));
  EXPECT_EQ(rig.file->size().value(), 15);
  Content back(20);
  EXPECT_EQ(rig.file->read_at(back, 5).value(), 10);
  EXPECT_EQ(back[9], std::byte{1});
  ASSERT_TRUE(rig.file->resize(7));
  ASSERT_TRUE(rig.file->allocate(3));
  EXPECT_EQ(rig.file->size().value(), 7);
}

TEST(VolatileFile, KeepsEverythingWhenAProcessIsKilled) {
  Rig rig;
  ASSERT_TRUE(rig.file->write_at(filled(1000, 1), 0));
  const auto left = rig.inode->after_crash(CrashKind::process_killed, rig.random);
  EXPECT_EQ(left->content(), filled(1000, 1));
}

TEST(VolatileFile, FallsBackToItsLastSync) {
  Rig rig;
  ASSERT_TRUE(rig.file->write_at(filled(1000, 1), 0));
  ASSERT_TRUE(rig.file->sync());
  ASSERT_TRUE(rig.file->write_at(filled(10, 2), 0));
  ASSERT_TRUE(rig.file->resize(2000));
  const auto left = rig.inode->after_crash(CrashKind::all_lost, rig.random);
  EXPECT_EQ(left->content(), filled(1000, 1));
  EXPECT_EQ(rig.inode->content().size(), 2000U) << "the crash was elsewhere";
}

TEST(VolatileFile, LosesSectorsByChanceAndNothingThatWasSynced) {
  Rig rig;
  ASSERT_TRUE(rig.file->write_at(filled(4096, 1), 0));
  ASSERT_TRUE(rig.file->sync());
  ASSERT_TRUE(rig.file->write_at(filled(1024, 2), 1000));
  bool old_seen = false;
  bool new_seen = false;
  bool torn_seen = false;
  for (int i = 0; i < 100; ++i) {
    const Content left = rig.inode->after_crash(CrashKind::partly_lost, rig.random)->content();
    ASSERT_EQ(left.size(), 4096U);
    EXPECT_TRUE(std::all_of(left.begin(), left.begin() + 1000,
                            [](std::byte b) { return b == std::byte{1}; }));
    const auto fresh = std::count(left.begin() + 1000, left.begin() + 2024, std::byte{2});
    old_seen |= fresh == 0;
    new_seen |= fresh == 1024;
    torn_seen |= fresh > 0 && fresh < 1024;
    for (std::size_t at = 1024; at < 1536; ++at) EXPECT_EQ(left[at], left[1024]) << "one sector";
  }
  EXPECT_TRUE(old_seen && new_seen && torn_seen);
}

}  // namespace
}  // namespace forebay
