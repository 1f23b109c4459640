// Goal: before anything is flushed, a log on a slow device is compared with its file, the verdict
// is right, and whatever becomes of what goes to either, no byte is lost or overtaken.
//
// Method: a CachedFile with log and file in memory. Writes take real milliseconds, so that the
// log's device is seen to let its writer wait and both ways get their parts; how long they take to
// the trial is what a clock says that each thread's writes advance.

#include "core/engine/cache/log_trial.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "core/engine/cache/cache_rig.hpp"
#include "core/engine/cache/forwarding_log_store.hpp"
#include "core/storage/forwarding_file.hpp"
#include "core/storage/piece_walk.hpp"

namespace forebay {
namespace {

using Content = std::vector<std::byte>;

constexpr Bytes enough = 16 * MiB;       ///< To be decided.
constexpr Bytes slow_enough = 16 * KiB;  ///< To be doubted.

std::atomic<std::int64_t> spent_ns{0};                ///< What writes took.
thread_local std::optional<std::int64_t> probing_ns;  ///< Of this thread, if it probes.

std::int64_t now_ns() { return probing_ns.value_or(spent_ns); }

/// MiB/s of writes; it may change.
using Shared = std::shared_ptr<std::atomic<std::int64_t>>;

/// Writes have that rate by the clock, and wait for a tenth of that time, or not at all.
class PacedFile final : public ForwardingFile {
 public:
  PacedFile(std::unique_ptr<StorageFile> inner, Shared rate, bool waits)
      : ForwardingFile(std::move(inner)), rate_(std::move(rate)), waits_(waits) {}
  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override {
    const std::int64_t ns = total_bytes(pieces) * 1'000'000'000 / MiB / *rate_;
    probing_ns ? * probing_ns += ns : spent_ns += ns;
    if (waits_) std::this_thread::sleep_for(std::chrono::nanoseconds(ns / 10));
    return ForwardingFile::write_pieces(pieces, offset);
  }

 private:
  const Shared rate_;
  const bool waits_;
};

/// Takes all in at once, and has that rate when it is made durable.
class BufferedFile final : public ForwardingFile {
 public:
  BufferedFile(std::unique_ptr<StorageFile> inner, Shared rate)
      : ForwardingFile(std::move(inner)), rate_(std::move(rate)) {}
  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override {
    buffered_ += total_bytes(pieces);
    return ForwardingFile::write_pieces(pieces, offset);
  }
  Status sync() override {
    spent_ns += buffered_.exchange(0) * 1'000'000'000 / MiB / *rate_;
    return ForwardingFile::sync();
  }

 private:
  const Shared rate_;
  std::atomic<Bytes> buffered_{0};
};

/// New files are paced.
class PacedStore final : public ForwardingLogStore {
 public:
  PacedStore(std::unique_ptr<LogStore> inner, Shared rate, bool waits)
      : ForwardingLogStore(std::move(inner)), rate_(std::move(rate)), waits_(waits) {}
  Result<LogFile> create(const std::string& name, Bytes size) override {
    auto file = ForwardingLogStore::create(name, size);
    if (name == "probe") probing_ns = 0;
    if (file) {
      file->storage = std::make_unique<PacedFile>(std::move(file->storage), rate_, waits_);
    }
    return file;
  }

 private:
  const Shared rate_;
  const bool waits_;
};

class LogTrialTest : public ::testing::Test {
 protected:
  LogTrialTest() {
    rig_.options.flush = CacheFlush::onclose;
    rig_.options.log = {4 * MiB, 1 * MiB, Toggle::disable};
    rig_.options.trial = trial_;
  }
  std::unique_ptr<CachedFile> open() const {
    LogIdentity identity;
    identity.log = "log";
    identity.file.path = "/scratch/a";
    auto file = make_faulty(open_volatile_file(rig_.file), rig_.file_plan);
    auto store = std::make_unique<PacedStore>(rig_.log->open(rig_.log_plan), log_rate_, waits_);
    if (buffers_) {
      file = std::make_unique<BufferedFile>(std::move(file), file_rate_);
    } else {
      file = std::make_unique<PacedFile>(std::move(file), file_rate_, waits_);
    }
    auto cached =
        CachedFile::open(std::move(file), std::move(store), identity, rig_.capacity, rig_.options);
    return cached ? std::move(*cached) : nullptr;
  }
  /// Of 1 MiB each, which are closed while the program goes on, until it is decided.
  void write_files() {
    while (!trial_->lost() && !trial_->is_over()) {
      rig_.log = std::make_shared<MemoryLog>();
      rig_.file = std::make_shared<VolatileInode>();
      const auto file = open();
      const Content all = bytes(1 * MiB, 1);
      ASSERT_TRUE(file->write_at(all, 0));
      file->end_writing();
      ASSERT_TRUE(file->close());
      EXPECT_EQ(rig_.file->content(), all);
    }
  }
  /// Writes the last of `all` until it is decided which way writes go.
  void decide(CachedFile& file, const Content& all) const {
    const auto last = std::span(all).last(static_cast<std::size_t>(1 * MiB));
    while (!trial_->lost() && !trial_->is_over()) {
      ASSERT_TRUE(file.write_at(last, static_cast<Bytes>(all.size() - last.size())));
    }
  }
  /// Bytes unlike their neighbours and unlike those of another `number`.
  static Content bytes(Bytes size, int number) {
    Content content(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < content.size(); ++i) {
      content[i] = static_cast<std::byte>(i * 31 + i / 251 + static_cast<std::size_t>(number));
    }
    return content;
  }
  static Content read(StorageFile& file, Bytes size) {
    Content content(static_cast<std::size_t>(size));
    EXPECT_EQ(file.read_at(content, 0).value_or(-1), size);
    return content;
  }
  Bytes in_file() const { return static_cast<Bytes>(rig_.file->content().size()); }

