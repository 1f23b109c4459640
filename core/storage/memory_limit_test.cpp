// Goal: what a batch system lets a job take of memory is known, of either version of control
// groups, and nothing is made up where there is no limit. Method: trees as the kernel shows them,
// in a directory of the test's own.

#include "core/storage/memory_limit.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace forebay {
namespace {

namespace fs = std::filesystem;

class MemoryLimitTest : public ::testing::Test {
 protected:
  ~MemoryLimitTest() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
    std::ofstream(root_ + path) << text << "\n";
  }
  std::optional<Bytes> left() const { return memory_left(root_); }

  static std::string new_directory() {
    std::string name = fs::temp_directory_path() / "forebay-limit-XXXXXX";
    return ::mkdtemp(name.data());
  }
  const std::string root_ = new_directory();
};

TEST_F(MemoryLimitTest, IsThatOfTheGroup) {
  put("/proc/self/cgroup", "0::/slurm/job_7");
  put("/sys/fs/cgroup/slurm/job_7/memory.max", "16000");
  put("/sys/fs/cgroup/slurm/job_7/memory.current", "9000");
  EXPECT_EQ(left(), 7000);
  put("/sys/fs/cgroup/slurm/job_7/memory.stat",
      "anon 2000\nfile 7000\nshmem 3000\nactive_file 1500\ninactive_file 2500");
  EXPECT_EQ(left(), 11000) << "the page cache is given back first, files in memory are not";
  put("/sys/fs/cgroup/slurm/job_7/memory.high", "15000");
  EXPECT_EQ(left(), 10000) << "beyond it the job would have to wait";
  put("/sys/fs/cgroup/slurm/job_7/memory.high", "max");
  put("/sys/fs/cgroup/slurm/job_7/memory.max", "4000");
  EXPECT_EQ(left(), 0) << "it was lowered";
}

TEST_F(MemoryLimitTest, IsTheNarrowestOfThoseThatTheGroupIsIn) {
  put("/proc/self/cgroup", "0::/slurm/job_7/step_0");
  put("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max");
  put("/sys/fs/cgroup/slurm/job_7/step_0/memory.current", "100");
  put("/sys/fs/cgroup/slurm/job_7/memory.max", "5000");
  put("/sys/fs/cgroup/slurm/job_7/memory.current", "1000");
  put("/sys/fs/cgroup/slurm/memory.max", "6000");
  put("/sys/fs/cgroup/slurm/memory.current", "3000");
  EXPECT_EQ(left(), 3000);
}

TEST_F(MemoryLimitTest, IsReadOfVersion1) {
  put("/proc/self/cgroup", "9:name=systemd:/x\n4:cpuacct,memory:/slurm/job_7\n0::/");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "0");
  EXPECT_GT(left().value_or(0), Bytes{1} << 60) << "that much is no limit";
  put("/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "16000");
  put("/sys/fs/cgroup/memory/slurm/job_7/memory.usage_in_bytes", "9000");
  put("/sys/fs/cgroup/memory/slurm/job_7/memory.stat",
      "active_file 1\ntotal_active_file 500\ntotal_inactive_file 500");
  EXPECT_EQ(left(), 8000);
}

TEST_F(MemoryLimitTest, IsThatOfAContainerWhosePathIsTheHosts) {
  put("/proc/self/cgroup", "4:memory:/docker/0123");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "5000");
  put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "2000");
  EXPECT_EQ(left(), 3000);
}

TEST_F(MemoryLimitTest, IsNotThereWhereNothingTells) {
  EXPECT_EQ(left(), std::nullopt);
  put("/proc/self/cgroup", "0::/");
  EXPECT_EQ(left(), std::nullopt);
  put("/proc/self/cgroup", "0::/job");
  put("/sys/fs/cgroup/job/memory.max", "max");
  put("/sys/fs/cgroup/job/memory.current", "9000");
  EXPECT_EQ(left(), std::nullopt);
  put("/sys/fs/cgroup/job/memory.max", "10000");
  EXPECT_EQ(left(), 1000);
  fs::remove(root_ + "/sys/fs/cgroup/job/memory.current");
  EXPECT_EQ(left(), std::nullopt);
}

}  // namespace
}  // namespace forebay
