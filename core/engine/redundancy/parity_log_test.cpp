// Goal: a stripe is in a parity log as a whole or not at all, and whatever happens to one that is
// being written, those before it are as they were.
// Method: a group of logs and one parity log in memory; the parity log's device fails in the middle
// of each of its writes; crashes of its node; worked examples.

#include <gtest/gtest.h>

#include <cerrno>
#include <random>

#include "core/engine/redundancy/protection_rig.hpp"
#include "core/model/noise.hpp"

namespace forebay {
namespace {

using Content = ProtectionRig::Content;

/// A few steps of unequal length; the status of the last stripe.
Status play(ProtectionRig& rig, int stripes) {
  Status status;
  for (int i = 0; i < stripes && status; ++i) {
    for (std::size_t member = 0; member < rig.members.size(); ++member) {
      const auto seed = static_cast<std::uint64_t>(i) * 10 + member;
      if (member != 1 || i % 2 == 0) rig.append(member, i * 5000, noise(1000 + 900 * member, seed));
    }
    rig.commit();
    status = rig.protect();
  }
  return status;
}

ParityContents read(const MemoryLog& log, std::vector<std::unique_ptr<LogStore>>& stores) {
  stores.push_back(const_cast<MemoryLog&>(log).open());
  auto contents = read_parity_log(*stores.back(), ReadDepth::payloads);
  EXPECT_TRUE(contents) << to_string(contents.error());
  return contents ? std::move(*contents) : ParityContents{};
}

/// Parity and header of each stripe, to compare.
std::vector<std::pair<Content, Content>> flat(const ParityContents& contents) {
  std::vector<std::pair<Content, Content>> stripes;
  for (const StoredStripe& stored : contents.stripes) {
    Content piece(static_cast<std::size_t>(stored.stripe.length()));
    EXPECT_TRUE(read_piece(stored, 0, piece));
    stripes.emplace_back(encode_stripe(stored.stripe), std::move(piece));
  }
  return stripes;
}

TEST(ParityLog, HoldsTheSumOfWhatCame) {
  ProtectionRig rig(3, 1);
  ASSERT_TRUE(play(rig, 3));
  std::vector<std::unique_ptr<LogStore>> stores;
  const ParityContents contents = read(*rig.parities[0].log, stores);
  ASSERT_EQ(contents.stripes.size(), 3U);
  EXPECT_TRUE(contents.problems.empty());
  const Stripe& second = contents.stripes[1].stripe;
  EXPECT_EQ(second.generation, 2U);
  EXPECT_EQ(second.members[0].length(), 1000 + 3 * record_header_bytes);
  EXPECT_EQ(second.members[1].length(), record_header_bytes) << "its commit";
  EXPECT_EQ(second.length(), second.members[2].length());
  Content sum(static_cast<std::size_t>(second.length()));
  for (const StripeMember& member : second.members) {
    const auto files = rig.members[static_cast<std::size_t>(member.identity.rank)]->log->files();
    std::size_t at = 0;
    for (const StripeRange& range : member.ranges) {
      const Content& segment = files.at(segment_name(range.segment));
      for (Bytes byte = range.begin; byte < range.end; ++byte) {
        sum[at++] ^= segment[static_cast<std::size_t>(byte)];
      }
    }
  }
  EXPECT_EQ(flat(contents)[1].second, sum);
  Content part(100);
  ASSERT_TRUE(read_piece(contents.stripes[1], 1234, part));
  EXPECT_TRUE(std::equal(part.begin(), part.end(), sum.begin() + 1234));
  Content beyond(2);
  EXPECT_FALSE(read_piece(contents.stripes[1], second.length() - 1, beyond));
}

TEST(ParityLog, KeepsWhatWasThereWhereverAWriteOfItFails) {
  ProtectionRig whole(3, 1);
  ASSERT_TRUE(play(whole, 4));
  std::vector<std::unique_ptr<LogStore>> stores;
  const auto wanted = flat(read(*whole.parities[0].log, stores));
  ASSERT_EQ(wanted.size(), 4U);
  int failed = 0;
  for (std::int64_t nth = 0;; ++nth) {
    for (const Bytes after : {0, 10, 47, 48, 49, 700, 100'000}) {
      const auto plan = std::make_shared<FaultPlan>(std::vector<Fault>{{.call = StorageCall::write,
                                                                        .nth = nth,
                                                                        .os_errno = EIO,
                                                                        .after_bytes = after,
                                                                        .lasting = true}});
      ProtectionRig rig(3, 1, {plan});
      if (play(rig, 4)) {
        EXPECT_GT(failed, 50);
        return;
      }
      ++failed;
      stores.push_back(rig.parities[0].log->open());
      const auto contents = read_parity_log(*stores.back(), ReadDepth::payloads);
      if (!contents) {
        EXPECT_EQ(contents.error().kind, ErrorKind::no_such_file);
        EXPECT_EQ(rig.generation, 1U);
        continue;
      }
      EXPECT_TRUE(contents->problems.empty());
      const auto left = flat(*contents);
      ASSERT_LE(rig.generation - 1, left.size()) << "those that were said to be there";
      ASSERT_LE(left.size(), rig.generation);
      EXPECT_TRUE(std::equal(left.begin(), left.end(), wanted.begin()));
    }
  }
}

TEST(ParityLog, KeepsWhatWasSyncedWhenItsNodeLosesPower) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    ProtectionRig rig(3, 1);
    ASSERT_TRUE(play(rig, 3));
    ASSERT_TRUE(rig.parities[0].writer->sync());
    std::vector<std::unique_ptr<LogStore>> stores;
    const auto synced = flat(read(*rig.parities[0].log, stores));
    ASSERT_TRUE(play(rig, 2));
    std::mt19937_64 random(seed);
    const auto crashed = rig.parities[0].log->after_crash(
        seed % 2 == 0 ? CrashKind::all_lost : CrashKind::partly_lost, random);
    const auto left = flat(read(*crashed, stores));
    ASSERT_GE(left.size(), synced.size());
    EXPECT_TRUE(std::equal(synced.begin(), synced.end(), left.begin()));
  }
}

TEST(ParityLog, GoesOnAfterAStripeThatWasGivenUp) {
  ProtectionRig rig(2, 1);
  ASSERT_TRUE(play(rig, 2));
  ParityWriter& writer = *rig.parities[0].writer;
  Stripe stripe;
  stripe.group = "group";
  stripe.generation = ++rig.generation;
  StripeMember member;
  member.identity.log = "log-0";
  member.ranges = {{0, 1, 0, 32 * MiB, superblock_bytes, superblock_bytes + 3 * MiB}};
  stripe.members = {member};
  const auto failed = writer.append(
      stripe, [](std::size_t, Bytes, Bytes, Content&) -> Result<std::span<const std::byte>> {
        return tl::unexpected(Error{ErrorKind::io, 0, "the member died"});
      });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().what, "the member died");
  ASSERT_TRUE(play(rig, 1));
  std::vector<std::unique_ptr<LogStore>> stores;
  const ParityContents contents = read(*rig.parities[0].log, stores);
  ASSERT_EQ(contents.stripes.size(), 3U);
  EXPECT_EQ(contents.stripes[2].stripe.generation, 4U);
}

