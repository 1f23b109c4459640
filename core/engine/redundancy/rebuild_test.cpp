// Goal: after the loss of as many nodes as there are parity pieces, every record that was protected
// is there again, in order, and none that the file has already; whatever the program was about when
// it died.
// Method: random groups, histories and losses, with a death at a random write of a parity log,
// against the list of what was written; then worked examples of what cannot be got back.

#include "core/engine/redundancy/rebuild.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cerrno>
#include <numeric>
#include <random>

#include "core/engine/redundancy/protection_rig.hpp"
#include "core/model/noise.hpp"

namespace forebay {
namespace {

using Content = ProtectionRig::Content;
using Written = ProtectionRig::Written;

std::vector<Written> data_of(const std::vector<LogEntry>& entries) {
  std::vector<Written> data;
  Content buffer;
  for (const LogEntry& entry : entries) {
    const auto bytes = verified_bytes(entry.place, entry.record.length, buffer);
    EXPECT_TRUE(bytes);
    data.push_back(
        {entry.record.sequence, entry.record.extent().offset, {bytes->begin(), bytes->end()}});
  }
  return data;
}

std::vector<Written> between(const std::vector<Written>& all, std::uint64_t after,
                             std::uint64_t up_to) {
  std::vector<Written> part;
  std::ranges::copy_if(all, std::back_inserter(part), [&](const Written& written) {
    return written.sequence > after && written.sequence <= up_to;
  });
  return part;
}

/// Draws as many different numbers below `limit`.
std::vector<std::size_t> draw_some(std::size_t limit, std::size_t count, std::mt19937_64& random) {
  std::vector<std::size_t> all(limit);
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::ranges::shuffle(all, random);
  all.resize(std::min(count, limit));
  return all;
}

RC_GTEST_PROP(RebuildProperty, gets_back_what_was_protected, ()) {
  const auto members = *rc::gen::inRange<std::size_t>(1, 6);
  const auto parities = *rc::gen::inRange<std::size_t>(1, 4);
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  // One of the parity logs may end in the middle of a write, and with it the program.
  std::vector<std::shared_ptr<FaultPlan>> plans(parities);
  if (*rc::gen::arbitrary<bool>()) {
    plans[random() % parities] = std::make_shared<FaultPlan>(
        std::vector<Fault>{{.call = StorageCall::write,
                            .nth = *rc::gen::inRange<std::int64_t>(0, 40),
                            .os_errno = EIO,
                            .after_bytes = *rc::gen::inRange<Bytes>(0, 6000),
                            .lasting = true}});
  }
  ProtectionRig rig(static_cast<int>(members), static_cast<int>(parities), plans);
  Status alive;
  const int steps = *rc::gen::inRange(0, 25);
  for (int step = 0; step < steps && alive; ++step) {
    const std::size_t member = random() % members;
    switch (*rc::gen::inRange(0, 8)) {
      case 0:
        alive = rig.release();
        break;
      case 1:
        rig.flush(member, random() % (rig.members[member]->writer->last_sequence() + 1));
        break;
      case 2:
        rig.commit();
        alive = rig.protect();
        break;
      default:
        rig.append(member, static_cast<Bytes>(random() % 100'000), noise(random() % 9000, step));
    }
  }
  const std::size_t losses = random() % (parities + 1);
  const auto gone = draw_some(members + parities, losses, random);
  std::vector<std::size_t> lost_members;
  std::vector<std::size_t> lost_parities;
  for (const std::size_t i : gone) {
    i < members ? lost_members.push_back(i) : lost_parities.push_back(i - members);
  }
  Wreck wreck(rig, lost_members, lost_parities);
  const auto report = wreck.rebuild_lost();
  RC_ASSERT(report.has_value());
  RC_ASSERT(report->missing.empty());
  for (const std::size_t i : lost_members) {
    const auto& member = *rig.members[i];
    const auto contents = read_log(*wreck.lost.at(member.name), ReadDepth::payloads);
    if (!contents) {
      RC_ASSERT(contents.error().kind == ErrorKind::no_such_file);
      RC_ASSERT(between(member.written, member.told, member.safe.sequence).empty());
      continue;
    }
    RC_ASSERT(contents->damage.empty());
    RC_ASSERT(contents->incomplete.empty());
    RC_ASSERT(contents->identity == member.writer->identity());
    // At least what was promised. The stripe that was being written may be all there as well.
    RC_ASSERT(contents->committed >= member.safe.sequence || contents->complete.empty());
    const std::uint64_t end = std::max(contents->committed, member.safe.sequence);
    RC_ASSERT(contents->flushed >= member.told);
    RC_ASSERT(contents->flushed <= member.flushed);
    RC_ASSERT(data_of(contents->complete) == between(member.written, contents->flushed, end));
  }
}

class RebuildTest : public ::testing::Test {
 protected:
  /// Three steps of all members.
  static void play(ProtectionRig& rig) {
    for (int step = 0; step < 3; ++step) {
      for (std::size_t i = 0; i < rig.members.size(); ++i) {
        rig.append(i, step * 10'000, noise(3000 + 500 * i, step * 10 + i));
      }
      rig.commit();
      ASSERT_TRUE(rig.protect());
    }
  }
};

TEST_F(RebuildTest, SaysHowManyPiecesAreMissing) {
  ProtectionRig rig(3, 1);
  play(rig);
  Wreck wreck(rig, {0, 2}, {});
  const auto report = wreck.rebuild_lost();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->stripes, 0);
  ASSERT_EQ(report->missing.size(), 3U);
  EXPECT_EQ(report->missing[0],
            "stripe 1 of group group cannot be solved: 2 logs are not there (log-0, log-2), and 1 "
            "parity pieces are");
}

/// All that the member wrote, and nothing that is damaged.
void expect_made_again(Wreck& wreck, const ProtectionRig::Member& member) {
  const auto contents = read_log(*wreck.lost.at(member.name), ReadDepth::payloads);
  ASSERT_TRUE(contents);
  EXPECT_TRUE(contents->damage.empty());
  EXPECT_EQ(data_of(contents->complete), member.written);
}

/// A bit is another one.
std::unique_ptr<MemoryLog> changed(const ProtectionRig::Member& member, std::size_t position) {
  auto files = member.log->files();
  files.at(segment_name(0)).at(position) ^= std::byte{1};
  return std::make_unique<MemoryLog>(files);
}

TEST_F(RebuildTest, NoticesThatALogThatIsLeftIsAnother) {
  ProtectionRig rig(3, 1);
  play(rig);
  Wreck wreck(rig, {0}, {});
  const auto log = changed(*rig.members[1], superblock_bytes + 5);
  wreck.left["log-1"] = wreck.keep(log->open());
  const auto report = wreck.rebuild_lost();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->stripes, 2);
  ASSERT_EQ(report->missing.size(), 1U);
  EXPECT_NE(report->missing[0].find("log-1 does not hold what it did"), std::string::npos);
  const auto contents = read_log(*wreck.lost.at("log-0"), ReadDepth::payloads);
  ASSERT_TRUE(contents);
  EXPECT_FALSE(contents->damage.empty()) << "what is missing is not passed over";
}

TEST_F(RebuildTest, TakesALogThatIsLeftForLostWhereItDoesNotHoldWhatItDid) {
  ProtectionRig rig(3, 2);
  play(rig);
  Wreck wreck(rig, {0}, {});
  const auto log = changed(*rig.members[1], superblock_bytes + 5);
  wreck.left["log-1"] = wreck.keep(log->open());
  const auto report = wreck.rebuild_lost();
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->missing.empty());
  expect_made_again(wreck, *rig.members[0]);
}

TEST_F(RebuildTest, MakesADamagedLogAgain) {
  ProtectionRig rig(3, 1);
  play(rig);
  Wreck wreck(rig, {}, {});
  const auto log = changed(*rig.members[1], superblock_bytes + 5);
  wreck.left["log-1"] = wreck.keep(log->open());
  MemoryLog remade;
  wreck.lost["log-1"] = wreck.keep(remade.open());
  const auto report = wreck.rebuild_lost();
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->missing.empty());
  expect_made_again(wreck, *rig.members[1]);
}

TEST_F(RebuildTest, MakesTheSameSegments) {
  ProtectionRig rig(2, 2);
  play(rig);
  Wreck wreck(rig, {0, 1}, {});
  const auto report = wreck.rebuild_lost();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->stripes, 3);
  for (const auto& member : rig.members) {
    const auto before = member->log->files();
    int segments = 0;
    for (const auto& [name, content] : wreck.logs.at(member->name)->files()) {
      if (!is_segment_name(name)) continue;
      ++segments;
      EXPECT_TRUE(std::equal(content.begin(), content.end(), before.at(name).begin())) << name;
    }
    EXPECT_GT(segments, 0);
  }
}

