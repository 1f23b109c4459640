// Goal: what is dirty reaches the file, neighbours in one call, newest bytes last, and no byte of a
// damaged payload ever does.
// Method: a log in memory, written by a LogWriter; calls are counted by the file below.

#include "core/engine/cache/flusher.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <random>
#include <utility>

#include "core/engine/cache/cache_rig.hpp"
#include "core/engine/cache/log_writer.hpp"
#include "core/engine/cache/memory_log_store.hpp"
#include "core/model/direct_io.hpp"
#include "core/storage/forwarding_file.hpp"
#include "core/storage/memory_file.hpp"

namespace forebay {
namespace {

using Content = std::vector<std::byte>;

class Rig {
 public:
  explicit Rig(Bytes unit, std::vector<Fault> faults = {}, std::vector<Fault> log_faults = {})
      : plan(std::make_shared<FaultPlan>(std::move(faults))),
        log_plan(std::make_shared<FaultPlan>(std::move(log_faults))),
        file(make_faulty(open_memory_file(inode, counters), plan)),
        extents({{}, unit, 0}, false),
        writer(log.open(log_plan), identity(), {64 * KiB, 4 * KiB},
               *ResourceHolder::join(std::make_shared<Resource>("cache.local", GiB)),
               [this](const LogRecord& record, const LogPlace& place) {
                 extents.add(record.extent(), record.sequence, place);
               }) {}

  void write(Bytes offset, const Content& bytes) {
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    EXPECT_TRUE(writer.append({&piece, 1}, offset, 1).status);
    if (model.size() < static_cast<std::size_t>(offset) + bytes.size()) {
      model.resize(static_cast<std::size_t>(offset) + bytes.size());
    }
    std::copy(bytes.begin(), bytes.end(), model.begin() + offset);
  }

  Status flush(int threads = 2) {
    const Flusher flusher(extents, *file, threads, {});
    return extents.drain(extents.last_order());
  }

  static LogIdentity identity() {
    LogIdentity identity;
    identity.log = "log";
    return identity;
  }

