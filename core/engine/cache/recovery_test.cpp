// Goal: what programs left in logs is in the file afterwards, once, and the logs are gone; whatever
// stops a recovery, the next one finishes it, and nothing is replayed over what came later.
// Method: logs in memory, left by cached files that were not closed; a file that fails at each of
// its calls; a log that cannot be removed; notices in a directory of the test's own.

#include "core/engine/cache/recovery.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "core/engine/cache/cache_rig.hpp"
#include "core/engine/cache/forwarding_log_store.hpp"
#include "core/engine/cache/log_contents.hpp"
#include "core/storage/forwarding_file.hpp"
#include "core/storage/piece_walk.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;
using Content = std::vector<std::byte>;

/// A store that cannot be removed, as if the recovery ended there.
class StuckStore final : public ForwardingLogStore {
 public:
  explicit StuckStore(std::unique_ptr<LogStore> inner) : ForwardingLogStore(std::move(inner)) {}
  Status destroy() override { return tl::unexpected(error_from_errno(EIO, "remove the log")); }
};

/// A file that knows what of it no device was told to take yet.
class WaitingFile final : public ForwardingFile {
 public:
  explicit WaitingFile(std::unique_ptr<StorageFile> inner) : ForwardingFile(std::move(inner)) {}
  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override {
    mark({offset, total_bytes(pieces)}, true);
    return ForwardingFile::write_pieces(pieces, offset);
  }
  void start_writeback(Extent extent) override { mark(extent, false); }
  Status sync() override {
    EXPECT_EQ(std::ranges::count(waiting_, true), 0);
    EXPECT_GT(waiting_.size(), 0U);
    return ForwardingFile::sync();
  }

 private:
  void mark(Extent extent, bool waiting) {
    const std::scoped_lock lock(mutex_);
    waiting_.resize(std::max(waiting_.size(), static_cast<std::size_t>(extent.end())));
    std::fill_n(waiting_.begin() + extent.offset, extent.length, waiting);
  }

  std::mutex mutex_;
  std::vector<bool> waiting_;  ///< By byte.
};

class RecoveryTest : public ::testing::Test {
 protected:
  RecoveryTest() {
    std::string name = fs::temp_directory_path() / "forebay-recovery-XXXXXX";
    base_ = ::mkdtemp(name.data());
    for (int rank = 0; rank < 2; ++rank) {
      CacheRig& rig = rigs_[static_cast<std::size_t>(rank)];
      rig.rank = rank;
      rig.file = file_;
      rig.options.flush = CacheFlush::onclose;
    }
  }
  ~RecoveryTest() override { fs::remove_all(base_); }

  /// Two ranks write in turn, over each other in later epochs, and end without closing the file.
  /// With `unfinished` the second one has begun another access.
  void leave_logs(bool unfinished) {
    const auto one = rigs_[0].open();
    const auto two = rigs_[1].open();
    const auto write = [&](CachedFile& file, Bytes offset, int value) {
      ASSERT_TRUE(file.write_at(filled(3000, value), offset));
      model_.write(offset, filled(3000, value));
    };
    write(*one, 0, 1);
    write(*two, 3000, 2);
    for (CachedFile* file : {one.get(), two.get()}) ASSERT_TRUE(file->commit(2));
    write(*two, 1000, 3);
    for (CachedFile* file : {one.get(), two.get()}) ASSERT_TRUE(file->commit(3));
    write(*one, 2000, 4);
    for (CachedFile* file : {one.get(), two.get()}) ASSERT_TRUE(file->commit(4));
    if (unfinished) {
      ASSERT_TRUE(two->write_at(filled(700, 9), 0));
    }
    for (const CacheRig& rig : rigs_) {
      DirtyNotice notice;
      notice.log = name_of(rig);
      ASSERT_TRUE(sidecar_.announce(notice));
    }
  }

  static std::string name_of(const CacheRig& rig) { return "log-" + std::to_string(rig.rank); }

  /// The logs that are still there. `stuck`: the last one cannot be removed.
  std::vector<LeftLog> left(bool stuck = false) {
    std::vector<LeftLog> logs;
    for (const CacheRig& rig : rigs_) {
      if (rig.log->destroyed()) continue;
      auto store = rig.log->open();
      if (stuck && rig.rank == 1) store = std::make_unique<StuckStore>(std::move(store));
      logs.push_back({name_of(rig), std::move(store)});
    }
    return logs;
  }