TEST_F(RebuildTest, LeavesOutWhatTheFileHas) {
  ProtectionRig rig(2, 1);
  play(rig);
  for (std::size_t i = 0; i < 2; ++i) rig.flush(i, rig.members[i]->writer->last_sequence());
  ASSERT_TRUE(rig.protect(true));
  Wreck wreck(rig, {0}, {});
  EXPECT_TRUE(protected_logs(wreck.parity).at("log-0").clean());
  const auto report = wreck.rebuild_lost();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->bytes, 0);
}

TEST_F(RebuildTest, TakesAPartnersCopyAsItIs) {
  ProtectionRig rig(1, 1);
  play(rig);
  Wreck wreck(rig, {0}, {});
  const auto report = wreck.rebuild_lost();
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->missing.empty());
  expect_made_again(wreck, *rig.members[0]);
}

TEST_F(RebuildTest, SaysWhatTheStoreOfTheNewLogSays) {
  ProtectionRig rig(2, 1);
  play(rig);
  Wreck wreck(rig, {0}, {});
  const auto plan = std::make_shared<FaultPlan>(
      std::vector<Fault>{{.call = StorageCall::allocate, .nth = 0, .os_errno = ENOSPC}});
  MemoryLog full;
  wreck.lost["log-0"] = wreck.keep(full.open(plan));
  EXPECT_EQ(wreck.rebuild_lost().error().kind, ErrorKind::no_space);
}

}  // namespace
}  // namespace forebay
