// Goal: a cached file is to its writer what the file would be, is complete in the end, and neither
// loses a byte nor hangs when the log or the file fails.
// Method: random operations against a model of the file, for every policy; worked examples for what
// each call promises. What crashes leave is in cache_crash_test.

#include "core/engine/cache/cached_file.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "core/engine/cache/cache_rig.hpp"
#include "core/engine/cache/log_contents.hpp"
#include "core/engine/cache/log_directory.hpp"
#include "core/engine/cache/status_page.hpp"
#include "core/storage/forwarding_file.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;
using Content = std::vector<std::byte>;
using std::chrono::milliseconds;

std::vector<iovec> in_pieces(Content& bytes, std::size_t step) {
  std::vector<iovec> pieces;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    pieces.push_back({bytes.data() + at, std::min(step, bytes.size() - at)});
  }
  return pieces;
}

RC_GTEST_PROP(CachedFileProperty, is_the_file_to_who_writes_it, ()) {
  CacheRig rig;
  rig.options.flush = *rc::gen::element(CacheFlush::immediate, CacheFlush::onsync,
                                        CacheFlush::onclose, CacheFlush::deferred);
  rig.options.sync = *rc::gen::element(SyncScope::file, SyncScope::node);
  if (*rc::gen::arbitrary<bool>()) rig.options.log = {128 * KiB, 8 * KiB, Toggle::enable};
  const TrialRig trial;
  if (*rc::gen::arbitrary<bool>()) rig.options.trial = trial.trial;
  // Little enough that writers have to wait for a flush now and then.
  rig.capacity =
      std::make_shared<Resource>("cache.local", *rc::gen::element(Bytes{128} * KiB, MiB));
  const auto file = rig.open();
  FileModel model;
  std::uint64_t epoch = 1;
  const int steps = *rc::gen::inRange(0, 40);
  for (int step = 0; step < steps; ++step) {
    if (step == steps / 3) trial.lose();
    const auto offset = *rc::gen::inRange<Bytes>(0, 60'000);
    switch (*rc::gen::inRange(0, 12)) {
      case 0:
        RC_ASSERT(file->commit(++epoch).has_value());
        break;
      case 1:
        RC_ASSERT(file->sync().has_value());
        break;
      case 2:
        RC_ASSERT(file->resize(offset).has_value());
        model.resize(offset);
        break;
      case 3:
        RC_ASSERT(file->allocate(offset).has_value());
        model.allocate(offset);
        break;
      case 4:
        RC_ASSERT(file->drain().has_value());
        RC_ASSERT(!file->dirty({0, 1 << 20}));
        break;
      case 5:
        RC_ASSERT(file->set_write_through(*rc::gen::arbitrary<bool>()).has_value());
        break;
      case 6:
      case 7: {
        Content back = filled(static_cast<std::size_t>(*rc::gen::inRange(0, 20'000)), 0xee);
        const auto got = file->read_pieces(in_pieces(back, 777), offset);
        RC_ASSERT(got.has_value());
        const Content wanted = model.read(offset, static_cast<Bytes>(back.size()));
        back.resize(static_cast<std::size_t>(*got));
        RC_ASSERT(back == wanted);
        break;
      }
      default: {
        Content bytes = filled(static_cast<std::size_t>(*rc::gen::inRange(0, 20'000)), step + 1);
        RC_ASSERT(file->write_pieces(in_pieces(bytes, 1234), offset).has_value());
        model.write(offset, bytes);
      }
    }
    RC_ASSERT(file->size().value() == model.size());
    RC_ASSERT(file->dirty_end() <= model.size());
  }
  RC_ASSERT(read_all(*file, model.size() + 10) == model.content());
  RC_ASSERT(file->close().has_value());
  RC_ASSERT(rig.file->content() == model.content());
  RC_ASSERT(rig.log->destroyed());
  std::mt19937_64 random(1);
  RC_ASSERT(rig.file->after_crash(CrashKind::all_lost, random)->content() == model.content());
}

TEST(CachedFile, ReturnsBeforeAnythingIsInTheFile) {
  CacheRig rig;
  rig.options.flush = CacheFlush::onclose;
  const auto file = rig.open();
  ASSERT_TRUE(file->write_at(filled(5000, 1), 100));
  EXPECT_EQ(rig.file_plan->calls(StorageCall::write), 0);
  EXPECT_TRUE(file->dirty({0, 101}));
  EXPECT_FALSE(file->dirty({0, 100}));
  EXPECT_EQ(file->size().value(), 5100);
  EXPECT_EQ(file->state().progress.dirty, 5000);
  ASSERT_TRUE(file->close());
  EXPECT_EQ(rig.file->content().size(), 5100U);
}

TEST(CachedFile, GivesTheFileItsLengthBeforeItIsFlushed) {
  for (const bool background : {true, false}) {
    CacheRig rig;
    rig.options.flush = background ? CacheFlush::deferred : CacheFlush::onclose;
    rig.options.lull = std::chrono::hours(1);
    rig.file_plan = std::make_shared<FaultPlan>(std::vector<Fault>{
        {.call = StorageCall::write, .nth = 0, .os_errno = ENOSPC, .lasting = true}});
    const auto file = rig.open();
    ASSERT_TRUE(file->write_at(filled(5000, 1), 100));
    if (background) file->start_draining();
    EXPECT_FALSE(file->close());
    EXPECT_EQ(rig.file->content(), Content(5100)) << "of zeros: no write succeeded";
  }
}

TEST(CachedFile, FlushesInTheBackgroundWhatIsCommitted) {
  for (const CacheFlush policy : {CacheFlush::immediate, CacheFlush::deferred}) {
    CacheRig rig;
    rig.options.flush = policy;
    if (policy == CacheFlush::deferred) rig.options.lull = std::chrono::hours(1);
    rig.options.longest_burst = milliseconds(1);
    const auto file = rig.open();
    ASSERT_TRUE(file->write_at(filled(5000, 1), 0));
    ASSERT_TRUE(file->commit(2));
    ASSERT_TRUE(file->write_at(filled(10, 2), 9000));
    while (file->dirty({0, 5000})) std::this_thread::yield();
    EXPECT_TRUE(file->dirty({9000, 10})) << "what is not committed may still be dropped";
    EXPECT_EQ(read_all(*open_volatile_file(rig.file), 5000), filled(5000, 1));
  }
}

TEST(CachedFile, WaitsWithTheFlushUntilItIsTold) {
  for (const CacheFlush policy : {CacheFlush::onsync, CacheFlush::onclose}) {
    CacheRig rig;
    rig.options.flush = policy;
    const auto file = rig.open();
    ASSERT_TRUE(file->write_at(filled(5000, 1), 0));
    ASSERT_TRUE(file->commit(2));
    EXPECT_EQ(rig.file_plan->calls(StorageCall::write), 0);
    file->start_draining();
    while (file->dirty({0, 5000})) std::this_thread::yield();
  }
}

TEST(CachedFile, WaitsWithTheFlushWhileTheFileIsClosed) {
  for (const CacheFlush policy : {CacheFlush::immediate, CacheFlush::deferred}) {
    CacheRig rig;
    rig.options.flush = policy;
    const auto file = rig.open();
    ASSERT_TRUE(file->write_at(filled(5000, 1), 0));
    file->end_writing();
    ASSERT_TRUE(file->commit(2));
    EXPECT_EQ(rig.file_plan->calls(StorageCall::write), 0);
    file->start_draining();
    while (file->dirty({0, 5000})) std::this_thread::yield();
    EXPECT_TRUE(file->close());
  }
}

TEST(CachedFile, FlushesWhileTheFileIsClosedForWhoNeedsIt) {
  CacheRig rig;
  const auto file = rig.open();
  ASSERT_TRUE(file->write_at(filled(5000, 1), 0));
  file->end_writing();
  EXPECT_TRUE(file->drain({0, 5000}));
  EXPECT_EQ(read_all(*open_volatile_file(rig.file), 5000), filled(5000, 1));
}

TEST(CachedFile, SyncMakesTheFileDurableBeforeTheLogSaysSo) {
  CacheRig rig;
  const auto file = rig.open();
  ASSERT_TRUE(file->write_at(filled(5000, 1), 0));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(file->state().crowded_ns, 0) << "no write waited";
  std::mt19937_64 random(1);
  EXPECT_EQ(rig.file->after_crash(CrashKind::all_lost, random)->content(), filled(5000, 1));
  const auto store = rig.log->open();
  EXPECT_TRUE(read_log(*store, ReadDepth::payloads)->clean());
}

TEST(CachedFile, SyncToTheNodeMakesTheLogDurable) {
  CacheRig rig;
  rig.options.sync = SyncScope::node;
  rig.options.flush = CacheFlush::onclose;
  const auto file = rig.open();
  ASSERT_TRUE(file->write_at(filled(5000, 1), 0));
  ASSERT_TRUE(file->allocate(6000));
  ASSERT_TRUE(file->sync());
  EXPECT_TRUE(file->dirty({0, 5000}));
  std::mt19937_64 random(1);
  EXPECT_EQ(rig.file->after_crash(CrashKind::all_lost, random)->content(), filled(6000, 0))
      << "what did not go through the log is durable too";
  const auto left = rig.log->after_crash(CrashKind::all_lost, random);
  const auto store = left->open();
  EXPECT_EQ(read_log(*store, ReadDepth::payloads)->complete_bytes(), 5000);
}

/// The kernel tells only once that it has lost bytes of the log.
TEST(CachedFile, ASyncToTheNodeTrustsNoLogOfWhichOneHasFailed) {
  CacheRig rig;
  rig.options.sync = SyncScope::node;
  rig.options.flush = CacheFlush::onclose;
  rig.log_plan = std::make_shared<FaultPlan>(
      std::vector<Fault>{{.call = StorageCall::sync, .nth = 0, .os_errno = EIO}});
  rig.file_plan = std::make_shared<FaultPlan>(
      std::vector<Fault>{{.call = StorageCall::sync, .nth = 1, .os_errno = EIO}});
  const auto file = rig.open();
  ASSERT_TRUE(file->write_at(filled(5000, 1), 0));
  ASSERT_TRUE(file->sync()) << "by the file";
  EXPECT_FALSE(file->sync()) << "by the file again";
  EXPECT_TRUE(file->sync());
  ASSERT_TRUE(file->write_at(filled(5000, 2), 5000));
  EXPECT_TRUE(file->state().write_through);
  EXPECT_EQ(file->state().reason.kind, ErrorKind::io);
}

TEST(CachedFile, ASyncToTheNodeBeginsTheFlushOfWhoFlushesOnSyncs) {
  CacheRig rig;
  rig.options.sync = SyncScope::node;
  rig.options.flush = CacheFlush::onsync;
  const auto file = rig.open();
  ASSERT_TRUE(file->write_at(filled(5000, 1), 0));
  ASSERT_TRUE(file->commit(2));
  EXPECT_EQ(rig.file_plan->calls(StorageCall::write), 0);
  ASSERT_TRUE(file->sync());
  while (file->dirty({0, 5000})) std::this_thread::yield();
  ASSERT_TRUE(file->write_at(filled(5000, 2), 8000));
  ASSERT_TRUE(file->commit(3));
  EXPECT_TRUE(file->dirty({8000, 5000})) << "what comes later waits for the next sync";
}

TEST(CachedFile, NeverFlushesUnderThePolicyNone) {
  CacheRig rig;
  rig.options.flush = CacheFlush::none;
  {
    const auto file = rig.open();
    ASSERT_TRUE(file->write_at(filled(5000, 1), 0));
    ASSERT_TRUE(file->sync());
    EXPECT_EQ(read_all(*file, 5000), filled(5000, 1));
    ASSERT_TRUE(file->close());
  }
  EXPECT_EQ(rig.file_plan->calls(StorageCall::write), 0);
  const auto store = rig.log->open();
  EXPECT_EQ(read_log(*store, ReadDepth::payloads)->complete_bytes(), 5000) << "nothing is lost";
  EXPECT_EQ(StatusPage::read(*store).value().absorbed, 5000) << "as who watches it is told";
}

TEST(CachedFile, TellsOfAFailedFlushAtTheNextCall) {
  const auto failing = [](CacheRig& rig) {
    rig.file_plan = std::make_shared<FaultPlan>(
        std::vector<Fault>{{.call = StorageCall::write, .nth = 0, .os_errno = EIO}});
    auto file = rig.open();
    EXPECT_TRUE(file->write_at(filled(100, 1), 0));
    EXPECT_TRUE(file->commit(2));
    while (rig.file_plan->fired() == 0) std::this_thread::yield();
    return file;
  };
  {
    CacheRig rig;
    const auto file = failing(rig);
    Status status;
    while (status) status = file->write_at(filled(100, 2), 1000);
    EXPECT_EQ(status.error().kind, ErrorKind::io);
    EXPECT_NE(status.error().what.find("keeps what is missing"), std::string::npos);
    EXPECT_TRUE(file->write_at(filled(100, 3), 2000)) << "it is told once";
    ASSERT_TRUE(file->close()) << "and tried again";
    EXPECT_EQ(rig.file->content().size(), 2100U);
  }
  // Who waits for a flush tries it again first, and is told only if it fails again.
  for (const bool sync : {true, false}) {
    CacheRig rig;
    rig.options.flush = CacheFlush::onsync;
    rig.file_plan = std::make_shared<FaultPlan>(std::vector<Fault>{
        {.call = StorageCall::write, .nth = 0, .os_errno = ENOSPC, .lasting = true}});
    const auto file = rig.open();
    ASSERT_TRUE(file->write_at(filled(100, 1), 0));
    for (int i = 0; i < 2; ++i) {
      const Status status = sync ? file->sync() : file->close();
      EXPECT_EQ(status.error().kind, ErrorKind::no_space);
    }
    EXPECT_EQ(read_all(*file, 1000), filled(100, 1));
    const auto store = rig.log->open();
    EXPECT_EQ(read_log(*store, ReadDepth::payloads)->complete_bytes(), 100);
  }
}

TEST(CachedFile, WritesAgainWhatAFailedSyncMayHaveLost) {
  CacheRig rig;
  rig.options.flush = CacheFlush::onsync;
  rig.file_plan = std::make_shared<FaultPlan>(
      std::vector<Fault>{{.call = StorageCall::sync, .nth = 0, .os_errno = EIO}});
  const auto file = rig.open();
  ASSERT_TRUE(file->write_at(filled(5000, 1), 0));
  EXPECT_EQ(file->sync().error().kind, ErrorKind::io);
  EXPECT_TRUE(file->dirty({0, 5000}));
  const std::int64_t before = rig.file_plan->calls(StorageCall::write);
  EXPECT_TRUE(file->sync());
  EXPECT_GT(rig.file_plan->calls(StorageCall::write), before);
  EXPECT_FALSE(file->dirty({0, 5000}));
}

/// The first sync of what was written fails, and loses it, once the file is about to be closed.
class LosingFile final : public ForwardingFile {
 public:
  explicit LosingFile(std::unique_ptr<StorageFile> inner) : ForwardingFile(std::move(inner)) {}

  void lengthen(Bytes size) override {
    ForwardingFile::lengthen(size);
    is_closing_ = true;
  }
  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override {
    auto written = ForwardingFile::write_pieces(pieces, offset);
    is_written_ = true;
    return written;
  }
  Status sync() override {
    if (!is_written_ || is_syncing_.exchange(true)) return ForwardingFile::sync();
    while (!is_closing_) std::this_thread::yield();
    // Who closes it comes to wait for this sync, most of the time.
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    EXPECT_TRUE(ForwardingFile::resize(0));
    return fail(EIO, "sync");
  }
  bool is_syncing() const { return is_syncing_; }

 private:
  std::atomic<bool> is_written_{false};
  std::atomic<bool> is_syncing_{false};
  std::atomic<bool> is_closing_{false};
};

TEST(CachedFile, WritesAgainWhatAnotherThreadLosesAsItIsClosed) {
  CacheRig rig;
  rig.options.flush = CacheFlush::onclose;
  auto losing = std::make_unique<LosingFile>(open_volatile_file(rig.file));
  const LosingFile& watched = *losing;
  auto file = *CachedFile::open(std::move(losing), rig.log->open(), {}, rig.capacity, rig.options);
  ASSERT_TRUE(file->write_at(filled(500, 1), 0));
  ASSERT_TRUE(file->commit(2));
  const auto needy = *ResourceHolder::join(rig.capacity);
  std::thread other([&] { needy->take(rig.capacity->amount(), std::chrono::hours(1)); });
  while (!watched.is_syncing()) std::this_thread::yield();
  EXPECT_TRUE(file->close());
  std::mt19937_64 random(1);
  EXPECT_EQ(rig.file->after_crash(CrashKind::all_lost, random)->content(), filled(500, 1));
  EXPECT_TRUE(rig.log->destroyed());
  file.reset();  // What it has of the capacity, if the close failed.
  other.join();
}

TEST(CachedFile, ForgetsWhatIsDiscarded) {
  CacheRig rig;
  rig.options.flush = CacheFlush::onclose;
  const auto file = rig.open();
  ASSERT_TRUE(file->write_at(filled(5000, 1), 0));
  ASSERT_TRUE(file->discard());
  EXPECT_TRUE(rig.log->destroyed());
  EXPECT_EQ(file->size().value(), 0);
  ASSERT_TRUE(file->close());
  EXPECT_TRUE(rig.file->content().empty());
}

TEST(CachedFile, KeepsTheLogIfAskedTo) {
  CacheRig rig;
  rig.options.keep_log = true;
  {
    const auto file = rig.open();
    ASSERT_TRUE(file->write_at(filled(5000, 1), 0));
    ASSERT_TRUE(file->close());
  }
  EXPECT_FALSE(rig.log->destroyed());
  const auto store = rig.log->open();
  EXPECT_TRUE(read_log(*store, ReadDepth::payloads)->clean());
  EXPECT_EQ(StatusPage::read(*store)->drained, 5000);
}

TEST(CachedFile, IsSeenFromOutsideWhileItIsOnlyWritten) {
  CacheRig rig;
  rig.options.flush = CacheFlush::onclose;
  const auto file = rig.open();
  ASSERT_TRUE(file->write_at(filled(5000, 1), 0));
  const auto store = rig.log->open();
  for (CacheProgress seen; seen.dirty != 5000;) {
    if (auto progress = StatusPage::read(*store)) seen = *progress;
    std::this_thread::yield();
  }
  EXPECT_EQ(StatusPage::read(*store)->absorbed, 5000);
  EXPECT_EQ(StatusPage::read(*store)->drained, 0);
}

TEST(CachedFile, IsReadAndWrittenByManyThreads) {
  CacheRig rig;
  rig.capacity = std::make_shared<Resource>("cache.local", 8 * 32 * KiB);
  const auto file = rig.open();
  constexpr int threads = 4;
  constexpr Bytes each = 60'000;
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      for (int round = 0; round < 5; ++round) {
        for (Bytes at = 0; at < each; at += 4000) {
          EXPECT_TRUE(file->write_at(filled(4000, t * 16 + round), t * each + at));
        }
        Content back(each);
        EXPECT_EQ(file->read_at(back, t * each).value(), each);
        EXPECT_EQ(back, filled(each, t * 16 + round));
        if (t == 0) {
          EXPECT_TRUE(file->commit(file->epoch() + 1));
        } else if (t == 1) {
          EXPECT_TRUE(file->sync());
        }
      }
    });
  }
  for (auto& worker : workers) worker.join();
  ASSERT_TRUE(file->close());
  const Content content = rig.file->content();
  for (int t = 0; t < threads; ++t) {
    EXPECT_EQ(Content(content.begin() + t * each, content.begin() + (t + 1) * each),
              filled(each, t * 16 + 4));
  }
}

TEST(CachedFile, OnRealFilesIsTheFileInTheEnd) {
  std::string name = fs::temp_directory_path() / "forebay-cached-XXXXXX";
  const fs::path base = ::mkdtemp(name.data());
  const std::string path = base / "data";
  Counters counters;
  for (const bool through : {false, true}) {
    std::ofstream(path, std::ios::trunc).close();
    LogIdentity identity;
    identity.log = "log-1";
    identity.file = identify(path).value();
    const auto cache = CacheDirectory::open(base, CacheDirectory::Access::create).value();
    auto file = CachedFile::open(open_posix_file(path, OpenMode::read_write, counters).value(),
                                 LogDirectory::create(cache, identity.log).value(), identity,
                                 std::make_shared<Resource>("cache.local", 1 * MiB),
                                 CacheRig::small_options())
                    .value();
    FileModel model;
    for (int i = 0; i < 100; ++i) {
      const Content bytes = filled(3000, i);
      ASSERT_TRUE(file->write_at(bytes, i * 2500));
      model.write(i * 2500, bytes);
      if (i == 50) {
        ASSERT_TRUE(file->resize(100'000));
        model.resize(100'000);
      }
    }
    EXPECT_EQ(read_all(*file, 1 << 20), model.content());
    // The log is removed by the first of them already, and the second finds nothing of it.
    if (through) {
      ASSERT_TRUE(file->set_write_through(true));
    }
    ASSERT_TRUE(file->close());
    file.reset();
    EXPECT_EQ(cache->logs().value(), std::vector<std::string>{});
    EXPECT_EQ(read_all(*open_posix_file(path, OpenMode::read_only, counters).value(), 1 << 20),
              model.content());
  }
  fs::remove_all(base);
}

}  // namespace
}  // namespace forebay
