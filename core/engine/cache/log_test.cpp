// Goal: what is appended to a log is read back from it, in order, in segments that come and go with
// the capacity; and a log that fails says so and stays readable.
// Method: random histories against the list of what was written, then worked examples, on files in
// memory.

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "core/engine/cache/earlier_marks.hpp"
#include "core/engine/cache/forwarding_log_store.hpp"
#include "core/engine/cache/log_contents.hpp"
#include "core/engine/cache/log_writer.hpp"
#include "core/engine/cache/memory_log_store.hpp"
#include "core/engine/cache/replay.hpp"
#include "core/engine/cache/segment_reserve.hpp"
#include "core/storage/forwarding_file.hpp"
#include "core/storage/piece_walk.hpp"

namespace forebay {
namespace {

using Content = std::vector<std::byte>;

LogIdentity some_identity() {
  LogIdentity identity;
  identity.log = "log";
  identity.file = {"/scratch/a", 1, 2};
  identity.rank = 3;
  return identity;
}

struct Write {
  std::uint64_t epoch = 0;
  Bytes offset = 0;
  Content bytes;
};

Content counting(Bytes length, int seed) {
  Content content(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < content.size(); ++i) {
    content[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(seed) * 31 + i / 251);
  }
  return content;
}

class Rig {
 public:
  explicit Rig(LogSettings settings = {64 * KiB, 4 * KiB, Toggle::disable}, Bytes capacity = GiB,
               std::shared_ptr<FaultPlan> plan = nullptr)
      : resource(std::make_shared<Resource>("cache.local", capacity)),
        writer(std::make_unique<LogWriter>(log->open(std::move(plan)), some_identity(), settings,
                                           *ResourceHolder::join(resource),
                                           [this](const LogRecord& record, const LogPlace& place) {
                                             placed.push_back({record, place});
                                           })) {}

  LogWriter::Outcome append(const Write& write) {
    const iovec piece{const_cast<std::byte*>(write.bytes.data()), write.bytes.size()};
    return writer->append({&piece, 1}, write.offset, write.epoch);
  }

  LogContents read(ReadDepth depth = ReadDepth::payloads) {
    store = log->open();
    auto contents = read_log(*store, depth);
    EXPECT_TRUE(contents) << to_string(contents.error());
    return std::move(*contents);
  }

