// Goal: whatever happens to the bytes of a log, nothing that is read from it was not written, what
// a writer's death leaves is a prefix, what is missing from a promise is named, and what a writer
// has removed stays away.
// Method: one log of a few segments with commits in it, kept as bytes, in new segments and in such
// as are full of records of two earlier logs; cut at and within every record, every byte of a small
// one flipped, records swapped, copied and lost, segments lost and replaced; each time what is read
// is compared with what was written, record by record. And logs to which a write fails.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string_view>

#include "core/engine/cache/forwarding_log_store.hpp"
#include "core/engine/cache/little_endian.hpp"
#include "core/engine/cache/log_contents.hpp"
#include "core/engine/cache/log_writer.hpp"
#include "core/engine/cache/memory_log_store.hpp"
#include "core/engine/cache/segment_reserve.hpp"

namespace forebay {
namespace {

using Content = std::vector<std::byte>;
using Files = std::map<std::string, Content>;

constexpr auto header_bytes = static_cast<std::size_t>(record_header_bytes);

/// What the records of a log say, by sequence number, and where each lies.
struct History {
  struct Entry {
    LogRecord record;
    Content payload;
    std::string file;
    std::size_t position = 0;  ///< Of the header.

    std::size_t end() const {
      return position + static_cast<std::size_t>(record_bytes(record.stored));
    }
  };
  std::map<std::uint64_t, Entry> entries;
  Files files;
  Files before;  ///< What earlier logs had left in them; nothing, where they were new.

