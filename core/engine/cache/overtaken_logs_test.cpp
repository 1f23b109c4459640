// Goal: logs that others wrote past are known to be old, the oldest as such, until they are gone.
// Method: a directory of the test's own; notices of logs that need not exist.

#include "core/engine/cache/overtaken_logs.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/storage/volatile_file.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;

class OvertakenLogsTest : public ::testing::Test {
 protected:
  ~OvertakenLogsTest() override { fs::remove_all(base_); }

  void leave(const std::string& log) {
    DirtyNotice notice;
    notice.log = log;
    EXPECT_TRUE(sidecar_.announce(notice));
  }
  std::ptrdiff_t marks() const {
    return std::distance(fs::directory_iterator(sidecar_.path()), {}) -
           static_cast<std::ptrdiff_t>(sidecar_.read()->notices.size());
  }

  static fs::path new_directory() {
    std::string name = fs::temp_directory_path() / "forebay-overtaken-XXXXXX";
    return ::mkdtemp(name.data());
  }

  const fs::path base_ = new_directory();
  Sidecar sidecar_{(base_ / "data").string()};
};

TEST_F(OvertakenLogsTest, AreTheOlderTheMoreOftenTheyWere) {
  EXPECT_TRUE(overtaken_logs(sidecar_)->empty());
  leave("first");
  ASSERT_TRUE(mark_overtaken(sidecar_, "job-2", {"first"}));
  ASSERT_TRUE(mark_overtaken(sidecar_, "job-2-again", {"first"}));
  EXPECT_EQ(marks(), 1) << "it is known";
  leave("second");
  ASSERT_TRUE(mark_overtaken(sidecar_, "job-3", {"first", "second"}));
  EXPECT_EQ(*overtaken_logs(sidecar_), (std::map<std::string, int>{{"first", 2}, {"second", 1}}));
  ASSERT_TRUE(mark_overtaken(sidecar_, "job-4", {}));
  EXPECT_EQ(marks(), 2);
}

TEST_F(OvertakenLogsTest, EndTheRecoveryThatHasThem) {
  leave("first");
  ASSERT_TRUE(mark_overtaken(sidecar_, "job-2", {"first"}));
  const auto inode = std::make_shared<VolatileInode>();
  const auto file = until_overtaken(open_volatile_file(inode), sidecar_, {{"first", 1}},
                                    std::chrono::milliseconds(0));
  const std::vector<std::byte> bytes(100);
  ASSERT_TRUE(file->write_at(bytes, 0)) << "that was known";
  leave("second");
  ASSERT_TRUE(mark_overtaken(sidecar_, "job-3", {"second"}));
  ASSERT_TRUE(file->write_at(bytes, 100)) << "that is another's";
  ASSERT_TRUE(mark_overtaken(sidecar_, "job-4", {"first"}, true));
  // It looks the less often the longer that takes.
  Status written;
  while (written) written = file->write_at(bytes, 100);
  EXPECT_EQ(written.error().kind, ErrorKind::exists);
  EXPECT_EQ(file->resize(0).error().kind, ErrorKind::exists);
  EXPECT_EQ(file->allocate(1000).error().kind, ErrorKind::exists);
  file->lengthen(1000);
  EXPECT_EQ(inode->content().size(), 200U);
}

TEST_F(OvertakenLogsTest, AreForgottenWithTheirNotices) {
  leave("first");
  ASSERT_TRUE(mark_overtaken(sidecar_, "job-2", {"first"}));
  leave("second");
  ASSERT_TRUE(mark_overtaken(sidecar_, "job-3", {"first", "second"}));
  ASSERT_TRUE(sidecar_.withdraw("first"));
  ASSERT_TRUE(forget_overtaken(sidecar_));
  EXPECT_EQ(marks(), 1);
  ASSERT_TRUE(sidecar_.withdraw("second"));
  ASSERT_TRUE(forget_overtaken(sidecar_));
  EXPECT_FALSE(fs::exists(sidecar_.path()));
  EXPECT_TRUE(forget_overtaken(sidecar_));
}

TEST_F(OvertakenLogsTest, AMarkThatCannotBeReadIsNotPassedOver) {
  leave("first");
  std::ofstream(sidecar_.path() + "/job-2.overtaken") << "{";
  EXPECT_FALSE(overtaken_logs(sidecar_));
  EXPECT_FALSE(mark_overtaken(sidecar_, "job-3", {"first"}));
  EXPECT_FALSE(forget_overtaken(sidecar_));
}

}  // namespace
}  // namespace forebay
