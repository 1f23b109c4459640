// Goal: a log is given up unread only where nothing of it can ever have been durable.
// Method: a log in memory, as its writer left it, cut short at each byte, and with traces of more.

#include "core/engine/cache/begun_log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/engine/cache/flush_mark.hpp"
#include "core/engine/cache/log_segment.hpp"
#include "core/engine/cache/memory_log_store.hpp"
#include "core/engine/cache/sealed_block.hpp"
#include "core/engine/cache/superblock.hpp"

namespace forebay {
namespace {

using Content = std::vector<std::byte>;

constexpr std::size_t segment_bytes = 65'536;

/// A segment that holds nothing but a superblock, and how long that is.
struct Begun {
  Content segment;
  std::size_t end = 0;
};

Begun begun_segment() {
  Superblock superblock;
  superblock.identity.log = "log";
  superblock.identity.file.path = "/scratch/data";
  superblock.identity.layout.stripe_size = 16 * MiB;  // Its last bytes are zeros.
  superblock.first_sequence = 1;
  superblock.segment_bytes = segment_bytes;
  superblock.salt = 7;
  Begun begun{encode_superblock(superblock).value()};
  const auto last = std::find_if(begun.segment.rbegin(), begun.segment.rend(),
                                 [](std::byte byte) { return byte != std::byte{0}; });
  begun.end = static_cast<std::size_t>(begun.segment.rend() - last);
  begun.segment.resize(segment_bytes);
  return begun;
}

Content cut(Content segment, std::size_t at) {
  std::fill(segment.begin() + static_cast<std::ptrdiff_t>(at), segment.end(), std::byte{0});
  return segment;
}

bool only_begun(const std::map<std::string, Content>& files) {
  MemoryLog log(files);
  return is_only_begun(*log.open());
}

TEST(BegunLog, IsOneWhoseSuperblockWasCutShort) {
  const Begun begun = begun_segment();
  for (std::size_t at = 0; at < segment_bytes; at += at < begun.end ? 1 : 999) {
    // Where its length was cut, or a few bytes that may be zeros anyway, either is right.
    const bool in_length = at > 12 && at < sealed_block_header_bytes;
    if (in_length || (at < begun.end && at + 8 > begun.end)) continue;
    EXPECT_EQ(only_begun({{segment_name(0), cut(begun.segment, at)}}), at > 12 && at < begun.end)
        << at;
  }
}

TEST(BegunLog, IsNoneOfWhichMoreMayHaveBeenDurable) {
  const Content segment = cut(begun_segment().segment, 100);
  const std::string name = segment_name(0);
  EXPECT_TRUE(only_begun({{name, segment}, {"blank-0", Content(segment_bytes)}}));

  Content with_record = segment;
  with_record.back() = std::byte{1};
  EXPECT_FALSE(only_begun({{name, with_record}}));
  Content damaged = begun_segment().segment;
  damaged[50] ^= std::byte{1};
  EXPECT_FALSE(only_begun({{name, damaged}}));
  EXPECT_FALSE(only_begun({{segment_name(1), segment}})) << "the first one was flushed";
  EXPECT_FALSE(only_begun({{name, segment}, {segment_name(1), segment}}));
  EXPECT_FALSE(only_begun({{name, Content(segment.begin(), segment.begin() + 100)}}));
  EXPECT_FALSE(only_begun({}));
}

TEST(BegunLog, IsNoneOfWhichAnythingWasFlushed) {
  MemoryLog log({{segment_name(0), cut(begun_segment().segment, 100)}});
  const auto store = log.open();
  auto mark = FlushMark::open(*store);
  ASSERT_TRUE(mark);
  EXPECT_TRUE(is_only_begun(*store));
  ASSERT_TRUE(mark->put(1));
  EXPECT_FALSE(is_only_begun(*store));
}

TEST(BegunLog, IsNoneOfALaterVersion) {
  Content segment = cut(begun_segment().segment, 100);
  segment[8] = std::byte{log_version + 1};
  EXPECT_FALSE(only_begun({{segment_name(0), segment}}));
}

}  // namespace
}  // namespace forebay
