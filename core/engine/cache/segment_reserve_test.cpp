// Goal: a log is written into what an earlier one of the process left, none of which is ever read
// again, and what is kept is bounded, counted, and given back when it is wanted.
// Method: logs one after the other with one reserve, in memory and in a directory of their own in
// /dev/shm; time is given.

#include "core/engine/cache/segment_reserve.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "core/engine/cache/host_capacity.hpp"
#include "core/engine/cache/log_contents.hpp"
#include "core/engine/cache/log_directory.hpp"
#include "core/engine/cache/log_writer.hpp"
#include "core/engine/cache/memory_log_store.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;
using Content = std::vector<std::byte>;

constexpr Bytes segment = 32 * KiB;

/// Where a reserve keeps files, in memory; as often as it begins anew.
struct SpareLogs {
  std::vector<std::shared_ptr<MemoryLog>> logs;

  SegmentReserve::MakeStore maker() {
    return [this]() -> Result<std::unique_ptr<LogStore>> {
      logs.push_back(std::make_shared<MemoryLog>());
      return logs.back()->open();
    };
  }
};

std::unique_ptr<LogWriter> writer_of(std::unique_ptr<LogStore> store, const std::string& name,
                                     const std::shared_ptr<Resource>& capacity,
                                     const std::shared_ptr<SegmentReserve>& reserve) {
  LogIdentity identity;
  identity.log = name;
  identity.file.path = "/scratch/" + name;
  return std::make_unique<LogWriter>(
      std::move(store), identity, LogSettings{segment, 1 * KiB, Toggle::disable, reserve},
      *ResourceHolder::join(capacity), [](const LogRecord&, const LogPlace&) {});
}

void append(LogWriter& writer, Bytes length, int value) {
  const Content bytes(static_cast<std::size_t>(length), static_cast<std::byte>(value));
  const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  ASSERT_TRUE(writer.append({&piece, 1}, 0, 1).status);
  ASSERT_TRUE(writer.commit(1));
}

class SegmentReserveTest : public ::testing::Test {
 protected:
  SegmentReserveTest() { reserve_->use(capacity_); }

  /// A log of `segments` segments with that name and bytes of that value, flushed and removed.
  void pass(const std::string& name, int segments, int value) {
    MemoryLog log;
    const auto writer = writer_of(log.open(), name, capacity_, reserve_);
    append(*writer, segments * (segment - superblock_bytes) - segment / 2, value);
    ASSERT_TRUE(writer->flushed(1, writer->last_sequence()));
    ASSERT_TRUE(writer->destroy());
  }

  SpareLogs spare_;
  std::shared_ptr<Resource> capacity_ = std::make_shared<Resource>("cache.local", 64 * segment);
  std::shared_ptr<SegmentReserve> reserve_ = std::make_shared<SegmentReserve>(spare_.maker());
};

TEST_F(SegmentReserveTest, KeepsSegmentsForTheNextLog) {
  pass("first", 3, 1);
  EXPECT_GE(reserve_->held(), 3 * segment);
  const Bytes before = reserve_->held();
  EXPECT_EQ(capacity_->free(), capacity_->amount() - before) << "they count";

  MemoryLog log;
  const auto writer = writer_of(log.open(), "second", capacity_, reserve_);
  append(*writer, segment, 2);
  EXPECT_LT(reserve_->held(), before);
  const auto store = log.open();
  const auto contents = read_log(*store, ReadDepth::payloads);
  ASSERT_TRUE(contents);
  EXPECT_TRUE(contents->damage.empty());
  EXPECT_FALSE(contents->torn);
  EXPECT_EQ(contents->complete_bytes(), segment);
  Content buffer;
  for (const LogEntry& entry : contents->complete) {
    const auto bytes = verified_bytes(entry.place, entry.record.length, buffer);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(bytes->front(), std::byte{2});
  }
}

TEST_F(SegmentReserveTest, GivesEachUseASaltOfItsOwn) {
  std::vector<std::uint32_t> salts;
  for (int i = 0; i < 4; ++i) {
    MemoryLog log;
    const std::string name = "log-" + std::to_string(i);
    const auto writer = writer_of(log.open(), name, capacity_, reserve_);
    append(*writer, 2 * KiB, i);
    const auto superblock = parse_superblock(log.files().at(segment_name(0)));
    ASSERT_TRUE(superblock);
    salts.push_back(superblock->salt);
    ASSERT_TRUE(writer->flushed(1, writer->last_sequence()));
    ASSERT_TRUE(writer->destroy());
  }
  for (std::size_t i = 1; i < salts.size(); ++i) EXPECT_EQ(salts[i], salts[0] + i);
}

TEST_F(SegmentReserveTest, HoldsNoMoreThanItsPart) {
  for (int i = 0; i < 5; ++i) pass("log", 30, i);
  EXPECT_GT(reserve_->held(), 0);
  EXPECT_LE(reserve_->held(), capacity_->amount() / 4);
}