  Result<RecoveryReport> recover_all(const RecoveryChoices& choices = {}) {
    return recover(*open_volatile_file(file_), sidecar_, left(), choices);
  }

  void expect_done() {
    EXPECT_TRUE(rigs_[0].log->destroyed());
    EXPECT_TRUE(rigs_[1].log->destroyed());
    EXPECT_TRUE(fs::is_empty(base_)) << "nothing says any more that the file is not complete";
  }
  void expect_untouched() {
    EXPECT_TRUE(file_->content().empty());
    EXPECT_FALSE(rigs_[0].log->destroyed());
    EXPECT_EQ(sidecar_.read()->notices.size(), 2U);
  }

  fs::path base_;
  Sidecar sidecar_{base_ / "data"};
  std::shared_ptr<VolatileInode> file_ = std::make_shared<VolatileInode>();
  std::array<CacheRig, 2> rigs_;
  FileModel model_;
};

TEST_F(RecoveryTest, BringsTheLogsToTheFileInTheOrderInWhichRanksWrote) {
  leave_logs(false);
  const auto report = recover_all();
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(file_->content(), model_.content());
  EXPECT_EQ(report->logs, 2);
  EXPECT_EQ(report->replay.record_bytes, 4 * 3000);
  EXPECT_EQ(report->replay.written, 6000);
  expect_done();
  std::mt19937_64 random(1);  // NOLINT(bugprone-random-generator-seed)
  EXPECT_EQ(file_->after_crash(CrashKind::all_lost, random)->content(), model_.content());
}

TEST_F(RecoveryTest, HasTheDeviceTakeEachWriteBeforeAllIsToBeDurable) {
  leave_logs(false);
  WaitingFile file(open_volatile_file(file_));
  const auto report = recover(file, sidecar_, left(), {});
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(file_->content(), model_.content());
}

TEST_F(RecoveryTest, AsksWhatToDoWithAnAccessThatWasNotFinished) {
  leave_logs(true);
  EXPECT_EQ(recover_all().error().kind, ErrorKind::invalid_argument);
  expect_untouched();
  const auto report = recover_all({.incomplete = Incomplete::drop});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->dropped_bytes, 700);
  EXPECT_EQ(report->replayed_incomplete_bytes, 0);
  EXPECT_EQ(file_->content(), model_.content());
  expect_done();
}

TEST_F(RecoveryTest, ReplaysAnAccessThatWasNotFinishedIfToldTo) {
  leave_logs(true);
  const auto report = recover_all({.incomplete = Incomplete::replay});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->dropped_bytes, 0);
  EXPECT_EQ(report->replayed_incomplete_bytes, 700);
  model_.write(0, filled(700, 9));
  EXPECT_EQ(file_->content(), model_.content());
  expect_done();
}

TEST_F(RecoveryTest, LeavesDamagedLogsUnlessToldToSkipTheDamage) {
  leave_logs(false);
  auto files = rigs_[0].log->files();
  auto& segment = files.at("segment-00000000000000000000");
  segment.at(static_cast<std::size_t>(superblock_bytes + record_header_bytes) + 10) ^= std::byte{1};
  rigs_[0].log = std::make_shared<MemoryLog>(files);
  const auto refused = recover_all();
  EXPECT_EQ(refused.error().kind, ErrorKind::io);
  EXPECT_NE(refused.error().what.find("damaged"), std::string::npos);
  expect_untouched();
  const auto report = recover_all({.incomplete = {}, .skip_damage = true});
  ASSERT_TRUE(report);
  ASSERT_EQ(report->damage.size(), 1U);
  // The damaged record is of the first 1024 bytes; the second rank wrote over their end.
  Content expected = model_.content();
  std::fill_n(expected.begin(), 1000, std::byte{0});
  EXPECT_EQ(file_->content(), expected);
  expect_done();
}

TEST_F(RecoveryTest, DoesNotReplayAgainWhatItHadReplayed) {
  leave_logs(false);
  {
    const auto stopped = recover(*open_volatile_file(file_), sidecar_, left(true), {});
    EXPECT_EQ(stopped.error().kind, ErrorKind::io);
  }
  EXPECT_TRUE(rigs_[0].log->destroyed());
  EXPECT_FALSE(rigs_[1].log->destroyed());
  EXPECT_EQ(file_->content(), model_.content());
  // Somebody goes on with the file.
  ASSERT_TRUE(open_volatile_file(file_)->write_at(filled(6000, 8), 0));
  const auto report = recover_all();
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->logs, 1);
  EXPECT_EQ(report->replay.records, 0);
  EXPECT_EQ(file_->content(), filled(6000, 8));
  expect_done();
}

