// Goal: whoever opens a file that an earlier program left incomplete is told so, and of nothing
// else; and whoever goes on to write it has the old logs marked. Method: a directory of the test's
// own, with logs that are in use, left, lost, of other nodes and of a file that is gone.

#include "core/engine/collective/left_logs.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "core/engine/cache/log_directory.hpp"
#include "core/engine/cache/overtaken_logs.hpp"
#include "core/engine/collective/cache_place.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t started = 1'800'000'000;

class LeftLogsTest : public ::testing::Test {
 protected:
  LeftLogsTest() {
    fs::create_directory(base_ / "local");
    std::ofstream(path_).close();
    auto made = CacheDirectory::open(base_ / "local", CacheDirectory::Access::create);
    EXPECT_TRUE(made);
    directory_ = std::move(*made);
  }
  ~LeftLogsTest() override { fs::remove_all(base_); }

  DirtyNotice notice_of(const std::string& log) const {
    DirtyNotice notice;
    notice.file = *identify(path_);
    notice.log = log;
    notice.log_path = directory_->path() + "/" + log;
    notice.host = this_host();
    notice.since_unix_s = started + 1;
    return notice;
  }
  std::string warn(bool writing) const { return warn_of_left_logs(path_, writing, started); }
  void announce(const DirtyNotice& notice) const { ASSERT_TRUE(Sidecar(path_).announce(notice)); }
  std::map<std::string, int> overtaken() const { return *overtaken_logs(Sidecar(path_)); }

  /// Gives up once it would have been so long ago.
  static void await(const std::function<bool()>& is_so) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!is_so() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }

  static fs::path new_directory() {
    std::string name = fs::temp_directory_path() / "forebay-left-XXXXXX";
    return ::mkdtemp(name.data());
  }
  const fs::path base_ = new_directory();
  const std::string path_ = (base_ / "data").string();
  std::shared_ptr<CacheDirectory> directory_;
};

TEST_F(LeftLogsTest, AreToldOfOnceTheirProgramHasEnded) {
  EXPECT_EQ(warn(true), "");
  auto log = LogDirectory::create(directory_, "one");
  ASSERT_TRUE(log);
  announce(notice_of("one"));
  EXPECT_EQ(warn(true), "") << "it is being written";
  EXPECT_TRUE(overtaken().empty());

  log->reset();
  const std::string command = "forebay cache recover " + path_;
  EXPECT_EQ(warn(false),
            "1 write-behind log of an earlier program holds bytes that are not in the file; bring "
            "them there: " +
                command);
  EXPECT_TRUE(overtaken().empty()) << "who reads overtakes nobody";
  EXPECT_EQ(warn(true),
            "1 write-behind log of an earlier program holds bytes that are not in the file; stop, "
            "and bring them there before it is written again: " +
                command);
  EXPECT_EQ(overtaken(), (std::map<std::string, int>{{"one", 1}}));

  ASSERT_TRUE(Sidecar(path_).withdraw("one"));
  EXPECT_EQ(warn(true), "");
  EXPECT_FALSE(fs::exists(Sidecar(path_).path())) << "the mark goes with it";
}

/// Whose program writes them is not known where there are no jobs.
TEST_F(LeftLogsTest, AreToldOfWhileAnotherJobWritesThem) {
  const auto log = LogDirectory::create(directory_, "one");
  ASSERT_TRUE(log);
  DirtyNotice notice = notice_of("one");
  notice.job = "4711";
  announce(notice);
  EXPECT_EQ(warn(true), "");
  ASSERT_EQ(::setenv("SLURM_JOB_ID", "4711", 1), 0);
  EXPECT_EQ(warn(true), "") << "it is this job's";
  ASSERT_EQ(::setenv("SLURM_JOB_ID", "4712", 1), 0);
  const std::string running =
      "1 write-behind log of another job, which is running, holds bytes that are not in the file "
      "yet: wait until it has closed the file";
  EXPECT_EQ(warn(false), running);
  EXPECT_TRUE(overtaken().empty());
  EXPECT_EQ(warn(true), running);
  EXPECT_EQ(overtaken(), (std::map<std::string, int>{{"one", 1}}));
  ::unsetenv("SLURM_JOB_ID");
}

/// As `forebay cache recover` does.
std::unique_ptr<LogDirectory> recovering(const std::shared_ptr<CacheDirectory>& directory) {
  auto log = LogDirectory::open(directory, "one", LogDirectory::Use::replace);
  if (!log || !(*log)->say_recovering()) return nullptr;
  return std::move(*log);
}

TEST_F(LeftLogsTest, AreToldOfWhileTheyAreRecovered) {
  ASSERT_TRUE(LogDirectory::create(directory_, "one"));
  announce(notice_of("one"));
  const auto recovery = recovering(directory_);
  ASSERT_NE(recovery, nullptr);
  EXPECT_EQ(warn(false),
            "1 write-behind log of an earlier program holds bytes that are not in the file yet, "
            "and are being recovered: wait until that is done");
  EXPECT_TRUE(overtaken().empty());
}