TEST_F(SegmentReserveTest, GivesAllBackWhereCapacityRunsShort) {
  pass("log", 4, 1);
  ASSERT_GT(reserve_->held(), 0);
  const auto other = *ResourceHolder::join(capacity_);
  reserve_->look(SegmentReserve::Clock::now());
  EXPECT_GT(reserve_->held(), 0);
  ASSERT_TRUE(other->take(capacity_->free() - segment));
  reserve_->look(SegmentReserve::Clock::now());
  EXPECT_EQ(reserve_->held(), 0);
  EXPECT_TRUE(spare_.logs.back()->destroyed());
}

TEST_F(SegmentReserveTest, GivesAllBackWhereNobodyComes) {
  pass("log", 4, 1);
  reserve_->look(SegmentReserve::Clock::now() + SegmentReserve::patience / 2);
  EXPECT_GT(reserve_->held(), 0);
  reserve_->look(SegmentReserve::Clock::now() + SegmentReserve::patience);
  EXPECT_EQ(reserve_->held(), 0);
  EXPECT_EQ(capacity_->free(), capacity_->amount());
  pass("log", 4, 1);
  EXPECT_GT(reserve_->held(), 0) << "it begins anew";
}

TEST_F(SegmentReserveTest, ComesAfterWhatALogOfTheProcessNeeds) {
  pass("first", 8, 1);
  ASSERT_GT(reserve_->held(), 0);
  const auto other = *ResourceHolder::join(capacity_);
  ASSERT_TRUE(other->take(capacity_->free()));
  MemoryLog log;
  const auto writer = writer_of(log.open(), "second", capacity_, reserve_);
  append(*writer, 2 * segment, 2);
}

TEST_F(SegmentReserveTest, GivesBackWhatIsHeldOfAnotherCapacity) {
  pass("log", 4, 1);
  reserve_->agree(capacity_->amount());
  EXPECT_GT(reserve_->held(), 0);
  reserve_->agree(capacity_->amount() / 2);
  EXPECT_EQ(reserve_->held(), 0);
}

TEST_F(SegmentReserveTest, KeepsNothingOnceItIsClosed) {
  pass("log", 4, 1);
  reserve_->close();
  EXPECT_EQ(reserve_->held(), 0);
  EXPECT_TRUE(spare_.logs.back()->destroyed());
  pass("log", 4, 1);
  EXPECT_EQ(reserve_->held(), 0);
}

/// With logs in directories, of a file system in memory where there is one.
class SegmentReservesTest : public ::testing::Test {
 protected:
  SegmentReservesTest() {
    std::string name = "/dev/shm/forebay-reserve-XXXXXX";
    base_ = ::mkdtemp(name.data()) == nullptr ? "" : name;
    if (!base_.empty()) directory_ = *CacheDirectory::open(base_, CacheDirectory::Access::create);
  }
  ~SegmentReservesTest() override {
    close_segment_reserves();
    if (!base_.empty()) fs::remove_all(base_);
  }
  void SetUp() override {
    if (directory_ == nullptr || !directory_->in_memory()) GTEST_SKIP() << "no /dev/shm";
  }

  void pass(const std::string& name, int value) {
    auto store = LogDirectory::create(directory_, name);
    ASSERT_TRUE(store);
    const auto writer = writer_of(std::move(*store), name, capacity_, segment_reserve(directory_));
    append(*writer, segment, value);
    // As a flush does.
    for (const LogRun& run : writer->grown({}).runs) {
      Content buffer;
      ASSERT_TRUE(run.segment->bytes(run.begin, run.length(), buffer));
    }
    ASSERT_TRUE(writer->release(writer->last_sequence()));
    ASSERT_TRUE(writer->flushed(1, writer->last_sequence()));
    ASSERT_TRUE(writer->destroy());
  }

  fs::path base_;
  std::shared_ptr<CacheDirectory> directory_;
  std::shared_ptr<Resource> capacity_ = std::make_shared<Resource>("cache.local", 64 * segment);
};

TEST_F(SegmentReservesTest, AreThereForWhoPromisesToCloseThem) {
  EXPECT_EQ(segment_reserve(directory_), nullptr);
  keep_segments();
  const auto reserve = segment_reserve(directory_);
  ASSERT_NE(reserve, nullptr);
  EXPECT_EQ(segment_reserve(directory_), reserve);
  reserve->use(capacity_);
  pass("first", 1);
  ASSERT_GT(reserve->held(), 0);
  for (const auto& entry : fs::recursive_directory_iterator(base_)) {
    EXPECT_EQ(entry.status().permissions() & (fs::perms::group_all | fs::perms::others_all),
              fs::perms::none)
        << entry.path();
  }
  close_segment_reserves();
  EXPECT_TRUE(directory_->logs().value().empty());
  EXPECT_EQ(segment_reserve(directory_), nullptr);
}

