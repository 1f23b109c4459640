// Goal: with a second handle of a file no cache of it holds anything back, in whatever order
// handles and caches come and go; those of other files do not matter.

#include "core/engine/collective/file_handles.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace forebay {
namespace {

constexpr FileId file{.device = 8, .inode = 2001};
constexpr FileId other_file{.device = 8, .inode = 2002};

/// How often a cache was ended, and what comes of it.
struct Ended {
  int times = 0;
  Status status;

  FileHandles::End end() {
    return [this] {
      ++times;
      return status;
    };
  }
};

TEST(FileHandles, OfOneFileKnowOfEachOther) {
  const FileHandles::Handle first(FileHandles::of(file));
  EXPECT_TRUE(first.is_only_one());
  const FileHandles::Handle of_another(FileHandles::of(other_file));
  EXPECT_TRUE(first.is_only_one());
  {
    const FileHandles::Handle second(FileHandles::of(file));
    EXPECT_FALSE(first.is_only_one());
    EXPECT_FALSE(second.is_only_one());
  }
  EXPECT_TRUE(first.is_only_one());
}

TEST(FileHandles, EndTheCachesOfTheirFileOnce) {
  EXPECT_FALSE(FileHandles::any_caches());
  Ended mine, another;
  const FileHandles::Handle first(FileHandles::of(file));
  const FileHandles::Handle of_another(FileHandles::of(other_file));
  const FileHandles::Cache cache(first.all(), mine.end());
  const FileHandles::Cache cache_of_another(of_another.all(), another.end());
  EXPECT_TRUE(FileHandles::any_caches());
  EXPECT_EQ(mine.times, 0);
  const FileHandles::Handle second(FileHandles::of(file));
  EXPECT_TRUE(second.all()->end_caches());
  EXPECT_TRUE(second.all()->end_caches());
  EXPECT_EQ(mine.times, 1);
  EXPECT_EQ(another.times, 0);
}

/// Both are opened by threads of one process.
TEST(FileHandles, EndACacheThatComesAfterTheSecondHandle) {
  Ended ended;
  const FileHandles::Handle first(FileHandles::of(file));
  const FileHandles::Handle second(FileHandles::of(file));
  EXPECT_TRUE(second.all()->end_caches());
  const FileHandles::Cache cache(first.all(), ended.end());
  EXPECT_EQ(ended.times, 1);
}

TEST(FileHandles, TryAgainWhatFails) {
  Ended ended;
  ended.status = fail(28, "flush");
  const FileHandles::Handle first(FileHandles::of(file));
  const FileHandles::Cache cache(first.all(), ended.end());
  EXPECT_FALSE(first.all()->end_caches());
  ended.status = {};
  EXPECT_TRUE(first.all()->end_caches());
  EXPECT_TRUE(first.all()->end_caches());
  EXPECT_EQ(ended.times, 2);
}

TEST(FileHandles, LeaveACacheAloneThatIsGone) {
  Ended ended;
  const FileHandles::Handle first(FileHandles::of(file));
  std::optional<FileHandles::Cache> cache(std::in_place, first.all(), ended.end());
  cache.reset();
  EXPECT_TRUE(first.all()->end_caches());
  EXPECT_EQ(ended.times, 0);
  EXPECT_FALSE(FileHandles::any_caches());
}

}  // namespace
}  // namespace forebay