  std::shared_ptr<MemoryLog> log = std::make_shared<MemoryLog>();
  std::unique_ptr<LogStore> store;
  std::shared_ptr<Resource> resource;
  std::vector<LogEntry> placed;
  std::unique_ptr<LogWriter> writer;
};

/// What entries write, laid end to end with where each goes.
struct Flat {
  std::vector<Bytes> offsets;
  Content bytes;
  bool operator==(const Flat&) const = default;
};

void flatten(Flat& flat, Bytes offset, std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    flat.offsets.push_back(offset + static_cast<Bytes>(i));
  }
  flat.bytes.insert(flat.bytes.end(), bytes.begin(), bytes.end());
}

Flat flat_entries(const std::vector<LogEntry>& entries) {
  Flat flat;
  Content buffer;
  for (const LogEntry& entry : entries) {
    const auto bytes = verified_bytes(entry.place, entry.record.length, buffer);
    EXPECT_TRUE(bytes);
    flatten(flat, entry.record.extent().offset, *bytes);
  }
  return flat;
}

Flat flat_writes(const std::vector<Write>& writes) {
  Flat flat;
  for (const Write& write : writes) flatten(flat, write.offset, write.bytes);
  return flat;
}

RC_GTEST_PROP(LogProperty, is_read_back_as_it_was_written, ()) {
  Rig rig({*rc::gen::inRange<Bytes>(16, 64) * KiB, *rc::gen::inRange<Bytes>(1, 15'000),
           *rc::gen::element(Toggle::automatic, Toggle::enable, Toggle::disable), nullptr,
           *rc::gen::arbitrary<bool>()});
  std::vector<Write> whole;
  std::vector<Write> open;
  std::uint64_t epoch = 1;
  const int steps = *rc::gen::inRange(0, 30);
  for (int i = 0; i < steps; ++i) {
    if (*rc::gen::inRange(0, 4) == 0) {
      RC_ASSERT(rig.writer->commit(epoch).has_value());
      whole.insert(whole.end(), open.begin(), open.end());
      open.clear();
      epoch += *rc::gen::inRange<std::uint64_t>(0, 3);
      continue;
    }
    // In pieces, some of them empty.
    Write write{epoch, *rc::gen::inRange<Bytes>(0, 1 << 20),
                counting(*rc::gen::inRange<Bytes>(0, 9000), i)};
    std::vector<iovec> pieces;
    for (std::size_t at = 0; at < write.bytes.size();) {
      const auto step =
          std::min<std::size_t>(*rc::gen::inRange<std::size_t>(0, 4000), write.bytes.size() - at);
      pieces.push_back({write.bytes.data() + at, step});
      at += step;
    }
    const auto outcome = rig.writer->append(pieces, write.offset, epoch);
    RC_ASSERT(outcome.status.has_value());
    RC_ASSERT(outcome.logged == static_cast<Bytes>(write.bytes.size()));
    open.push_back(std::move(write));
  }
  RC_ASSERT(flat_entries(rig.placed).bytes.size() ==
            flat_writes(whole).bytes.size() + flat_writes(open).bytes.size());
  if (rig.placed.empty()) return;
  const LogContents contents = rig.read();
  RC_ASSERT(contents.damage.empty());
  RC_ASSERT(!contents.torn);
  RC_ASSERT(flat_entries(contents.complete) == flat_writes(whole));
  RC_ASSERT(flat_entries(contents.incomplete) == flat_writes(open));
  RC_ASSERT(contents.identity == some_identity());
  std::uint64_t before = 0;
  for (const LogEntry& entry : contents.complete) {
    RC_ASSERT(entry.record.sequence > before);
    before = entry.record.sequence;
  }
}

TEST(Log, CutsPayloadsWhereStripesEnd) {
  Rig rig;
  ASSERT_TRUE(rig.append({1, 4 * KiB - 10, counting(9000, 1)}).status);
  ASSERT_EQ(rig.placed.size(), 4U);
  EXPECT_EQ(rig.placed[0].record.extent(), (Extent{4 * KiB - 10, 10}));
  EXPECT_EQ(rig.placed[1].record.extent(), (Extent{4 * KiB, 4 * KiB}));
  EXPECT_EQ(rig.placed[2].record.extent(), (Extent{8 * KiB, 4 * KiB}));
  EXPECT_EQ(rig.placed[3].record.extent(), (Extent{12 * KiB, 9000 - 10 - 8 * KiB}));
}

TEST(Log, TakesLessThanOnePercentMoreThanItsData) {
  Rig rig({32 * MiB, 1 * MiB, Toggle::disable});
  const Content data = counting(64 * KiB, 1);
  for (int i = 0; i < 600; ++i) {
    ASSERT_TRUE(rig.append({static_cast<std::uint64_t>(i), i * 64 * KiB, data}).status);
    ASSERT_TRUE(rig.writer->commit(static_cast<std::uint64_t>(i)));
  }
  EXPECT_EQ(rig.writer->payload_bytes(), 600 * 64 * KiB);
  EXPECT_LT(rig.writer->bytes(), rig.writer->payload_bytes() * 1003 / 1000);

  // Segments are cut off when a payload does not fit any more: that is overhead, too.
  Rig small({32 * MiB, 1 * MiB, Toggle::disable});
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(small.append({1, i * 8 * KiB, {data.begin(), data.begin() + 8 * KiB}}).status);
  }
  EXPECT_LE(small.writer->bytes(), small.writer->payload_bytes() * 101 / 100);
}

TEST(Log, TakesLessRoomForWhatShrinks) {
  Rig rig({1 * MiB, 16 * KiB, Toggle::enable});
  const Write shrinks{1, 5000, Content(100'000, std::byte{3})};
  const Write small{1, 200'000, Content(3000, std::byte{4})};
  ASSERT_TRUE(rig.append(shrinks).status);
  EXPECT_LT(rig.writer->bytes(), superblock_bytes + 5000);
  EXPECT_EQ(rig.writer->payload_bytes(), 100'000);
  EXPECT_EQ(rig.placed[0].record.codec, PayloadCodec::lz4);
  ASSERT_TRUE(rig.append(small).status);
  EXPECT_EQ(rig.placed.back().record.codec, PayloadCodec::none) << "too little to be worth it";
  ASSERT_TRUE(rig.writer->commit(1));
  const LogContents contents = rig.read();
  EXPECT_TRUE(contents.damage.empty());
  EXPECT_EQ(contents.complete_bytes(), 103'000);
  EXPECT_EQ(flat_entries(contents.complete), flat_writes({shrinks, small}));
  // A part of a payload, which is expanded for it.
  Content buffer;
  const auto part = verified_bytes(contents.complete[1].place.from(700), 50, buffer);
  ASSERT_TRUE(part);
  EXPECT_EQ(Content(part->begin(), part->end()), Content(50, std::byte{3}));
}

TEST(Log, TellsOfACompressedPayloadThatDoesNotExpand) {
  Rig rig({1 * MiB, 16 * KiB, Toggle::enable});
  ASSERT_TRUE(rig.append({1, 0, Content(16 * KiB, std::byte{3})}).status);
  ASSERT_TRUE(rig.writer->commit(1));
  // Another length that the header vouches for: only a faulty writer does that.
  LogRecord record = rig.placed[0].record;
  --record.length;
  auto files = rig.log->files();
  Content& segment = files.at(segment_name(0));
  const auto salt = parse_superblock(segment)->salt;
  std::ranges::copy(encode_record(record, salt), segment.begin() + superblock_bytes);
  MemoryLog damaged(files);
  const auto store = damaged.open();
  const auto contents = read_log(*store, ReadDepth::payloads);
  ASSERT_TRUE(contents);
  ASSERT_EQ(contents->damage.size(), 1U);
  EXPECT_EQ(contents->damage[0].first_sequence, 1U);
  const auto hasty = read_log(*store, ReadDepth::headers);
  ASSERT_TRUE(hasty);
  Content buffer;
  const LogEntry& entry = hasty->complete.at(0);
  EXPECT_EQ(verified_bytes(entry.place, entry.record.length, buffer).error().kind, ErrorKind::io);
  Content whole(entry.record.length);
  EXPECT_EQ(read_verified(entry.place, whole, buffer).error().kind, ErrorKind::io);
}

TEST(Log, GivesSegmentsBackOnceTheyAreFlushed) {
  Rig rig({16 * KiB, 1 * KiB}, 4 * 16 * KiB);
  std::uint64_t last = 0;
  LogWriter::Outcome outcome;
  int writes = 0;
  while (!outcome.full) {
    outcome = rig.append({1, writes * KiB, counting(1 * KiB, writes)});
    ASSERT_TRUE(outcome.status);
    if (!outcome.full) ++writes;
  }
  EXPECT_EQ(writes, 4 * 6) << "16 KiB less superblock and reserve hold 6 records of 1064 bytes";
  EXPECT_EQ(outcome.logged, 0);
  EXPECT_EQ(rig.resource->free(), 0);

  last = *rig.writer->oldest_segment_end();
  EXPECT_EQ(last, 6U);
  rig.placed.clear();  // Nobody reads the segment any more.
  ASSERT_TRUE(rig.writer->flushed(1, last));
  EXPECT_EQ(rig.read().flushed, last);
  EXPECT_EQ(rig.writer->oldest_segment_end(), 12U);
  EXPECT_TRUE(rig.append({1, 0, counting(1 * KiB, 1)}).status);
  EXPECT_EQ(rig.resource->free(), 0) << "the same file serves again";
  EXPECT_EQ(rig.read().incomplete_bytes(), 19 * KiB);

  rig.placed.clear();
  ASSERT_TRUE(rig.writer->flushed(1, rig.writer->last_sequence()));
  EXPECT_EQ(rig.writer->oldest_segment_end(), std::nullopt);
  EXPECT_GE(rig.resource->free(), 2 * 16 * KiB);
  const auto store = rig.log->open();
  EXPECT_EQ(read_log(*store, ReadDepth::payloads).error().kind, ErrorKind::no_such_file)
      << "the last segment was worn, and given back too";
}

TEST(Log, TellsWhereWhatCameSinceAPointLies) {
  Rig rig({16 * KiB, 1 * KiB});
  EXPECT_TRUE(rig.writer->grown({}).runs.empty());
  ASSERT_TRUE(rig.append({1, 0, counting(KiB, 1)}).status);
  const LogPoint first = rig.writer->grown({}).end;
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(rig.append({1, i * KiB, counting(KiB, i)}).status);
  ASSERT_TRUE(rig.writer->commit(1));

  const LogGrowth growth = rig.writer->grown(first);
  EXPECT_EQ(growth.end.sequence, 10U);
  EXPECT_EQ(growth.end.data_sequence, 9U);
  EXPECT_TRUE(rig.writer->grown(growth.end).runs.empty());
  const auto& runs = growth.runs;
  ASSERT_EQ(runs.size(), 2U) << "6 records a segment";
  EXPECT_EQ(runs[0].begin, superblock_bytes + record_bytes(KiB));
  EXPECT_EQ(runs[0].length(), 5 * record_bytes(KiB));
  EXPECT_EQ(runs[1].begin, superblock_bytes);
  EXPECT_EQ(runs[1].length(), 3 * record_bytes(KiB) + record_header_bytes);
  EXPECT_EQ(runs[1].segment->superblock().first_sequence, 7U);
  EXPECT_EQ(growth.length(), runs[0].length() + runs[1].length());
  EXPECT_EQ(rig.writer->length_since(first), growth.length());

  ASSERT_TRUE(rig.writer->flushed(1, 6));
  const LogGrowth rest = rig.writer->grown({});
  EXPECT_EQ(rest.flushed, 6U);
  EXPECT_EQ(rig.writer->grown(growth.end).flushed, 6U);
  ASSERT_EQ(rest.runs.size(), 1U) << "what is in the file needs no protection";
  EXPECT_EQ(rest.runs[0].segment, runs[1].segment);
  ASSERT_TRUE(rig.writer->flushed(1, 9));
  EXPECT_EQ(rig.writer->grown({}).flushed, rig.writer->last_sequence()) << "with the marks behind";
}

TEST(Log, KeepsWhatOthersAreRebuiltFromUntilItIsReleased) {
  Rig rig({16 * KiB, 1 * KiB, Toggle::disable});
  for (int i = 0; i < 18; ++i) ASSERT_TRUE(rig.append({1, i * KiB, counting(KiB, i)}).status);
  const LogPoint told = rig.writer->grown({}).end;
  for (int i = 18; i < 30; ++i) ASSERT_TRUE(rig.append({1, i * KiB, counting(KiB, i)}).status);
  rig.placed.clear();
  const auto segments = [&] {
    const auto files = rig.log->files();
    return std::ranges::count_if(files, [](const auto& f) { return is_segment_name(f.first); });
  };
  EXPECT_EQ(segments(), 5);
  ASSERT_TRUE(rig.writer->flushed(1, 12));
  EXPECT_EQ(segments(), 5);
  EXPECT_EQ(rig.writer->oldest_segment_end(), 18U) << "what a flush would still be good for";
  EXPECT_EQ(rig.read().flushed, 12U);
  ASSERT_TRUE(rig.writer->release(7));
  EXPECT_EQ(segments(), 4);
  ASSERT_TRUE(rig.writer->release(18));
  EXPECT_EQ(segments(), 3) << "no more than is flushed";
  EXPECT_EQ(rig.writer->grown(told).runs.size(), 2U);
}

TEST(Log, GivesBackWhatIsFlushedBeforeOthersKnowOfIt) {
  Rig rig({16 * KiB, 1 * KiB, Toggle::disable});
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(rig.append({1, i * KiB, counting(KiB, i)}).status);
  const LogPoint told = rig.writer->grown({}).end;
  for (int i = 6; i < 20; ++i) ASSERT_TRUE(rig.append({1, i * KiB, counting(KiB, i)}).status);
  ASSERT_TRUE(rig.writer->commit(1));
  rig.placed.clear();
  ASSERT_TRUE(rig.writer->flushed(1, 18));
  const auto runs = rig.writer->grown(told).runs;
  ASSERT_EQ(runs.size(), 1U) << "of four segments the first is held, and the last not flushed";
  EXPECT_EQ(runs[0].segment->superblock().first_sequence, 19U);
  const LogContents contents = rig.read();
  EXPECT_TRUE(contents.damage.empty());
  EXPECT_EQ(contents.flushed, 18U);
  EXPECT_EQ(contents.complete_bytes(), 2 * KiB);
}

TEST(Log, GoesOnInTheSameSegmentAfterAFlush) {
  Rig rig;
  for (std::uint64_t epoch = 1; epoch <= 5; ++epoch) {
    ASSERT_TRUE(rig.append({epoch, 0, counting(100, 1)}).status);
    ASSERT_TRUE(rig.writer->commit(epoch));
    ASSERT_TRUE(rig.writer->flushed(epoch, rig.writer->last_sequence()));
  }
  ASSERT_TRUE(rig.append({6, 7, counting(10, 2)}).status);
  const LogContents contents = rig.read();
  EXPECT_TRUE(contents.complete.empty());
  EXPECT_EQ(contents.flushed, 14U);
  EXPECT_EQ(flat_entries(contents.incomplete), flat_writes({{6, 7, counting(10, 2)}}));
  const auto files = rig.log->files();  // Beside blanks.
  EXPECT_EQ(std::ranges::count_if(files, [](const auto& f) { return is_segment_name(f.first); }),
            1);
}

/// As earlier versions said that they cut the file, and then that it was done.
TEST(Log, MaySayThatTheFileWasCut) {
  Rig rig;
  ASSERT_TRUE(rig.append({1, 0, counting(100, 1)}).status);
  const auto cut = rig.writer->commit(1);
  ASSERT_TRUE(rig.writer->commit(2));
  ASSERT_TRUE(rig.append({3, 80, counting(10, 2)}).status);
  const auto done = rig.writer->commit(3);
  ASSERT_TRUE(rig.writer->commit(3));
  auto files = rig.log->files();
  const auto after_replay = [&files] {
    MemoryLog log(files);
    const auto store = log.open();
    const LogContents contents = *read_log(*store, ReadDepth::payloads);
    EXPECT_TRUE(contents.damage.empty());
    const auto file =
        std::make_shared<VolatileInode>(Content(200, std::byte{9}), StripeLayout{}, "a file");
    EXPECT_TRUE(replay(*open_volatile_file(file), {&contents, 1}, {}));
    return file->content();
  };
  replace_mark(files, {.kind = RecordKind::truncate, .epoch = 2, .sequence = *cut, .value = 50});
  Content expected = counting(100, 1);
  std::ranges::copy(counting(10, 2), expected.begin() + 80);
  std::fill(expected.begin() + 50, expected.begin() + 80, std::byte{0});
  expected.resize(90);
  EXPECT_EQ(after_replay(), expected);
  replace_mark(files,
               {.kind = RecordKind::truncated, .epoch = 3, .sequence = *done, .value = *cut});
  std::fill(expected.begin() + 50, expected.begin() + 80, std::byte{9});
  expected.resize(200, std::byte{9});
  EXPECT_EQ(after_replay(), expected) << "what is behind the cut was written since";
}

TEST(Log, NeedsNoCommitWhereItHoldsNothing) {
  Rig rig;
  EXPECT_EQ(rig.writer->commit(1).value(), 0U);
  EXPECT_TRUE(rig.writer->flushed(1, 0));
  const auto store = rig.log->open();
  EXPECT_EQ(read_log(*store, ReadDepth::payloads).error().kind, ErrorKind::no_such_file);
}

TEST(Log, IsFullWhereTheDeviceIsAndItHasSegmentsToFlush) {
  const auto plan = std::make_shared<FaultPlan>(std::vector<Fault>{
      {.call = StorageCall::allocate, .nth = 2, .os_errno = ENOSPC, .lasting = true}});
  Rig rig({16 * KiB, 1 * KiB}, GiB, plan);
  LogWriter::Outcome outcome;
  for (int i = 0; i < 100 && outcome.status && !outcome.full; ++i) {
    outcome = rig.append({1, i * KiB, counting(KiB, i)});
  }
  EXPECT_TRUE(outcome.full);
  EXPECT_TRUE(outcome.status);
  rig.placed.clear();
  ASSERT_TRUE(rig.writer->flushed(1, *rig.writer->oldest_segment_end()));
  EXPECT_FALSE(rig.append({1, 0, counting(KiB, 1)}).full);
}

TEST(Log, MakesSegmentsWhenTheyAreNeededWhereNoThreadMakesThemAhead) {
  Rig rig({16 * KiB, 1 * KiB, Toggle::disable, nullptr, /*ahead=*/false});
  const auto holds_blank = [&] {
    return std::ranges::any_of(
        rig.log->files(), [](const auto& file) { return file.first.starts_with(blank_prefix); });
  };
  rig.writer->prepare();
  EXPECT_FALSE(holds_blank());
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(rig.append({1, i * KiB, counting(KiB, i)}).status);
    EXPECT_FALSE(holds_blank());
  }
}

TEST(Log, FailsAtOnceWhereTheDeviceHasNoRoomForItAtAll) {
  const auto plan = std::make_shared<FaultPlan>(std::vector<Fault>{
      {.call = StorageCall::allocate, .nth = 0, .os_errno = ENOSPC, .lasting = true}});
  Rig rig({16 * KiB, 1 * KiB}, GiB, plan);
  const auto outcome = rig.append({1, 0, counting(KiB, 1)});
  EXPECT_FALSE(outcome.full);
  EXPECT_EQ(outcome.status.error().kind, ErrorKind::no_space);
  EXPECT_EQ(rig.resource->free(), GiB);
}

TEST(Log, TakesNothingMoreOnceAWriteFailed) {
  // The superblock is the first write.
  const auto plan = std::make_shared<FaultPlan>(std::vector<Fault>{
      {.call = StorageCall::write, .nth = 2, .os_errno = EIO, .after_bytes = 700}});
  Rig rig({64 * KiB, 4 * KiB, Toggle::disable}, GiB, plan);
  ASSERT_TRUE(rig.append({1, 0, counting(1000, 1)}).status);
  const auto failed = rig.append({1, 1000, counting(1000, 2)});
  EXPECT_EQ(failed.status.error().kind, ErrorKind::io);
  EXPECT_EQ(failed.logged, 0);
  EXPECT_TRUE(rig.writer->broken());
  EXPECT_FALSE(rig.append({1, 0, counting(10, 1)}).status);
  EXPECT_FALSE(rig.writer->commit(1));
  const LogContents contents = rig.read();
  EXPECT_TRUE(contents.torn);
  EXPECT_EQ(flat_entries(contents.incomplete), flat_writes({{1, 0, counting(1000, 1)}}));
}

TEST(Log, IsGoneWhenItIsDestroyed) {
  Rig rig;
  ASSERT_TRUE(rig.append({1, 0, counting(1000, 1)}).status);
  ASSERT_TRUE(rig.writer->destroy());
  EXPECT_TRUE(rig.log->destroyed());
  EXPECT_FALSE(rig.append({1, 0, counting(1000, 1)}).status);
}

TEST(Log, IsReadBesideOthersAsAlone) {
  // One of many segments, one whose last payload is damaged, and one that holds nothing.
  Rig many({16 * KiB, 1 * KiB});
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(many.append({1, i * KiB, counting(KiB, i)}).status);
  ASSERT_TRUE(many.writer->commit(1));
  Rig whole;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(whole.append({1, i * KiB, counting(KiB, i)}).status);
  ASSERT_TRUE(whole.writer->commit(1));
  auto files = whole.log->files();
  const Bytes last = superblock_bytes + 2 * record_bytes(KiB) + record_header_bytes;
  files.at(segment_name(0)).at(static_cast<std::size_t>(last)) ^= std::byte{1};
  MemoryLog damaged(files);
  MemoryLog empty;
  const std::array opened = {many.log->open(), damaged.open(), empty.open()};
  std::vector<LogParts> logs;
  for (const auto& store : opened) logs.push_back({store.get()});

  Bytes told = 0;
  const auto together = read_logs(logs, ReadDepth::payloads, 4, [&](Bytes more) { told += more; });
  ASSERT_EQ(together.size(), 3U);
  EXPECT_EQ(together[2].error().kind, ErrorKind::no_such_file);
  Bytes told_alone = 0;
  for (std::size_t log = 0; log < 2; ++log) {
    const auto alone =
        read_log(*opened[log], ReadDepth::payloads, [&](Bytes more) { told_alone += more; });
    ASSERT_TRUE(alone && together[log]);
    EXPECT_EQ(flat_entries(together[log]->complete), flat_entries(alone->complete));
    EXPECT_EQ(together[log]->damage.size(), alone->damage.size());
    EXPECT_EQ(together[log]->last_sequence, alone->last_sequence);
  }
  EXPECT_EQ(told, told_alone);
  EXPECT_EQ(together[0]->complete.size(), 50U);
  EXPECT_EQ(together[1]->damage.size(), 1U);
}

TEST(Log, IsReadWithWhatCouldBeMadeAgainOfIt) {
  Rig rig({16 * KiB, 1 * KiB});
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(rig.append({1, i * KiB, counting(KiB, i)}).status);
  ASSERT_TRUE(rig.writer->commit(1));
  const LogContents whole = rig.read();
  const auto files = rig.log->files();
  auto damaged_files = files;
  damaged_files.at(segment_name(0)).at(superblock_bytes + record_header_bytes) ^= std::byte{1};
  damaged_files.at(segment_name(1)).at(30) ^= std::byte{1};
  std::ranges::fill(damaged_files.at(segment_name(2)), std::byte{0});
  MemoryLog damaged(damaged_files);
  const auto store = damaged.open();
  EXPECT_EQ(read_log(*store, ReadDepth::payloads)->damage.size(), 4U) << "a gap is damage, too";
  MemoryLog remade({{segment_name(0), files.at(segment_name(0))},
                    {segment_name(1), files.at(segment_name(1))},
                    {segment_name(2), files.at(segment_name(2))}});
  const auto remade_store = remade.open();
  const LogParts parts{store.get(), remade_store.get()};
  const auto together = read_logs({&parts, 1}, ReadDepth::payloads, 1);
  ASSERT_TRUE(together[0]);
  EXPECT_TRUE(together[0]->damage.empty());
  EXPECT_EQ(flat_entries(together[0]->complete), flat_entries(whole.complete));
}

/// What is asked for before it is read, of all files of one store; the superblocks aside.
struct Asked {
  Bytes bytes = 0;
  Bytes unasked_reads = 0;
};

class AskedFile final : public ForwardingFile {
 public:
  AskedFile(std::unique_ptr<StorageFile> inner, Asked& asked)
      : ForwardingFile(std::move(inner)), asked_(asked) {}
  void read_ahead(Extent extent) override {
    EXPECT_EQ(extent.offset, end_) << "nothing twice";
    end_ = extent.end();
    asked_.bytes += extent.length;
  }
  Result<Bytes> read_pieces(std::span<const iovec> pieces, Bytes offset) override {
    if (offset + total_bytes(pieces) > end_) ++asked_.unasked_reads;
    return ForwardingFile::read_pieces(pieces, offset);
  }

 private:
  Asked& asked_;
  Bytes end_ = superblock_bytes;
};

class AskedStore final : public ForwardingLogStore {
 public:
  AskedStore(std::unique_ptr<LogStore> inner, Asked& asked)
      : ForwardingLogStore(std::move(inner)), asked_(asked) {}
  Result<std::unique_ptr<StorageFile>> open(const std::string& name) override {
    auto file = ForwardingLogStore::open(name);
    if (!file) return file;
    return std::make_unique<AskedFile>(std::move(*file), asked_);
  }

 private:
  Asked& asked_;
};

TEST(Log, IsAskedOfTheDeviceBeforeItIsRead) {
  Rig rig({24 * MiB, 2 * MiB, Toggle::disable});
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(rig.append({1, i * MiB, counting(MiB + i, i)}).status);
  }
  ASSERT_TRUE(rig.writer->commit(1));
  Asked asked;
  AskedStore store(rig.log->open(), asked);
  EXPECT_EQ(read_log(store, ReadDepth::payloads)->complete_bytes(), 9 * MiB + 36);
  EXPECT_EQ(asked.unasked_reads, 0);
  EXPECT_GT(asked.bytes, 9 * MiB);
  Asked hasty;
  AskedStore headers(rig.log->open(), hasty);
  ASSERT_TRUE(read_log(headers, ReadDepth::headers));
  EXPECT_EQ(hasty.bytes, 0) << "most of it is never read";
}

TEST(Log, IsWrittenByManyThreadsInOneOrder) {
  Rig rig({64 * KiB, 4 * KiB});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&rig, t] {
      for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE(rig.append({1, (t * 50 + i) * 3000, counting(3000, t * 50 + i)}).status);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_TRUE(rig.writer->commit(1));
  const LogContents contents = rig.read();
  EXPECT_EQ(contents.complete_bytes(), 4 * 50 * 3000);
  EXPECT_EQ(flat_entries(contents.complete), flat_entries(rig.placed));
}

}  // namespace
}  // namespace forebay