TEST_F(SegmentReservesTest, AreWrittenToInMemory) {
  keep_segments();
  segment_reserve(directory_)->use(capacity_);
  pass("first", 1);
  const Bytes kept = segment_reserve(directory_)->held();
  auto store = LogDirectory::create(directory_, "second");
  ASSERT_TRUE(store);
  const auto writer =
      writer_of(std::move(*store), "second", capacity_, segment_reserve(directory_));
  append(*writer, segment + 100, 2);
  EXPECT_LT(segment_reserve(directory_)->held(), kept);
  const auto log = LogDirectory::open(directory_, "second", LogDirectory::Use::look);
  ASSERT_TRUE(log);
  const auto contents = read_log(**log, ReadDepth::payloads);
  ASSERT_TRUE(contents);
  EXPECT_TRUE(contents->damage.empty());
  EXPECT_EQ(contents->complete_bytes(), segment + 100);
  Content buffer;
  for (const LogEntry& entry : contents->complete) {
    const auto bytes = verified_bytes(entry.place, entry.record.length, buffer);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(bytes->front(), std::byte{2});
    EXPECT_EQ(bytes->back(), std::byte{2});
  }
}

TEST_F(SegmentReservesTest, OfADeadProcessAreALogThatHoldsNothing) {
  const pid_t child = ::fork();
  if (child == 0) {
    keep_segments();
    segment_reserve(directory_)->use(capacity_);
    pass("first", 1);
    ::_exit(segment_reserve(directory_)->held() > 0 ? 0 : 1);  // As one that is killed.
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const auto left = directory_->logs();
  ASSERT_TRUE(left);
  ASSERT_EQ(left->size(), 1U);
  auto log = LogDirectory::open(directory_, left->front(), LogDirectory::Use::replace);
  ASSERT_TRUE(log);
  const auto contents = read_log(**log, ReadDepth::payloads);
  ASSERT_FALSE(contents);
  EXPECT_EQ(contents.error().kind, ErrorKind::no_such_file);
  (*log).reset();
  // The next one that may keep any removes it.
  keep_segments();
  segment_reserve(directory_)->use(capacity_);
  pass("second", 2);
  const auto now = directory_->logs();
  ASSERT_TRUE(now);
  ASSERT_EQ(now->size(), 1U);
  EXPECT_NE(now->front(), left->front());
}

TEST_F(SegmentReservesTest, AreNotTakenForALogOfAHostThatIsCalledSo) {
  const std::string name = "spare-07-4242-1-00000000000000aa";
  auto store = LogDirectory::create(directory_, name);
  ASSERT_TRUE(store);
  ASSERT_TRUE((*store)->create("seg-000000", segment));
  (*store).reset();  // Its process is dead.
  keep_segments();
  ASSERT_NE(segment_reserve(directory_), nullptr);
  EXPECT_TRUE(fs::exists(directory_->path() + "/" + name + "/seg-000000"));
}

TEST_F(SegmentReservesTest, AreGoneWhenTheProcessExits) {
  EXPECT_EXIT(
      {
        keep_segments();
        segment_reserve(directory_)->use(capacity_);
        pass("first", 1);
        std::exit(segment_reserve(directory_)->held() > 0 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_TRUE(directory_->logs().value().empty());
}

TEST_F(SegmentReservesTest, OfAllProcessesLetGoOfACapacityBeforeAnotherHolds) {
  const Bytes before = capacity_->amount();
  const Bytes after = before / 2;
  const auto keep = [&](const std::string& log) {
    keep_segments();
    capacity_ = *share_host_capacity(directory_, before);
    segment_reserve(directory_)->use(capacity_);
    pass(log, 1);
    capacity_.reset();  // The reserve alone has it.
    return segment_reserve(directory_)->held() > 0;
  };
  const auto amount = [&] { return (*share_host_capacity(directory_, after))->amount(); };
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    char word = keep("of the child") ? 'k' : '-';
    bool is_well = ::write(ends[1], &word, 1) == 1 && ::read(ends[1], &word, 1) == 1;
    segment_reserve(directory_)->agree(after);
    is_well = is_well && ::write(ends[1], &word, 1) == 1;
    ::_exit(is_well && ::read(ends[1], &word, 1) == 0 ? 0 : 1);  // Until the parent has looked.
  }
  ::close(ends[1]);
  char word = 0;
  ASSERT_EQ(::read(ends[0], &word, 1), 1);
  ASSERT_EQ(word, 'k');
  ASSERT_TRUE(keep("of the parent"));
  segment_reserve(directory_)->agree(after);
  EXPECT_EQ(segment_reserve(directory_)->held(), 0);
  EXPECT_EQ(amount(), before) << "the child holds some of it";
  ASSERT_EQ(::write(ends[0], &word, 1), 1);
  ASSERT_EQ(::read(ends[0], &word, 1), 1);
  EXPECT_EQ(amount(), after);
  ::close(ends[0]);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(SegmentReservesTest, OfAParentAreNotTheChildsToRemove) {
  keep_segments();
  segment_reserve(directory_)->use(capacity_);
  pass("first", 1);
  const pid_t child = ::fork();
  if (child == 0) std::exit(0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(directory_->logs().value().size(), 1U);
}

}  // namespace
}  // namespace forebay