TEST(ParityLog, SaysThatItsCapacityIsExhausted) {
  ProtectionRig rig(2, 1, {}, 64 * KiB);
  Status status;
  int stripes = 0;
  for (; status && stripes < 100; ++stripes) status = play(rig, 1);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::no_space);
  std::vector<std::unique_ptr<LogStore>> stores;
  EXPECT_EQ(read(*rig.parities[0].log, stores).stripes.size(),
            static_cast<std::size_t>(stripes - 1));
}

TEST(ParityLog, GivesBackWhatIsReleased) {
  ProtectionRig rig(2, 1, {}, 96 * KiB);
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(play(rig, 1)) << i;
    for (std::size_t member = 0; member < 2; ++member) {
      rig.flush(member, rig.members[member]->writer->last_sequence());
    }
    ASSERT_TRUE(rig.release());
  }
  for (const auto& member : rig.members) {
    const auto files = member->log->files();
    EXPECT_LE(
        std::ranges::count_if(files, [](const auto& file) { return is_segment_name(file.first); }),
        2);
  }
}

TEST(ParityLog, IsNotTakenForALogOfTheFile) {
  ProtectionRig rig(2, 1);
  ASSERT_TRUE(play(rig, 1));
  const auto data = rig.members[0]->log->open();
  EXPECT_EQ(read_parity_log(*data, ReadDepth::headers).error().kind, ErrorKind::invalid_argument);
  const auto parity = rig.parities[0].log->open();
  EXPECT_EQ(read_log(*parity, ReadDepth::headers)->identity.purpose, LogPurpose::protection);
}

TEST(ParityLog, NamesAStripeThatIsDamaged) {
  ProtectionRig rig(2, 1);
  ASSERT_TRUE(play(rig, 3));
  auto files = rig.parities[0].log->files();
  files.at(segment_name(0))[static_cast<std::size_t>(superblock_bytes) + 100] ^= std::byte{1};
  std::vector<std::unique_ptr<LogStore>> stores;
  const MemoryLog damaged(files);
  const ParityContents contents = read(damaged, stores);
  ASSERT_EQ(contents.stripes.size(), 2U);
  EXPECT_EQ(contents.stripes[0].stripe.generation, 2U);
  EXPECT_FALSE(contents.problems.empty());
}

}  // namespace
}  // namespace forebay