  CacheRig rig_;
  std::shared_ptr<LogTrial> trial_ = std::make_shared<LogTrial>(now_ns);
  Shared log_rate_ = std::make_shared<std::atomic<std::int64_t>>(8);
  Shared file_rate_ = std::make_shared<std::atomic<std::int64_t>>(16);
  bool waits_ = true;
  bool buffers_ = false;  ///< What is written to the file.
};

/// 8 MiB/s for the log, 16 for the file.
TEST_F(LogTrialTest, ASlowLogLoses) {
  const auto file = open();
  const Content all = bytes(enough, 1);
  ASSERT_TRUE(file->write_at(all, 0));
  decide(*file, all);
  EXPECT_TRUE(trial_->lost());
  EXPECT_LE(file->pace().logged, slow_enough);
  EXPECT_EQ(read(*file, enough), all);
  ASSERT_TRUE(file->set_write_through(true));
  EXPECT_EQ(rig_.file->content(), all);
  ASSERT_TRUE(file->close());
  EXPECT_EQ(rig_.file->content(), all);
}

/// 4 MiB/s for the file.
TEST_F(LogTrialTest, ALogThatWinsIsNotComparedAgain) {
  *file_rate_ = 4;
  const auto file = open();
  const Content all = bytes(enough, 1);
  ASSERT_TRUE(file->write_at(all, 0));
  decide(*file, all);
  EXPECT_TRUE(trial_->is_over());
  const auto writes = rig_.file_plan->calls(StorageCall::write);
  ASSERT_TRUE(file->write_at(all, 0));
  EXPECT_EQ(rig_.file_plan->calls(StorageCall::write), writes);
  EXPECT_EQ(read(*file, enough), all);
  ASSERT_TRUE(file->close());
  EXPECT_EQ(rig_.file->content(), all);
}

TEST_F(LogTrialTest, ALogThatWasSlowForAMomentWins) {
  const auto file = open();
  const Content all = bytes(2 * enough, 1);
  ASSERT_TRUE(file->write_at(std::span(all).first(static_cast<std::size_t>(256 * KiB)), 0));
  *log_rate_ = 100;
  ASSERT_TRUE(
      file->write_at(std::span(all).subspan(static_cast<std::size_t>(256 * KiB)), 256 * KiB));
  decide(*file, all);
  EXPECT_TRUE(trial_->is_over());
  EXPECT_GT(rig_.file_plan->calls(StorageCall::write), 0);
  ASSERT_TRUE(file->close());
  EXPECT_EQ(rig_.file->content(), all);
}

TEST_F(LogTrialTest, SmallWritesAreComparedToo) {
  const auto file = open();
  const Content all = bytes(enough, 1);
  constexpr Bytes step = 32 * KiB;
  for (Bytes at = 0; at < enough; at += step) {
    ASSERT_TRUE(file->write_at(std::span(all).subspan(static_cast<std::size_t>(at), step), at));
  }
  decide(*file, all);
  EXPECT_TRUE(trial_->lost());
  EXPECT_LE(file->pace().logged, slow_enough);
  ASSERT_TRUE(file->close());
  EXPECT_EQ(rig_.file->content(), all);
}

TEST_F(LogTrialTest, ThreadsAreComparedTogether) {
  const auto file = open();
  constexpr int threads = 4;
  constexpr Bytes each = enough / threads;
  const Content all = bytes(enough, 1);
  std::vector<std::thread> writers;
  writers.reserve(threads);
  for (int i = 0; i < threads; ++i) {
    writers.emplace_back([&, i] {
      constexpr Bytes step = 64 * KiB;
      for (Bytes at = i * each; at < (i + 1) * each; at += step) {
        EXPECT_TRUE(file->write_at(std::span(all).subspan(static_cast<std::size_t>(at), step), at));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(read(*file, enough), all);
  ASSERT_TRUE(file->close());
  EXPECT_EQ(rig_.file->content(), all);
}

TEST_F(LogTrialTest, ThereIsNoneWhereTheDeviceLetsNobodyWait) {
  waits_ = false;
  const auto file = open();
  ASSERT_TRUE(file->write_at(bytes(enough, 1), 0));
  EXPECT_EQ(rig_.file_plan->calls(StorageCall::write), 0);
  EXPECT_EQ(in_file(), 0);
}

TEST_F(LogTrialTest, ItGoesOnFromFileToFile) {
  for (int number = 0; number < 6 || !trial_->lost(); ++number) {
    ASSERT_FALSE(trial_->is_over());
    rig_.log = std::make_shared<MemoryLog>();
    const auto file = open();
    const Content all = bytes(enough / 6, number);
    ASSERT_TRUE(file->write_at(all, 0));
    ASSERT_TRUE(file->close());
    EXPECT_EQ(rig_.file->content(), all);
  }
  EXPECT_TRUE(trial_->lost());
}

/// 8 MiB/s for the log. No file lets a writer wait, and its close lets him wait all the longer.
TEST_F(LogTrialTest, FilesThatWaitInTheirClosesAreComparedByThose) {
  buffers_ = true;
  *file_rate_ = 4;
  write_files();
  EXPECT_TRUE(trial_->is_over());
}

TEST_F(LogTrialTest, ASlowLogLosesToFilesThatWaitInTheirCloses) {
  buffers_ = true;
  write_files();
  EXPECT_TRUE(trial_->lost());
}

/// The log does not have it, and the next sync would not fail again.
TEST_F(LogTrialTest, WhatASyncOfTheTrialLosesIsTold) {
  for (const bool at_end : {false, true}) {
    trial_ = rig_.options.trial = std::make_shared<LogTrial>(now_ns);
    rig_.log = std::make_shared<MemoryLog>();
    rig_.file = std::make_shared<VolatileInode>();
    rig_.file_plan = std::make_shared<FaultPlan>(std::vector<Fault>{{StorageCall::sync, 0, EIO}});
    buffers_ = true;
    const auto file = open();
    Status status;
    if (at_end) {
      status = file->write_at(bytes(1 * MiB, 1), 0);
      file->end_writing();
    } else {
      while (status && rig_.file_plan->calls(StorageCall::sync) == 0) {
        status = file->write_at(bytes(1 * MiB, 1), 0);
      }
    }
    if (status) status = file->close();
    EXPECT_EQ(status.error().kind, ErrorKind::io);
    ASSERT_TRUE(file->close());
  }
}

/// What is in the log would be replayed over it after a crash.
TEST_F(LogTrialTest, NothingGoesToTheFileThatTheLogHolds) {
  const auto file = open();
  ASSERT_TRUE(file->write_at(bytes(slow_enough, 1), 0));
  ASSERT_TRUE(file->write_at(bytes(slow_enough, 2), 0));
  EXPECT_EQ(in_file(), 0);
  // Flushed, but the log does not say so yet.
  ASSERT_TRUE(file->commit(file->epoch()));
  ASSERT_TRUE(file->drain());
  const auto writes = rig_.file_plan->calls(StorageCall::write);
  const Content newest = bytes(slow_enough, 3);
  ASSERT_TRUE(file->write_at(newest, 0));
  EXPECT_EQ(rig_.file_plan->calls(StorageCall::write), writes);
  // Elsewhere it may.
  ASSERT_TRUE(file->write_at(newest, slow_enough));
  EXPECT_GT(rig_.file_plan->calls(StorageCall::write), writes);
  ASSERT_TRUE(file->close());
  Content all = newest;
  all.insert(all.end(), newest.begin(), newest.end());
  EXPECT_EQ(rig_.file->content(), all);
}

TEST_F(LogTrialTest, WhatTheFileDoesNotTakeIsInTheLog) {
  rig_.file_plan =
      std::make_shared<FaultPlan>(std::vector<Fault>{{StorageCall::write, 0, ENOSPC, 100 * KiB}});
  const auto file = open();
  const Content all = bytes(enough, 1);
  ASSERT_TRUE(file->write_at(all, 0));
  EXPECT_FALSE(trial_->lost());
  EXPECT_GE(file->pace().logged, enough);
  ASSERT_TRUE(file->close());
  EXPECT_EQ(rig_.file->content(), all);
}

TEST_F(LogTrialTest, WhatTheLogDoesNotTakeIsInTheFile) {
  for (const int nth : {1, 2}) {
    rig_.options.trial = std::make_shared<LogTrial>(now_ns);
    rig_.log = std::make_shared<MemoryLog>();
    rig_.file = std::make_shared<VolatileInode>();
    rig_.log_plan = std::make_shared<FaultPlan>(
        std::vector<Fault>{{StorageCall::write, nth, EIO, 10 * KiB, true}});
    const auto file = open();
    const Content all = bytes(1 * MiB, 1);
    ASSERT_TRUE(file->write_at(all, 0));
    EXPECT_TRUE(file->writes_through());
    EXPECT_EQ(rig_.file->content(), all);
    EXPECT_EQ(read(*file, 1 * MiB), all);
    ASSERT_TRUE(file->close());
    EXPECT_EQ(rig_.file->content(), all);
  }
}

/// A trial by itself, of one long write, whose clock is set by hand: writes and the probe have
/// their own times. Returns whether the log lost.
bool log_loses(const std::function<std::int64_t(const LogTrial::Part&)>& takes_ns) {
  constexpr std::int64_t wait_ns = 100'000;
  std::int64_t now = 0;
  std::optional<std::int64_t> probe_free_at;
  LogTrial trial([&] { return now; });
  while (!trial.is_over() && !trial.lost()) {
    if (trial.takes_probe()) probe_free_at = now;
    if (probe_free_at && *probe_free_at <= now) {
      const LogTrial::Part probe{LogTrial::Way::log, 8 * KiB};
      const std::int64_t ns = takes_ns(probe);
      *probe_free_at += ns;
      if (!trial.probed(probe.bytes, ns, ns > wait_ns)) probe_free_at.reset();
      continue;
    }
    const LogTrial::Part part = trial.begin(8 * MiB, false);
    const std::int64_t ns = takes_ns(part);
    now += ns;
    trial.ended(part, true, ns > wait_ns);
  }
  return trial.lost().has_value();
}

std::int64_t at(double mib_per_s, const LogTrial::Part& part) {
  return static_cast<std::int64_t>(static_cast<double>(part.bytes) / (mib_per_s * MiB) * 1e9);
}

/// However the parts fall on what is not counted.
TEST(LogTrial, AFileIsTimedByWholeParts) {
  for (double file = 2; file < 8; file += 0.1) {
    const auto with = [&](double log) {
      return [=](const LogTrial::Part& part) {
        return at(part.way == LogTrial::Way::log ? log : file, part);
      };
    };
    EXPECT_FALSE(log_loses(with(1.2 * file))) << file;
    EXPECT_TRUE(log_loses(with(0.7 * file))) << file;
  }
}

/// 1 GiB/s, but for 5 ms twice in a row, again and again; the file has 100 MiB/s.
TEST(LogTrial, StallsAreNoSlowDevice) {
  int logs = 0;
  EXPECT_FALSE(log_loses([&](const LogTrial::Part& part) -> std::int64_t {
    if (part.way == LogTrial::Way::file) return at(100, part);
    ++logs;
    return logs % 32 == 4 || logs % 32 == 5 ? 5'000'000 : at(1024, part);
  }));
}

/// 8 MiB/s for the log. The file takes 4 MiB in at once, and has them after a quarter of a second.
TEST(LogTrial, WritesThatWaitForASyncAreNoSlowFile) {
  constexpr std::int64_t sync_ns = 250'000'000;
  std::int64_t now = 0;
  LogTrial trial([&] { return now; });
  while (!trial.takes_probe()) {
    const LogTrial::Part part = trial.begin(1 * MiB, false);
    now += 1'000'000;
    trial.ended(part, true, true);
  }
  while (trial.probed(8 * KiB, 1'000'000, true)) {
  }
  for (int i = 0; i < 4; ++i) trial.ended(trial.begin(1 * MiB, false), true, false);
  ASSERT_TRUE(trial.wants_sync());
  ASSERT_TRUE(trial.takes_sync());
  for (int i = 0; i < 2; ++i) {
    const LogTrial::Part waiting = trial.begin(1 * MiB, false);
    now += sync_ns;
    trial.ended(waiting, true, true);
    EXPECT_FALSE(trial.is_over());
  }
  trial.synced(sync_ns, true);
  EXPECT_TRUE(trial.lost());
}

TEST(LogTrial, WhatWasLostStaysSoWhereTheLogIsFull) {
  const TrialRig rig;
  rig.lose();
  ASSERT_TRUE(rig.trial->lost());
  rig.trial->ended({LogTrial::Way::log, 1 * MiB}, false, false);
  EXPECT_TRUE(rig.trial->lost());
}

}  // namespace
}  // namespace forebay
