// Goal: logs are this user's alone, nothing is reached through a link, and a log in use is not
// taken from its writer.
// Method: a directory of the test's own, with everything in it that must be refused.

#include "core/engine/cache/log_directory.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace forebay {
namespace {

namespace fs = std::filesystem;
using Access = CacheDirectory::Access;
using Use = LogDirectory::Use;

class LogDirectoryTest : public ::testing::Test {
 protected:
  LogDirectoryTest() {
    std::string name = fs::temp_directory_path() / "forebay-log-XXXXXX";
    base_ = ::mkdtemp(name.data());
    own_ = base_ / ("forebay-cache-" + std::to_string(::geteuid()));
  }
  ~LogDirectoryTest() override { fs::remove_all(base_); }

  std::shared_ptr<CacheDirectory> cache() { return *CacheDirectory::open(base_, Access::create); }

  static mode_t mode(const fs::path& path) {
    struct stat status{};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }

  fs::path base_;
  fs::path own_;
};

TEST_F(LogDirectoryTest, MakesDirectoriesAndFilesForThisUserAlone) {
  const auto log = LogDirectory::create(cache(), "a");
  ASSERT_TRUE(log);
  const auto file = (*log)->create("segment", 8192);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->storage->size().value(), 8192);
  EXPECT_EQ(mode(own_), 0700U);
  EXPECT_EQ(mode(own_ / "a"), 0700U);
  EXPECT_EQ(mode(own_ / "a/segment"), 0600U);
  EXPECT_EQ((*log)->path(), own_ / "a");
}

TEST_F(LogDirectoryTest, FindsTheUsersDirectoryByItsOwnPathToo) {
  ASSERT_TRUE(LogDirectory::create(cache(), "a"));
  const auto same = CacheDirectory::open(own_.string() + "/", Access::existing);
  ASSERT_TRUE(same);
  EXPECT_EQ((*same)->path(), own_);
  EXPECT_EQ((*same)->logs().value(), std::vector<std::string>{"a"});
}

TEST_F(LogDirectoryTest, HasOneNameHoweverItIsReached) {
  ASSERT_TRUE(LogDirectory::create(cache(), "a"));
  fs::create_directory(base_ / "beside");
  fs::create_directory_symlink(base_, base_ / "beside" / "link");
  for (const fs::path& way : {base_ / "beside" / "link", base_ / "beside" / ".."}) {
    const auto same = CacheDirectory::open(way, Access::existing);
    ASSERT_TRUE(same);
    EXPECT_EQ((*same)->path(), own_);
  }
}

TEST_F(LogDirectoryTest, SaysWhatIsNotThere) {
  EXPECT_EQ(CacheDirectory::open(base_, Access::existing).error().kind, ErrorKind::no_such_file);
  EXPECT_EQ(CacheDirectory::open(base_ / "none", Access::create).error().kind,
            ErrorKind::no_such_file);
  EXPECT_EQ(LogDirectory::open(cache(), "none", Use::look).error().kind, ErrorKind::no_such_file);
}

TEST_F(LogDirectoryTest, RefusesALinkInPlaceOfTheUsersDirectory) {
  fs::create_directory(base_ / "elsewhere");
  fs::permissions(base_ / "elsewhere", fs::perms::owner_all);
  fs::create_directory_symlink(base_ / "elsewhere", own_);
  const auto refused = CacheDirectory::open(base_, Access::create);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::access);
  EXPECT_TRUE(fs::is_empty(base_ / "elsewhere"));
}

TEST_F(LogDirectoryTest, RefusesAFileInPlaceOfTheUsersDirectory) {
  std::ofstream(own_) << "x";
  EXPECT_EQ(CacheDirectory::open(base_, Access::create).error().kind, ErrorKind::access);
}