  std::uint64_t last_commit(std::uint64_t up_to) const {
    std::uint64_t found = 0;
    for (const auto& [sequence, entry] : entries) {
      if (sequence <= up_to && entry.record.kind == RecordKind::commit) found = sequence;
    }
    return found;
  }
};

using Reserve = std::shared_ptr<SegmentReserve>;

Files segments_of(const MemoryLog& log) {
  Files files = log.files();
  std::erase_if(files, [](const auto& file) { return !is_segment_name(file.first); });
  return files;
}

/// Epochs of a few writes each of about that many bytes; the last one is not committed. Bytes
/// differ from log to log.
void write_epochs(LogWriter& writer, int epochs, int writes, Bytes length) {
  const int first = static_cast<int>(writer.identity().log.size()) * 40;
  int number = 0;
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    for (int i = 0; i < writes; ++i, ++number) {
      const Content bytes(static_cast<std::size_t>(length + number % 7),
                          static_cast<std::byte>(first + number + 1));
      const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
      EXPECT_TRUE(writer.append({&piece, 1}, Bytes{512} * number, static_cast<std::uint64_t>(epoch))
                      .status);
    }
    if (epoch == epochs) break;
    EXPECT_TRUE(writer.commit(static_cast<std::uint64_t>(epoch)));
  }
}

std::unique_ptr<LogWriter> writer_of(std::unique_ptr<LogStore> log, const std::string& name,
                                     Bytes segment_bytes, const std::shared_ptr<Resource>& capacity,
                                     const Reserve& reserve) {
  LogIdentity identity;
  identity.log = name;
  identity.file.path = "/scratch/a";
  return std::make_unique<LogWriter>(
      std::move(log), identity, LogSettings{segment_bytes, 512, Toggle::disable, reserve},
      *ResourceHolder::join(capacity), [](const LogRecord&, const LogPlace&) {});
}

/// Leaves segments of two logs in the reserve, the second's in those of the first: records of the
/// same lengths as will come, and of others.
void leave_segments(Bytes length, Bytes segment_bytes, const std::shared_ptr<Resource>& capacity,
                    const Reserve& reserve) {
  struct Older {
    const char* name;
    int writes;
    Bytes length;
  };
  for (const Older& older : {Older{"older", 24, length}, Older{"old", 60, length / 2}}) {
    MemoryLog log;
    const auto writer = writer_of(log.open(), older.name, segment_bytes, capacity, reserve);
    write_epochs(*writer, 12, older.writes, older.length);
    EXPECT_TRUE(writer->flushed(12, writer->last_sequence()));
    EXPECT_TRUE(writer->destroy());
  }
}

/// A log of so many epochs, in segments that were used before if `reused`.
History make_history(int epochs, int writes, Bytes length, Bytes segment_bytes, bool reused) {
  MemoryLog spare;
  const auto capacity = std::make_shared<Resource>("cache.local", GiB);
  const auto reserve = std::make_shared<SegmentReserve>(
      [&]() -> Result<std::unique_ptr<LogStore>> { return spare.open(); });
  Files left;
  if (reused) {
    reserve->use(capacity);
    leave_segments(length, segment_bytes, capacity, reserve);
    left = spare.files();
  }
  MemoryLog log;
  History history;
  {
    const auto writer =
        writer_of(log.open(), "log", segment_bytes, capacity, reused ? reserve : nullptr);
    write_epochs(*writer, epochs, writes, length);
    history.files = segments_of(log);
  }
  // What the records say is taken from where they lie.
  for (auto& [name, content] : history.files) {
    const auto superblock = parse_superblock(content);
    std::size_t at = static_cast<std::size_t>(superblock_bytes);
    while (true) {
      const auto record = decode_record(std::span(content).subspan(at), superblock->salt);
      if (!record) break;
      const auto payload = std::span(content).subspan(
          at + static_cast<std::size_t>(record_header_bytes), record->length);
      history.entries[record->sequence] = {*record, Content(payload.begin(), payload.end()), name,
                                           at};
      at = history.entries[record->sequence].end();
    }
    if (!reused) continue;
    // What lies behind the last record tells whose segment it was.
    const std::span<const std::byte> behind = std::span(content).subspan(at);
    const auto found = std::ranges::find_if(left, [behind](const auto& old) {
      return std::ranges::equal(std::span(old.second).last(behind.size()), behind);
    });
    EXPECT_NE(found, left.end()) << name << " is new";
    if (found != left.end()) history.before[name] = found->second;
  }
  return history;
}

Result<LogContents> read(const Files& files, std::unique_ptr<LogStore>& store,
                         std::unique_ptr<MemoryLog>& log) {
  log = std::make_unique<MemoryLog>(files);
  store = log->open();
  return read_log(*store, ReadDepth::payloads);
}

/// Every entry is one that was written, in rising order, and its payload is what was written.
std::vector<std::uint64_t> checked(const History& history, const std::vector<LogEntry>& entries) {
  std::vector<std::uint64_t> sequences;
  Content buffer;
  for (const LogEntry& entry : entries) {
    const auto found = history.entries.find(entry.record.sequence);
    if (found == history.entries.end() || !(found->second.record == entry.record)) {
      ADD_FAILURE() << "record " << entry.record.sequence << " was never written";
      return {};
    }
    EXPECT_TRUE(sequences.empty() || sequences.back() < entry.record.sequence);
    sequences.push_back(entry.record.sequence);
    const auto bytes = verified_bytes(entry.place, entry.record.length, buffer);
    EXPECT_TRUE(bytes && std::ranges::equal(*bytes, found->second.payload));
  }
  return sequences;
}

std::vector<std::uint64_t> data_between(const History& history, std::uint64_t after,
                                        std::uint64_t up_to) {
  std::vector<std::uint64_t> sequences;
  for (const auto& [sequence, entry] : history.entries) {
    if (sequence > after && sequence <= up_to && entry.record.kind == RecordKind::data) {
      sequences.push_back(sequence);
    }
  }
  return sequences;
}

class LogCrash : public ::testing::TestWithParam<bool> {
 protected:
  Result<LogContents> read_files(const Files& files) { return read(files, store_, log_); }

  /// The log ends after record `last`, and `torn` says whether another one was begun.
  void expect_prefix(const Files& files, std::uint64_t last, bool torn) {
    const auto contents = read_files(files);
    if (last == 0 && !contents) return;  // Nothing but a superblock, or not even that.
    ASSERT_TRUE(contents) << to_string(contents.error());
    EXPECT_TRUE(contents->damage.empty());
    EXPECT_EQ(contents->torn, torn) << "after " << last;
    const std::uint64_t commit = history_.last_commit(last);
    EXPECT_EQ(contents->committed, commit);
    EXPECT_EQ(checked(history_, contents->complete), data_between(history_, 0, commit));
    EXPECT_EQ(checked(history_, contents->incomplete), data_between(history_, commit, last));
  }

