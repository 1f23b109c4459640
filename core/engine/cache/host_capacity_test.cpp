// Goal: all who use a node-local path share one capacity, and what dead programs left counts for
// nothing.
// Method: several users in one process, which the locks tell apart like processes; a file that
// somebody left.

#include "core/engine/cache/host_capacity.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace forebay {
namespace {

namespace fs = std::filesystem;

class HostCapacityTest : public ::testing::Test {
 protected:
  HostCapacityTest() {
    std::string name = fs::temp_directory_path() / "forebay-capacity-XXXXXX";
    base_ = ::mkdtemp(name.data());
    directory_ = *CacheDirectory::open(base_, CacheDirectory::Access::create);
  }
  ~HostCapacityTest() override { fs::remove_all(base_); }

  std::shared_ptr<Resource> share(Bytes amount) {
    auto shared = share_host_capacity(directory_, amount);
    EXPECT_TRUE(shared);
    return shared ? *shared : nullptr;
  }
  bool file_is_there() const {
    return fs::directory_iterator(directory_->path()) != fs::directory_iterator();
  }

  fs::path base_;
  std::shared_ptr<CacheDirectory> directory_;
};

TEST_F(HostCapacityTest, IsOneForAllAndTheFirstOnesAmount) {
  const auto one = share(100);
  const auto two = share(500);
  EXPECT_EQ(two->amount(), 100);
  const auto holder = ResourceHolder::join(one);
  ASSERT_TRUE(holder);
  EXPECT_TRUE((*holder)->take(70));
  EXPECT_EQ(two->free(), 30);
}

TEST_F(HostCapacityTest, IsGoneWithItsLastUser) {
  auto one = share(100);
  auto two = share(100);
  one.reset();
  EXPECT_TRUE(file_is_there());
  two.reset();
  EXPECT_FALSE(file_is_there());
  EXPECT_EQ(share(300)->amount(), 300);
}

TEST_F(HostCapacityTest, StartsAnewAfterAProcessThatDiedWithAllOfIt) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto all = share_host_capacity(directory_, 100);
    const auto holder = all ? ResourceHolder::join(*all) : tl::unexpected(all.error());
    const bool taken = holder && (*holder)->take(100);
    ::_exit(taken ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(file_is_there());
  EXPECT_EQ(share(200)->free(), 200);
}

TEST_F(HostCapacityTest, IsNoLog) {
  const auto shared = share(100);
  const auto logs = directory_->logs();
  ASSERT_TRUE(logs);
  EXPECT_TRUE(logs->empty());
}

}  // namespace
}  // namespace forebay