TEST_F(RecoveryTest, LeavesWhatOthersHaveNotedOfOtherLogs) {
  leave_logs(false);
  RecoveryNote others;
  others.host = "node17";
  others.logs = {{"theirs", "/local/nvme/forebay-cache-0"}};
  ASSERT_TRUE(sidecar_.note_recovered(others));
  DirtyNotice notice;
  notice.log = "theirs";
  notice.host = "node17";
  ASSERT_TRUE(sidecar_.announce(notice));
  // Of ours the last one is not removed.
  EXPECT_FALSE(recover(*open_volatile_file(file_), sidecar_, left(true), {}));
  EXPECT_EQ(sidecar_.recovered().value(), (std::vector<std::string>{"log-0", "log-1", "theirs"}));
  ASSERT_TRUE(open_volatile_file(file_)->write_at(filled(6000, 8), 0));
  const auto report = recover_all();
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(file_->content(), filled(6000, 8));
  EXPECT_EQ(report->unfinished,
            (std::vector<UnfinishedLog>{{"node17", "/local/nvme/forebay-cache-0/theirs"}}));
  EXPECT_EQ(sidecar_.recovered().value(), (std::vector<std::string>{"theirs"}));
  EXPECT_EQ(sidecar_.read()->notices.size(), 1U) << "it leads to the log";
  ASSERT_TRUE(recover_all({.incomplete = {}, .lost = {{"node17"}}}));
  expect_done();
}

TEST_F(RecoveryTest, WaitsForLogsThatAreHereAndWereNotNamed) {
  leave_logs(false);
  RecoveryNote earlier;
  earlier.host = this_host();
  fs::create_directory(base_ / "copy");
  earlier.logs = {{"copy", base_}, {"removed", base_}};
  ASSERT_TRUE(sidecar_.note_recovered(earlier));
  const auto report = recover_all();
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->unfinished, (std::vector<UnfinishedLog>{{this_host(), base_ / "copy"}}));
  EXPECT_EQ(sidecar_.recovered().value(), (std::vector<std::string>{"copy", "removed"}));
  fs::remove(base_ / "copy");
  ASSERT_TRUE(drop(sidecar_, {}));
  expect_done();
}

TEST_F(RecoveryTest, IsFinishedByTheNextOneWhereTheFileFails) {
  leave_logs(false);
  const auto plan = std::make_shared<FaultPlan>();
  {
    // How many calls there are is found out on a copy.
    std::vector<LogContents> contents;
    for (const LeftLog& log : left()) {
      contents.push_back(read_log(*log.store, ReadDepth::payloads).value());
    }
    const auto copy = std::make_shared<VolatileInode>();
    ASSERT_TRUE(replay(*make_faulty(open_volatile_file(copy), plan), contents, {}));
  }
  int failures = 0;
  for (const StorageCall call : {StorageCall::write, StorageCall::sync}) {
    for (std::int64_t nth = 0; nth < plan->calls(call); ++nth) {
      const auto faults = std::make_shared<FaultPlan>(
          std::vector<Fault>{{.call = call, .nth = nth, .os_errno = EIO, .after_bytes = 100}});
      const auto failed =
          recover(*make_faulty(open_volatile_file(file_), faults), sidecar_, left(), {});
      EXPECT_FALSE(failed);
      EXPECT_EQ(left().size(), 2U);
      ++failures;
    }
  }
  EXPECT_GT(failures, 1);
  ASSERT_TRUE(recover_all());
  EXPECT_EQ(file_->content(), model_.content());
  expect_done();
}