  const History history_ = make_history(6, 5, 300, 16 * KiB, GetParam());
  std::unique_ptr<MemoryLog> log_;
  std::unique_ptr<LogStore> store_;
};

TEST_P(LogCrash, TheHistoryIsWorthLookingAt) {
  EXPECT_EQ(history_.entries.size(), 35U);
  EXPECT_EQ(history_.files.size(), 2U);
  EXPECT_EQ(history_.before.size(), GetParam() ? 2U : 0U);
  for (const auto& [name, content] : history_.before) {
    const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
    int records = 0;
    for (auto at = text.find("FBR"); at != text.npos; at = text.find("FBR", at + 1)) ++records;
    EXPECT_GE(records, 20) << name;
  }
  expect_prefix(history_.files, 35, false);
}

TEST_P(LogCrash, LeavesAPrefixWhereverTheWriterDies) {
  int cuts = 0;
  for (const auto& [sequence, entry] : history_.entries) {
    for (const std::size_t cut : {entry.position, entry.position + 1, entry.position + 20,
                                  entry.position + 47, entry.position + 48, entry.position + 49,
                                  (entry.position + entry.end()) / 2, entry.end() - 8}) {
      if (cut >= entry.end()) continue;
      // What was not written is what was there before, zeros in a new segment. And where nothing
      // was preallocated: nothing.
      for (const bool preallocated : {true, false}) {
        Files files;
        for (const auto& [name, content] : history_.files) {
          if (name <= entry.file) files[name] = content;
        }
        Content& last = files[entry.file];
        const Content& written = history_.files.at(entry.file);
        last = history_.before.contains(entry.file) ? history_.before.at(entry.file)
                                                    : Content(written.size());
        std::copy_n(written.begin(), cut, last.begin());
        if (!preallocated) last.resize(cut);
        // Bytes that are there as they would have been written are not missed.
        const auto is_there = [&written, &last](std::size_t end) {
          return end <= last.size() &&
                 std::equal(written.begin(), written.begin() + static_cast<std::ptrdiff_t>(end),
                            last.begin());
        };
        const bool header = is_there(entry.position + header_bytes);
        const bool whole = is_there(entry.position + header_bytes + entry.record.length);
        if (whole) {
          expect_prefix(files, sequence, false);
        } else {
          expect_prefix(files, sequence - 1, header);
        }
        ++cuts;
      }
    }
  }
  EXPECT_GT(cuts, 300);
}

TEST_P(LogCrash, NeverMakesAnythingOfAFlippedBit) {
  const History small = make_history(3, 3, 40, 16 * KiB, GetParam());
  std::uint64_t damaged = 0;
  std::uint64_t incomplete = 0;
  const std::uint64_t last = small.entries.rbegin()->first;
  const std::uint64_t commit = small.last_commit(last);
  for (const auto& [sequence, entry] : small.entries) {
    const std::size_t end = entry.position + header_bytes + entry.record.length;
    for (std::size_t at = entry.position; at < end; ++at) {
      Files files = small.files;
      files[entry.file][at] ^= static_cast<std::byte>(1U << (at % 8));
      const auto contents = read_files(files);
      ASSERT_TRUE(contents);
      const auto complete = checked(small, contents->complete);
      checked(small, contents->incomplete);
      if (sequence == commit) {
        // The last promise is not there, so it is not broken either.
        EXPECT_TRUE(contents->damage.empty());
        EXPECT_EQ(contents->committed, small.last_commit(commit - 1));
        ++incomplete;
      } else if (sequence < commit) {
        ASSERT_EQ(contents->damage.size(), 1U) << "record " << sequence << ", byte " << at;
        EXPECT_EQ(contents->damage[0].first_sequence, sequence);
        EXPECT_EQ(contents->damage[0].last_sequence, sequence);
        const bool header_stands = at >= entry.position + header_bytes;
        EXPECT_EQ(contents->damage[0].extent.has_value(), header_stands);
        ++damaged;
      } else {
        EXPECT_TRUE(contents->damage.empty());
        EXPECT_EQ(complete, data_between(small, 0, commit));
        EXPECT_EQ(checked(small, contents->incomplete), data_between(small, commit, sequence - 1));
      }
    }
  }
  EXPECT_GT(damaged, 500U);
  EXPECT_EQ(incomplete, header_bytes);
}

TEST_P(LogCrash, ReadsRecordsThatLieInAnotherOrder) {
  // Neighbours of one length, so that they can change places.
  const History equal = make_history(3, 14, 64 - 6, 16 * KiB, GetParam());
  const auto& name = equal.files.begin()->first;
  for (std::uint64_t first = 1; first < equal.entries.size(); ++first) {
    const auto& a = equal.entries.at(first);
    const auto& b = equal.entries.at(first + 1);
    if (a.end() - a.position != b.end() - b.position || a.file != b.file) continue;
    Files files = equal.files;
    Content& content = files[name];
    std::swap_ranges(content.begin() + static_cast<std::ptrdiff_t>(a.position),
                     content.begin() + static_cast<std::ptrdiff_t>(a.end()),
                     content.begin() + static_cast<std::ptrdiff_t>(b.position));
    const auto contents = read_files(files);
    ASSERT_TRUE(contents);
    EXPECT_TRUE(contents->damage.empty());
    EXPECT_EQ(checked(equal, contents->complete),
              data_between(equal, 0, equal.last_commit(equal.entries.size())));
  }
}

TEST_P(LogCrash, NamesARecordThatAnotherOneLiesOver) {
  const auto& lost = history_.entries.at(8);
  const auto& copied = history_.entries.at(7);
  Files files = history_.files;
  Content& content = files[lost.file];
  std::copy(content.begin() + static_cast<std::ptrdiff_t>(copied.position),
            content.begin() + static_cast<std::ptrdiff_t>(copied.position) + record_header_bytes,
            content.begin() + static_cast<std::ptrdiff_t>(lost.position));
  const auto contents = read_files(files);
  ASSERT_TRUE(contents);
  ASSERT_EQ(contents->damage.size(), 1U);
  EXPECT_EQ(contents->damage[0].first_sequence, 8U);
  EXPECT_EQ(contents->damage[0].last_sequence, 8U);
  auto expected = data_between(history_, 0, contents->committed);
  std::erase(expected, 8U);
  EXPECT_EQ(checked(history_, contents->complete), expected);
}

TEST_P(LogCrash, TakesAMissingFirstSegmentForFlushed) {
  Files files = history_.files;
  const std::uint64_t first = parse_superblock(files.rbegin()->second)->first_sequence;
  files.erase(files.begin());
  const auto contents = read_files(files);
  ASSERT_TRUE(contents);
  EXPECT_TRUE(contents->damage.empty());
  EXPECT_EQ(contents->flushed, first - 1);
}

TEST_P(LogCrash, NamesWhatASegmentWithoutSuperblockHeld) {
  Files files = history_.files;
  files.begin()->second[100] ^= std::byte{1};
  auto contents = read_files(files);
  ASSERT_TRUE(contents);
  ASSERT_EQ(contents->damage.size(), 2U);
  EXPECT_NE(contents->damage[0].what.find("checksum"), std::string::npos);
  EXPECT_EQ(contents->damage[1].first_sequence, 1U);

  files = history_.files;
  files.rbegin()->second[100] ^= std::byte{1};
  contents = read_files(files);
  ASSERT_TRUE(contents);
  EXPECT_EQ(contents->damage.size(), 1U) << "nobody knows what was in the last one";

  files.begin()->second[100] ^= std::byte{1};
  EXPECT_FALSE(read_files(files)) << "not even the file is known";
}

TEST_P(LogCrash, RefusesALogOfAnotherVersion) {
  for (const std::uint32_t version : {0U, 1U, 3U}) {
    for (const auto& [name, content] : history_.files) {
      Files files = history_.files;
      store_little_endian(std::span(files[name]), 8, version);
      const auto contents = read_files(files);
      ASSERT_FALSE(contents);
      EXPECT_EQ(contents.error().kind, ErrorKind::unsupported);
      EXPECT_NE(contents.error().what.find("version " + std::to_string(version)),
                std::string::npos);
    }
  }
}

TEST_P(LogCrash, TakesNoSegmentOfAnotherLog) {
  MemoryLog other;
  {
    LogIdentity identity;
    identity.log = "another";
    LogWriter writer(other.open(), identity, {16 * KiB, 512},
                     *ResourceHolder::join(std::make_shared<Resource>("cache.local", GiB)),
                     [](const LogRecord&, const LogPlace&) {});
    const Content bytes(10);
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    ASSERT_TRUE(writer.append({&piece, 1}, 0, 1).status);
  }
  // Under a name of its own, and with a lower number than all that are left of the log.
  for (const bool is_first : {false, true}) {
    Files files = history_.files;
    if (is_first) files.erase(segment_name(0));
    const auto before = read_files(files);
    ASSERT_TRUE(before);
    files[segment_name(is_first ? 0 : 77)] = other.files().at(segment_name(0));
    const auto contents = read_files(files);
    ASSERT_TRUE(contents);
    EXPECT_EQ(contents->identity.log, before->identity.log);
    EXPECT_EQ(contents->complete.size(), before->complete.size());
    EXPECT_EQ(contents->damage.size(), before->damage.size() + 1) << "it is told";
  }
}

TEST_P(LogCrash, TellsWhereItCannotRead) {
  log_ = std::make_unique<MemoryLog>(history_.files);
  MemoryLog clean(history_.files);
  const auto count = std::make_shared<FaultPlan>();
  const auto whole = clean.open(count);
  ASSERT_TRUE(read_log(*whole, ReadDepth::payloads));
  int told = 0;
  for (std::int64_t nth = 0; nth < count->calls(StorageCall::read); ++nth) {
    const auto plan = std::make_shared<FaultPlan>(
        std::vector<Fault>{{.call = StorageCall::read, .nth = nth, .os_errno = EIO}});
    const auto store = log_->open(plan);
    const auto contents = read_log(*store, ReadDepth::payloads);
    EXPECT_EQ(plan->fired(), 1);
    if (!contents) continue;
    checked(history_, contents->complete);
    const auto last = history_.entries.rbegin()->first;
    const bool all = contents->complete.size() + contents->incomplete.size() ==
                     data_between(history_, 0, last).size();
    const bool said = !contents->damage.empty() || contents->torn;
    EXPECT_TRUE(all || said) << "read " << nth;
    told += said ? 1 : 0;
  }
  EXPECT_GT(told, 20);
}

/// Of two records. The superblock is the first write.
constexpr Bytes two_records = 1024;
std::unique_ptr<LogWriter> small_writer(std::unique_ptr<LogStore> log) {
  return writer_of(std::move(log), "log", 16 * KiB, std::make_shared<Resource>("cache.local", MiB),
                   nullptr);
}
std::shared_ptr<FaultPlan> plan_of(const Fault& fault) {
  return std::make_shared<FaultPlan>(std::vector<Fault>{fault});
}
Status append_two(LogWriter& writer) {
  const Content bytes(static_cast<std::size_t>(two_records), std::byte{1});
  const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return writer.append({&piece, 1}, 0, 1).status;
}

TEST(BrokenLog, HoldsWhatAWriteThatFailedMayHaveLeftInIt) {
  MemoryLog log;
  const auto writer =
      small_writer(log.open(plan_of({.call = StorageCall::write,
                                     .nth = 1,
                                     .os_errno = ENOSPC,
                                     .after_bytes = record_bytes(two_records / 2)})));
  EXPECT_FALSE(append_two(*writer));
  const auto store = log.open();
  const auto contents = read_log(*store, ReadDepth::payloads);
  ASSERT_TRUE(contents);
  EXPECT_EQ(contents->incomplete.size(), 1U) << "a recovery may be told to replay it";
  EXPECT_TRUE(writer->oldest_segment_end());
  ASSERT_TRUE(writer->destroy());
  EXPECT_FALSE(writer->oldest_segment_end());
}

/// All it held is in the file, and it could not say so.
TEST(BrokenLog, IsGoneOnceItIsDestroyedThoughPowerIsLost) {
  MemoryLog log;
  const auto writer =
      small_writer(log.open(plan_of({.call = StorageCall::write, .nth = 3, .os_errno = EIO})));
  ASSERT_TRUE(append_two(*writer));
  ASSERT_TRUE(writer->commit(1));
  ASSERT_TRUE(writer->sync());
  EXPECT_FALSE(writer->flushed(1, 2));
  ASSERT_TRUE(writer->destroy());
  std::mt19937_64 random(1);  // NOLINT(bugprone-random-generator-seed)
  const auto left = log.after_crash(CrashKind::all_lost, random);
  const auto contents = read_log(*left->open(), ReadDepth::payloads);
  ASSERT_FALSE(contents) << contents->complete.size() << " records";
  EXPECT_EQ(contents.error().kind, ErrorKind::no_such_file);
}

/// Names that are taken away come back with a crash of the node until that is durable.
class StoreThatMayNotSync final : public ForwardingLogStore {
 public:
  StoreThatMayNotSync(std::unique_ptr<LogStore> inner, const bool& fails)
      : ForwardingLogStore(std::move(inner)), fails_(fails) {}
  Status sync() override { return fails_ ? fail(EIO, "log") : ForwardingLogStore::sync(); }

 private:
  const bool& fails_;
};

TEST(BrokenLog, SaysThatItIsNotGoneWhereItMayComeBack) {
  MemoryLog log;
  bool fails = false;
  const auto writer = small_writer(std::make_unique<StoreThatMayNotSync>(
      log.open(plan_of({.call = StorageCall::write, .nth = 1, .os_errno = EIO})), fails));
  EXPECT_FALSE(append_two(*writer));
  fails = true;
  const Status destroyed = writer->destroy();
  ASSERT_FALSE(destroyed);
  EXPECT_EQ(destroyed.error().kind, ErrorKind::io);
}

INSTANTIATE_TEST_SUITE_P(Segments, LogCrash, ::testing::Bool(), [](const auto& param_info) {
  return param_info.param ? "Reused" : "New";
});

}  // namespace
}  // namespace forebay