TEST_F(LeftLogsTest, AreLeftByARecoveryBeforeTheFileIsWritten) {
  ASSERT_TRUE(LogDirectory::create(directory_, "one"));
  announce(notice_of("one"));
  ASSERT_NE(warn(true), "");
  ASSERT_EQ(overtaken(), (std::map<std::string, int>{{"one", 1}}));
  auto recovery = recovering(directory_);
  ASSERT_NE(recovery, nullptr);
  std::thread stops([&] {
    await([&] { return overtaken().at("one") == 2; });
    recovery.reset();
  });
  const std::string told = warn(true);
  stops.join();
  EXPECT_NE(told.find("1 write-behind log of an earlier program"), std::string::npos);
  EXPECT_EQ(told.find("recovery"), std::string::npos) << "nobody has it any more: " << told;
}

TEST_F(LeftLogsTest, AreNoMatterOnceTheirRecoveryIsDone) {
  ASSERT_TRUE(LogDirectory::create(directory_, "one"));
  announce(notice_of("one"));
  auto recovery = recovering(directory_);
  ASSERT_NE(recovery, nullptr);
  std::thread ends([&] {
    await([&] { return !overtaken().empty(); });
    EXPECT_TRUE(recovery->destroy());
    EXPECT_TRUE(Sidecar(path_).withdraw("one"));
    recovery.reset();
  });
  EXPECT_EQ(warn(true), "");
  ends.join();
}

/// Between the removal of the last file of a log, which says who has it, and that of its directory.
TEST_F(LeftLogsTest, AreNoMatterOnceTheirRecoveryHasRemovedTheirFiles) {
  ASSERT_TRUE(LogDirectory::create(directory_, "one"));
  announce(notice_of("one"));
  const auto recovery = recovering(directory_);
  ASSERT_NE(recovery, nullptr);
  std::thread removes([&] {
    await([&] { return !overtaken().empty(); });
    for (const auto& file : fs::directory_iterator(recovery->path())) fs::remove(file.path());
  });
  EXPECT_EQ(warn(true), "");
  removes.join();
  EXPECT_TRUE(fs::exists(recovery->path()));
}

TEST_F(LeftLogsTest, MayBeOnOtherNodesOrLost) {
  announce(notice_of("lost"));
  DirtyNotice elsewhere = notice_of("elsewhere");
  elsewhere.host = "another-node";
  elsewhere.job = "4711";
  ++elsewhere.file.device;  // The same file system, by another host's numbers.
  announce(elsewhere);
  EXPECT_NE(warn(false).find("2 write-behind logs"), std::string::npos);
  ASSERT_EQ(::setenv("SLURM_JOB_ID", "4711", 1), 0);
  EXPECT_NE(warn(false).find("1 write-behind log "), std::string::npos)
      << "a rank of this job writes the other";
  elsewhere.since_unix_s = started - 3;
  announce(elsewhere);
  EXPECT_NE(warn(true).find("2 write-behind logs"), std::string::npos)
      << "a program that the job ran before this one left it";
  EXPECT_EQ(overtaken(), (std::map<std::string, int>{{"elsewhere", 1}, {"lost", 1}}));
  ::unsetenv("SLURM_JOB_ID");
}

/// As where a close fails on one node, and the program writes the file anew.
TEST_F(LeftLogsTest, OfThisProgramOnOtherNodesCountOnceItLetGoOfThem) {
  DirtyNotice elsewhere = notice_of("elsewhere");
  elsewhere.host = "another-node";
  elsewhere.job = "4711";
  announce(elsewhere);
  ASSERT_EQ(::setenv("SLURM_JOB_ID", "4711", 1), 0);
  EXPECT_EQ(warn(true), "") << "a rank of this program writes it";
  EXPECT_TRUE(overtaken().empty());
  elsewhere.is_left = true;
  announce(elsewhere);
  EXPECT_NE(warn(true).find("1 write-behind log "), std::string::npos);
  EXPECT_EQ(overtaken(), (std::map<std::string, int>{{"elsewhere", 1}}));
  ::unsetenv("SLURM_JOB_ID");
}

/// As after a reboot, or where the file system was mounted again.
TEST_F(LeftLogsTest, AreThoseOfTheFileWhateverNumberItsDeviceHas) {
  DirtyNotice notice = notice_of("one");
  ++notice.file.device;
  announce(notice);
  EXPECT_NE(warn(true).find("1 write-behind log "), std::string::npos);
  EXPECT_EQ(overtaken(), (std::map<std::string, int>{{"one", 1}}));
}

TEST_F(LeftLogsTest, MayBeThoseWhoseNoticesCannotBeRead) {
  announce(notice_of("one"));
  std::ofstream(Sidecar(path_).path() + "/broken.json") << "{}";
  const std::string told = warn(false);
  EXPECT_NE(told.find("1 write-behind log "), std::string::npos) << told;
  EXPECT_NE(told.find("cannot be told"), std::string::npos) << told;
  EXPECT_NE(told.find("forebay cache ls " + path_), std::string::npos) << told;
  ASSERT_TRUE(Sidecar(path_).withdraw("one"));
  for (int i = 0; i < 2; ++i) EXPECT_NE(warn(true).find("cannot be told"), std::string::npos);
  EXPECT_EQ(overtaken(), (std::map<std::string, int>{{"broken", 1}}));
}

TEST_F(LeftLogsTest, OfAFileThatIsGoneAreNoMatter) {
  DirtyNotice old = notice_of("old");
  ++old.file.inode;
  announce(old);
  EXPECT_EQ(warn(true), "");
}

}  // namespace
}  // namespace forebay