TEST_F(LogDirectoryTest, RefusesWhatIsOpenToOthers) {
  for (const auto bit : {fs::perms::group_read, fs::perms::others_exec, fs::perms::others_write}) {
    fs::remove_all(own_);
    fs::create_directory(own_);
    fs::permissions(own_, fs::perms::owner_all | bit);
    const auto refused = CacheDirectory::open(base_, Access::create);
    ASSERT_FALSE(refused);
    EXPECT_EQ(to_string(refused.error()),
              "the cache does not use " + own_.string() + ": it is open to other users");
  }
}

TEST_F(LogDirectoryTest, RefusesAPlaceWhereOthersCanRenameItsDirectory) {
  fs::permissions(base_, fs::perms::all);
  EXPECT_EQ(CacheDirectory::open(base_, Access::create).error().kind, ErrorKind::access);
  fs::permissions(base_, fs::perms::all | fs::perms::sticky_bit);
  EXPECT_TRUE(CacheDirectory::open(base_, Access::create));
}

TEST_F(LogDirectoryTest, RefusesWhatBelongsToAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a directory of another user";
  fs::create_directory(own_);
  fs::permissions(own_, fs::perms::owner_all);
  ASSERT_EQ(::chown(own_.c_str(), 12345, 12345), 0);
  const auto refused = CacheDirectory::open(base_, Access::create);
  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error()),
            "the cache does not use " + own_.string() + ": it belongs to another user");
  ASSERT_EQ(::chown(own_.c_str(), 0, 0), 0);

  auto log = LogDirectory::create(cache(), "a");
  ASSERT_TRUE(log);
  ASSERT_TRUE((*log)->create("segment", 100));
  ASSERT_EQ(::chown((own_ / "a/segment").c_str(), 12345, 12345), 0);
  EXPECT_EQ((*log)->open("segment").error().kind, ErrorKind::access);
  log->reset();
  ASSERT_EQ(::chown((own_ / "a").c_str(), 12345, 12345), 0);
  EXPECT_EQ(LogDirectory::open(cache(), "a", Use::look).error().kind, ErrorKind::access);
}

TEST_F(LogDirectoryTest, RefusesLinksAndOddFilesWithinALog) {
  const auto log = LogDirectory::create(cache(), "a");
  ASSERT_TRUE(log);
  std::ofstream(base_ / "target") << "untouched";
  fs::create_symlink(base_ / "target", own_ / "a/segment");
  EXPECT_EQ((*log)->open("segment").error().kind, ErrorKind::access);
  EXPECT_EQ((*log)->create("segment", 100).error().kind, ErrorKind::exists);
  ASSERT_EQ(::mkfifo((own_ / "a/pipe").c_str(), 0600), 0);
  EXPECT_EQ((*log)->open("pipe").error().kind, ErrorKind::access);
  fs::create_directory_symlink(own_ / "a", own_ / "b");
  EXPECT_EQ(LogDirectory::open(cache(), "b", Use::look).error().kind, ErrorKind::access);
  EXPECT_EQ(cache()->logs().value(), std::vector<std::string>{"a"});
}

TEST_F(LogDirectoryTest, KeepsALogForTheOneWhoUsesIt) {
  auto log = LogDirectory::create(cache(), "a");
  ASSERT_TRUE(log);
  EXPECT_FALSE((*log)->in_use()) << "by anybody else";
  EXPECT_TRUE((*LogDirectory::open(cache(), "a", Use::look))->in_use());
  const auto second = LogDirectory::open(cache(), "a", Use::replace);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::exists);
  EXPECT_EQ(LogDirectory::create(cache(), "a").error().kind, ErrorKind::exists);
  log->reset();
  EXPECT_FALSE((*LogDirectory::open(cache(), "a", Use::look))->in_use());
  EXPECT_TRUE(LogDirectory::open(cache(), "a", Use::replace));
}

