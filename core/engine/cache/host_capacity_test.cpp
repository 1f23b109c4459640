// Goal: all who use a node-local path share one capacity, and what dead programs left counts for
// nothing.
// Method: several users in one process, which the locks tell apart like processes; a file that
// somebody left; one who has the file locked, as while it is made, and dies when others wait.

#include "core/engine/cache/host_capacity.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

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
  /// The file, locked as by one who makes it, with `content`.
  Descriptor in_the_making(const std::string& content) {
    fs::path path;
    {
      const auto shared = share(100);
      path = fs::directory_iterator(directory_->path())->path();
    }
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    EXPECT_EQ(::fcntl(file.get(), F_OFD_SETLK, &lock), 0);
    EXPECT_EQ(::write(file.get(), content.data(), content.size()),
              static_cast<ssize_t>(content.size()));
    return file;
  }
  /// How many wait for a lock on `file`; none if the kernel does not tell of it at all.
  static std::optional<int> waiting_for(const Descriptor& file) {
    struct stat status = {};
    EXPECT_EQ(::fstat(file.get(), &status), 0);
    const std::string inode = ":" + std::to_string(status.st_ino) + " ";
    std::ifstream locks("/proc/locks");
    std::optional<int> waiting;
    for (std::string line; std::getline(locks, line);) {
      if (line.find(inode) == std::string::npos) continue;
      waiting = waiting.value_or(0) + (line.find("->") == std::string::npos ? 0 : 1);
    }
    return waiting;
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

/// Of those who wait, one makes it. What is in the file: nothing yet, or that it is being made.
TEST_F(HostCapacityTest, IsMadeByAnotherWhereWhoMakesItDies) {
  const std::string begun(static_cast<std::size_t>(Resource::state_bytes()), '\1');
  for (const std::string& content : {std::string(), begun}) {
    auto maker = in_the_making(content);
    if (!waiting_for(maker)) GTEST_SKIP() << "/proc/locks does not tell of locks";
    std::vector<std::shared_ptr<Resource>> shared(3);
    std::vector<std::thread> others;
    others.reserve(shared.size());
    for (auto& one : shared) others.emplace_back([&] { one = share(200); });
    while (waiting_for(maker).value_or(0) < 3) std::this_thread::yield();
    maker = Descriptor();
    for (std::thread& other : others) other.join();
    for (const auto& one : shared) {
      ASSERT_NE(one, nullptr);
      EXPECT_EQ(one->amount(), 200);
      EXPECT_EQ(one->free(), 200);
    }
    const auto holder = ResourceHolder::join(shared[0]);
    ASSERT_TRUE(holder);
    EXPECT_TRUE((*holder)->take(50));
    EXPECT_EQ(shared[2]->free(), 150) << "it is one for all";
  }
}

TEST_F(HostCapacityTest, IsNoLog) {
  const auto shared = share(100);
  const auto logs = directory_->logs();
  ASSERT_TRUE(logs);
  EXPECT_TRUE(logs->empty());
}

}  // namespace
}  // namespace forebay
