// Goal: whoever looks at a file is told as long as a log of it may be replayed, and whether
// somebody still writes that log. Method: a file and logs in memory, with faults, and notices in a
// directory of the test's own.

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/cache/cache_rig.hpp"
#include "core/engine/cache/flush_mark.hpp"
#include "core/engine/cache/forwarding_log_store.hpp"
#include "core/engine/cache/overtaken_logs.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;
using Content = std::vector<std::byte>;

/// A log whose flush mark takes nothing: what it holds stays replayable.
class UnmarkedStore final : public ForwardingLogStore {
 public:
  explicit UnmarkedStore(std::unique_ptr<LogStore> inner) : ForwardingLogStore(std::move(inner)) {}

  Result<LogFile> create(const std::string& name, Bytes size) override {
    auto made = ForwardingLogStore::create(name, size);
    if (made && name == flush_mark_name) {
      made->storage = make_faulty(
          std::move(made->storage),
          std::make_shared<FaultPlan>(
              std::vector<Fault>{{.call = StorageCall::write, .os_errno = EIO, .lasting = true}}));
    }
    return made;
  }
};

class AnnouncedFile : public ::testing::Test {
 protected:
  AnnouncedFile() {
    std::string name = fs::temp_directory_path() / "forebay-cached-XXXXXX";
    base_ = ::mkdtemp(name.data());
    rig_.options.announce = true;
    rig_.options.flush = CacheFlush::onsync;
  }
  ~AnnouncedFile() override { fs::remove_all(base_); }

  std::unique_ptr<CachedFile> open() { return open(rig_.log->open()); }
  std::unique_ptr<CachedFile> open(std::unique_ptr<LogStore> store) {
    LogIdentity identity;
    identity.log = "log-7";
    identity.file.path = base_ / "data";
    identity.rank = 7;
    return *CachedFile::open(make_faulty(open_volatile_file(rig_.file), rig_.file_plan),
                             std::move(store), identity, rig_.capacity, rig_.options);
  }
  std::vector<DirtyNotice> notices() const { return Sidecar(base_ / "data").read()->notices; }

  CacheRig rig_;
  fs::path base_;
};

TEST_F(AnnouncedFile, IsAnnouncedAsLongAsItIsDirty) {
  const auto file = open();
  const Sidecar sidecar(base_ / "data");
  EXPECT_TRUE(sidecar.read()->notices.empty());
  ASSERT_TRUE(file->write_at(filled(10, 1), 0));
  ASSERT_EQ(sidecar.read()->notices.size(), 1U);
  EXPECT_EQ(sidecar.read()->notices[0].rank, 7);
  ASSERT_TRUE(file->sync());
  EXPECT_TRUE(fs::is_empty(base_));
  ASSERT_TRUE(file->write_at(filled(10, 1), 0));
  EXPECT_EQ(sidecar.read()->notices.size(), 1U);
  ASSERT_TRUE(file->discard());
  EXPECT_TRUE(fs::is_empty(base_));
}

TEST_F(AnnouncedFile, GoesThroughWhereItCannotBeAnnounced) {
  fs::remove_all(base_);
  const auto file = open();
  ASSERT_TRUE(file->write_at(filled(10, 1), 0));
  EXPECT_TRUE(file->state().write_through);
  EXPECT_EQ(rig_.file->content(), filled(10, 1));
}

TEST_F(AnnouncedFile, StaysAnnouncedWhereItWasNotClosed) {
  {
    const auto file = open();
    ASSERT_TRUE(file->write_at(filled(10, 1), 0));
    ASSERT_EQ(notices().size(), 1U);
    EXPECT_FALSE(notices()[0].is_left) << "it is being written";
  }
  ASSERT_EQ(notices().size(), 1U);
  EXPECT_TRUE(notices()[0].is_left);
}

TEST_F(AnnouncedFile, SaysThatItsLogIsLeftWhereACloseFails) {
  rig_.file_plan = std::make_shared<FaultPlan>(std::vector<Fault>{
      {.call = StorageCall::write, .nth = 0, .os_errno = ENOSPC, .lasting = true}});
  auto file = open();
  ASSERT_TRUE(file->write_at(filled(10, 1), 0));
  EXPECT_EQ(file->close().error().kind, ErrorKind::no_space);
  ASSERT_EQ(notices().size(), 1U);
  EXPECT_FALSE(notices()[0].is_left) << "the close may be tried again";
  file.reset();
  ASSERT_EQ(notices().size(), 1U);
  EXPECT_TRUE(notices()[0].is_left);
}

TEST_F(AnnouncedFile, StaysAnnouncedAsLongAsItsLogMayBeReplayed) {
  const auto file = open(std::make_unique<UnmarkedStore>(rig_.log->open()));
  ASSERT_TRUE(file->write_at(filled(10, 1), 0));
  ASSERT_TRUE(file->sync()) << "it is in the file";
  EXPECT_EQ(rig_.file->content(), filled(10, 1));
  EXPECT_EQ(notices().size(), 1U);
  ASSERT_TRUE(file->write_at(filled(10, 2), 0));
  EXPECT_TRUE(rig_.log->destroyed()) << "before anything newer is in the file";
  EXPECT_TRUE(fs::is_empty(base_));
  ASSERT_TRUE(file->close());
  EXPECT_EQ(rig_.file->content(), filled(10, 2));
}

TEST_F(AnnouncedFile, IsMarkedWhereAKeptLogMayBeReplayed) {
  rig_.options.keep_log = true;
  const auto file = open(std::make_unique<UnmarkedStore>(rig_.log->open()));
  ASSERT_TRUE(file->write_at(filled(10, 1), 0));
  ASSERT_TRUE(file->close());
  EXPECT_EQ(file->state().left.kind, ErrorKind::io) << "who closes it is told";
  EXPECT_FALSE(rig_.log->destroyed());
  EXPECT_EQ(notices().size(), 1U);
  EXPECT_EQ(*overtaken_logs(Sidecar(base_ / "data")), (std::map<std::string, int>{{"log-7", 1}}));
}

}  // namespace
}  // namespace forebay