TEST_F(RecoveryTest, RemovesWhatProtectsTheLogsBeforeThem) {
  leave_logs(false);
  MemoryLog parity;
  {
    LogIdentity identity;
    identity.log = "parity";
    identity.purpose = LogPurpose::protection;
    LogWriter writer(parity.open(), identity, {32 * KiB, 1 * KiB},
                     *ResourceHolder::join(std::make_shared<Resource>("cache.local", GiB)),
                     [](const LogRecord&, const LogPlace&) {});
    Content bytes = filled(500, 77);
    const iovec piece{bytes.data(), bytes.size()};
    ASSERT_TRUE(writer.append({&piece, 1}, 0, 1).status);
    ASSERT_TRUE(writer.commit(1));
  }
  auto logs = left(true);
  logs.push_back({"parity", parity.open(), LogPurpose::protection});
  EXPECT_FALSE(recover(*open_volatile_file(file_), sidecar_, std::move(logs), {}));
  EXPECT_TRUE(parity.destroyed()) << "or it would bring back logs that are done with";
  EXPECT_EQ(file_->content(), model_.content());
  EXPECT_TRUE(recover_all());
  expect_done();
}

TEST_F(RecoveryTest, KeepsLogsFromWhichOthersMayHaveToBeRebuilt) {
  leave_logs(true);
  const auto before = rigs_[0].log->files();
  const RecoveryChoices choices{.incomplete = Incomplete::drop, .keep = true};
  const auto report = recover_all(choices);
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->logs, 2);
  EXPECT_EQ(report->kept, 2);
  EXPECT_EQ(file_->content(), model_.content());
  EXPECT_TRUE(fs::is_empty(base_)) << "the file has all that they hold";
  for (const auto& [name, content] : before) {
    if (!is_segment_name(name)) continue;
    EXPECT_EQ(rigs_[0].log->files().at(name), content);
  }
  // Somebody goes on with the file, and then they are not needed any more.
  ASSERT_TRUE(open_volatile_file(file_)->write_at(filled(6000, 8), 0));
  const auto again = recover_all();
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(again->replay.records, 0);
  EXPECT_EQ(again->dropped_bytes, 0) << "that was decided before";
  EXPECT_EQ(file_->content(), filled(6000, 8));
  expect_done();
}

TEST_F(RecoveryTest, KeepsThemAlsoWhereItWasInterrupted) {
  leave_logs(false);
  {
    auto logs = left();
    const auto plan = std::make_shared<FaultPlan>(std::vector<Fault>{
        {.call = StorageCall::write, .nth = 0, .os_errno = EIO, .lasting = true}});
    logs[1].store = rigs_[1].log->open(plan);  // Its mark cannot be written.
    const auto stopped = recover(*open_volatile_file(file_), sidecar_, std::move(logs),
                                 {.incomplete = {}, .keep = true});
    EXPECT_EQ(stopped.error().kind, ErrorKind::io);
  }
  ASSERT_TRUE(open_volatile_file(file_)->write_at(filled(6000, 8), 0));
  const auto report = recover_all({.incomplete = {}, .keep = true});
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->replay.records, 0);
  EXPECT_FALSE(rigs_[1].log->destroyed());
  ASSERT_TRUE(recover_all());
  EXPECT_EQ(file_->content(), filled(6000, 8));
  expect_done();
}

TEST_F(RecoveryTest, RemovesLogsThatHoldNothing) {
  {
    const auto opened = rigs_[0].open();
  }
  {
    const auto opened = rigs_[1].open();
  }
  const auto report = recover_all();
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->logs, 2);
  expect_done();
}

TEST_F(RecoveryTest, GoesOnWithoutALogThatWasOnlyBegun) {
  leave_logs(false);
  auto segment = rigs_[0].log->files().at(segment_name(0));
  std::fill(segment.begin() + 100, segment.end(), std::byte{0});
  MemoryLog begun({{segment_name(0), segment}});
  auto logs = left();
  logs.push_back({"begun", begun.open()});
  const auto report = recover(*open_volatile_file(file_), sidecar_, std::move(logs),
                              {.incomplete = {}, .keep = true});
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->begun, std::vector<std::string>{"log"});
  EXPECT_EQ(report->logs, 3);
  EXPECT_EQ(report->kept, 2);
  EXPECT_TRUE(begun.destroyed()) << "nothing is rebuilt from it";
  EXPECT_EQ(file_->content(), model_.content());
  ASSERT_TRUE(recover_all());
  expect_done();
}

TEST_F(RecoveryTest, DropsLogsWithTheirNotices) {
  leave_logs(true);
  ASSERT_TRUE(drop(sidecar_, left()));
  EXPECT_TRUE(file_->content().empty());
  expect_done();
}

}  // namespace
}  // namespace forebay