TEST_F(LogDirectoryTest, TellsARecoveryFromAProgram) {
  ASSERT_TRUE(LogDirectory::create(cache(), "a"));
  const auto user = [&] { return (*LogDirectory::open(cache(), "a", Use::look))->user(); };
  EXPECT_EQ(user(), LogDirectory::User::nobody);
  const auto log = LogDirectory::open(cache(), "a", Use::replace);
  ASSERT_TRUE(log);
  EXPECT_EQ(user(), LogDirectory::User::program);
  ASSERT_TRUE((*log)->say_recovering());
  EXPECT_EQ(user(), LogDirectory::User::recovery);
  EXPECT_EQ(LogDirectory::open(cache(), "a", Use::replace).error().kind, ErrorKind::exists)
      << "one recovery at a time";
}

TEST_F(LogDirectoryTest, ListsRenamesAndRemovesItsFiles) {
  const auto log = LogDirectory::create(cache(), "a");
  ASSERT_TRUE(log);
  ASSERT_TRUE((*log)->create("two", 10));
  ASSERT_TRUE((*log)->create("one", 10));
  EXPECT_EQ((*log)->list().value(), (std::vector<std::string>{"one", "two"}));
  ASSERT_TRUE((*log)->rename("one", "two"));
  ASSERT_TRUE((*log)->sync());
  EXPECT_EQ((*log)->list().value(), std::vector<std::string>{"two"});
  EXPECT_FALSE((*log)->rename("one", "three"));
  ASSERT_TRUE((*log)->remove("two"));
  EXPECT_TRUE((*log)->remove("two")) << "gone is gone";
  ASSERT_TRUE((*log)->create("left", 10));
  ASSERT_TRUE((*log)->destroy());
  EXPECT_TRUE(fs::is_empty(own_));
}

TEST_F(LogDirectoryTest, ShowsALogUnderItsNameWhenItHasOne) {
  const auto log = LogDirectory::create(cache(), ".half");
  ASSERT_TRUE(log);
  ASSERT_TRUE((*log)->create("one", 10));
  EXPECT_TRUE(cache()->logs().value().empty());
  ASSERT_TRUE(LogDirectory::create(cache(), "taken"));
  EXPECT_EQ((*log)->rename_log("taken").error().kind, ErrorKind::exists);
  ASSERT_TRUE((*log)->rename_log("whole"));
  EXPECT_EQ(cache()->logs().value(), (std::vector<std::string>{"taken", "whole"}));
  EXPECT_EQ((*log)->path(), (own_ / "whole").string());
  EXPECT_TRUE((*LogDirectory::open(cache(), "whole", Use::look))->in_use());
  EXPECT_EQ((*log)->list().value(), std::vector<std::string>{"one"});
  ASSERT_TRUE((*log)->destroy());
  EXPECT_EQ(cache()->logs().value(), std::vector<std::string>{"taken"});
}

TEST_F(LogDirectoryTest, LeavesNothingOfAFileThatHasNoRoom) {
  const auto log = LogDirectory::create(cache(), "a");
  ASSERT_TRUE(log);
  EXPECT_FALSE((*log)->create("huge", Bytes{1} << 60));
  EXPECT_TRUE((*log)->list()->empty());
}

class LogDirectoryInMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/dev/shm/forebay-log-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) GTEST_SKIP() << "no /dev/shm here";
    base_ = name;
    auto log = LogDirectory::create(*CacheDirectory::open(name, Access::create), "a");
    ASSERT_TRUE(log);
    log_ = std::move(*log);
  }
  void TearDown() override { fs::remove_all(base_); }

  fs::path base_;
  std::unique_ptr<LogDirectory> log_;
};

TEST_F(LogDirectoryInMemory, ShowsItsFilesWithoutACopy) {
  auto file = log_->create("segment", 8192);
  ASSERT_TRUE(file);
  ASSERT_EQ(file->memory_bytes, 8192);
  EXPECT_TRUE(file->zeroed);
  const std::vector<std::byte> data(100, std::byte{7});
  ASSERT_TRUE(file->storage->write_at(data, 5000));
  EXPECT_EQ(std::vector<std::byte>(file->memory.get() + 5000, file->memory.get() + 5100), data);
  ASSERT_TRUE(log_->destroy());
  EXPECT_EQ(file->memory.get()[5000], std::byte{7}) << "who still reads it may";
}