  MemoryLog log;
  std::shared_ptr<MemoryInode> inode = std::make_shared<MemoryInode>();
  Counters counters;
  std::shared_ptr<FaultPlan> plan;
  std::shared_ptr<FaultPlan> log_plan;
  std::unique_ptr<StorageFile> file;
  DirtyExtents extents;
  LogWriter writer;
  Content model;
};

TEST(Flusher, WritesNeighboursInOneCallAUnit) {
  Rig rig(16 * KiB);
  for (int i = 0; i < 32; ++i) rig.write(i * KiB, filled(1024, i));
  ASSERT_TRUE(rig.flush());
  EXPECT_EQ(rig.inode->content(), rig.model);
  EXPECT_EQ(rig.plan->calls(StorageCall::write), 2);
}

TEST(Flusher, LeavesHolesAlone) {
  Rig rig(16 * KiB);
  ASSERT_TRUE(rig.file->write_at(filled(10'000, 9), 0));
  rig.model = filled(10'000, 9);
  rig.write(100, filled(50, 1));
  rig.write(200, filled(50, 2));
  ASSERT_TRUE(rig.flush());
  EXPECT_EQ(rig.inode->content(), rig.model);
  EXPECT_EQ(rig.plan->calls(StorageCall::write), 3);
}

TEST(Flusher, PutsTheNewestBytesWhereWritesOverlap) {
  Rig rig(8 * KiB);
  std::mt19937_64 random(1);  // NOLINT(bugprone-random-generator-seed)
  for (int i = 0; i < 300; ++i) {
    rig.write(static_cast<Bytes>(random() % 60'000),
              filled(1 + static_cast<std::size_t>(random() % 9'000), i));
  }
  ASSERT_TRUE(rig.flush(4));
  EXPECT_EQ(rig.inode->content(), rig.model);
  EXPECT_EQ(rig.extents.totals().dirty, 0);
}

TEST(Flusher, NeverWritesBytesOfADamagedPayload) {
  Rig rig(8 * KiB);
  rig.write(0, filled(1000, 1));
  rig.write(20'000, filled(1000, 2));
  {
    const auto file = rig.log.open()->open(segment_name(0));
    ASSERT_TRUE((*file)->write_at(filled(1, 7), superblock_bytes + record_header_bytes + 500));
  }
  const auto flushed = rig.flush();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().kind, ErrorKind::io);
  EXPECT_NE(flushed.error().what.find("damaged"), std::string::npos);
  const Content content = rig.inode->content();
  for (std::size_t at = 0; at < std::min<std::size_t>(content.size(), 1000); ++at) {
    EXPECT_EQ(content[at], std::byte{0});
  }
  EXPECT_TRUE(rig.extents.any({0, 1000})) << "it is still dirty";
}

/// Notes from where it is written.
class Watched final : public ForwardingFile {
 public:
  explicit Watched(std::unique_ptr<StorageFile> inner) : ForwardingFile(std::move(inner)) {}

  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override {
    const auto address = reinterpret_cast<std::uintptr_t>(pieces.front().iov_base);
    const auto within = static_cast<std::uint64_t>(offset) % direct_alignment;
    if (pieces.size() != 1 || address % direct_alignment != within) lie_as_in_file = false;
    return ForwardingFile::write_pieces(pieces, offset);
  }

  std::atomic<bool> lie_as_in_file = true;
};

TEST(Flusher, CopiesLieAsTheyDoInTheFile) {
  Rig rig(64 * KiB);
  rig.write(5000, filled(3000, 1));
  rig.write(8000, filled(100'000, 2));
  rig.write(120'001, filled(20'000, 3));
  auto watched = std::make_unique<Watched>(std::move(rig.file));
  const Watched& seen = *watched;
  rig.file = std::move(watched);
  ASSERT_TRUE(rig.flush());
  EXPECT_EQ(rig.inode->content(), rig.model);
  EXPECT_TRUE(seen.lie_as_in_file);
}

TEST(Flusher, ReadsWhatDoesNotLieInMemory) {
  Rig rig(16 * KiB);
  for (int i = 0; i < 4; ++i) rig.write(i * KiB, filled(1024, i + 1));
  const auto pieces = rig.extents.overlapping({0, 4 * KiB});
  ASSERT_EQ(pieces.size(), 4u);
  // Of a log with a hole, what comes before it can be looked at in memory.
  const Bytes shown = pieces[1].place.payload;
  const std::shared_ptr<std::byte> memory(new std::byte[static_cast<std::size_t>(shown)],
                                          std::default_delete<std::byte[]>());
  auto storage = rig.log.open()->open(segment_name(0));
  ASSERT_TRUE(storage);
  ASSERT_TRUE((*storage)->read_at({memory.get(), static_cast<std::size_t>(shown)}, 0));
  const auto segment = std::make_shared<const LogSegment>(
      LogFile{std::move(*storage), memory, shown}, pieces[0].place.segment->superblock());
  DirtyExtents extents({{}, 16 * KiB, 0}, false);
  for (const DirtyMap::Piece& piece : pieces) {
    LogPlace place = piece.place;
    place.segment = segment;
    extents.add(piece.extent, piece.order, place);
  }
  const Flusher flusher(extents, *rig.file, 1, {});
  ASSERT_TRUE(extents.drain(extents.last_order()));
  EXPECT_EQ(rig.inode->content(), rig.model);
}

TEST(Flusher, GoesOnAfterAFailureOnEitherSide) {
  Rig clean(4 * KiB);
  const auto fill = [](Rig& rig) {
    for (int i = 0; i < 10; ++i) rig.write(i * 3000, filled(2500, i));
  };
  fill(clean);
  const std::int64_t log_reads = clean.log_plan->calls(StorageCall::read);
  ASSERT_TRUE(clean.flush(1));
  const std::int64_t writes = clean.plan->calls(StorageCall::write);
  const std::int64_t reads = clean.log_plan->calls(StorageCall::read) - log_reads;
  ASSERT_GT(writes, 5);
  ASSERT_GT(reads, 5);
  for (std::int64_t nth = 0; nth < writes; ++nth) {
    Rig rig(4 * KiB, {{.call = StorageCall::write, .nth = nth, .os_errno = EIO, .after_bytes = 7}});
    fill(rig);
    EXPECT_EQ(rig.flush(1).error().kind, ErrorKind::io);
    EXPECT_GT(rig.extents.totals().dirty, 0);
  }
  for (std::int64_t nth = 0; nth < reads; ++nth) {
    Rig rig(4 * KiB, {}, {{.call = StorageCall::read, .nth = nth, .os_errno = EIO}});
    fill(rig);
    EXPECT_EQ(rig.flush(1).error().kind, ErrorKind::io);
  }
  // The same Flusher tries again when somebody waits again.
  Rig rig(4 * KiB, {{.call = StorageCall::write, .nth = 2, .os_errno = ENOSPC}});
  fill(rig);
  const Flusher flusher(rig.extents, *rig.file, 2, {});
  EXPECT_EQ(rig.extents.drain(rig.extents.last_order()).error().kind, ErrorKind::no_space);
  EXPECT_TRUE(rig.extents.drain(rig.extents.last_order()));
  EXPECT_EQ(rig.inode->content(), rig.model);
}

}  // namespace
}  // namespace forebay