TEST_F(LogDirectoryInMemory, IsReadWhereItLiesUpToTheFirstHole) {
  auto file = log_->lay_out("segment", 256 * KiB);
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->zeroed);
  const std::vector<std::byte> data(64 * KiB, std::byte{7});
  ASSERT_TRUE(file->storage->write_at(data, 0));
  ASSERT_TRUE(file->storage->write_at(data, 128 * KiB));
  const auto read = log_->open_contents("segment");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->memory_bytes, 64 * KiB);
  EXPECT_EQ(std::vector<std::byte>(read->memory.get(), read->memory.get() + 64 * KiB), data);
  std::vector<std::byte> behind(64 * KiB);
  EXPECT_EQ(read->storage->read_at(behind, 128 * KiB).value(), 64 * KiB);
  EXPECT_EQ(behind, data);
  ASSERT_TRUE(log_->lay_out("new", 256 * KiB));
  const auto empty = log_->open_contents("new");
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->memory, nullptr);
  ASSERT_TRUE(log_->destroy());
}

/// Bytes behind a file that was laid out in a log below `directory`, of 64 KiB.
Bytes behind_laid_out(const std::string& directory, const std::string& log) {
  constexpr Bytes size = 64 * KiB;
  const auto made = LogDirectory::create(*CacheDirectory::open(directory, Access::create), log);
  if (!made || !(*made)->lay_out("segment", size)) return -1;
  struct stat status{};
  const bool found = ::stat(((*made)->path() + "/segment").c_str(), &status) == 0;
  return found && status.st_size == size ? status.st_blocks * 512 : -1;
}

TEST_F(LogDirectoryTest, GetsStorageFirstOnADevice) {
  if (cache()->in_memory()) GTEST_SKIP() << "the directory of tests is in memory";
  EXPECT_GE(behind_laid_out(base_.string(), "a"), 64 * KiB);
  const auto log = LogDirectory::create(cache(), "b");
  ASSERT_TRUE(log);
  const auto file = (*log)->create("segment", 64 * KiB);
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->zeroed) << "it took no time by the byte";
}

/// A tmpfs of a MiB over `directory`, for this process alone, which has one thread. False: this
/// user may not have that here.
bool small_tmpfs(const std::string& directory) {
  const auto user = ::geteuid();
  const auto group = ::getegid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << fmt::format("{0} {0} 1", user);
  std::ofstream("/proc/self/gid_map") << fmt::format("{0} {0} 1", group);
  return ::mount("none", directory.c_str(), "tmpfs", 0, "size=1m,mode=700") == 0;
}

constexpr int may_not = 77;

/// 0, or what went wrong.
int lays_out_while_half_is_free() {
  const std::string own = fs::temp_directory_path().string();
  if (!small_tmpfs(own)) return may_not;
  if (behind_laid_out(own, "plenty") != 0) return 1;
  std::ofstream(own + "/others") << std::string(600 * KiB, 'x');
  return behind_laid_out(own, "scarce") >= 64 * KiB ? 0 : 2;
}

TEST(LogDirectoryInMemoryDeathTest, GetsStorageFirstWhereHalfOfItIsTaken) {
  bool skipped = false;
  const auto right = [&skipped](int status) {
    skipped = testing::ExitedWithCode(may_not)(status);
    return skipped || testing::ExitedWithCode(0)(status);
  };
  EXPECT_EXIT(std::_Exit(lays_out_while_half_is_free()), right, "");
  if (skipped) GTEST_SKIP() << "needs a mount";
}

}  // namespace
}  // namespace forebay
