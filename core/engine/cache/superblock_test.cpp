// Goal: a segment says whose it is, whatever bytes are in a path; a damaged one is noticed, and one
// of another version is refused by its number.
// Method: random superblocks, damaged in every way that is cheap to enumerate.

#include "core/engine/cache/superblock.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "core/engine/cache/crc32c.hpp"
#include "core/engine/cache/little_endian.hpp"
#include "core/engine/cache/sealed_block.hpp"

namespace forebay {
namespace {

Superblock draw_superblock() {
  const auto bytes = [] { return *rc::gen::container<std::string>(rc::gen::arbitrary<char>()); };
  const auto count = [] {
    return *rc::gen::inRange<std::int64_t>(0, std::numeric_limits<std::int64_t>::max());
  };
  Superblock result;
  result.identity.log = "0123456789abcdef";
  result.identity.purpose = *rc::gen::element(LogPurpose::data, LogPurpose::protection);
  result.identity.file = {"/" + bytes(), *rc::gen::arbitrary<std::uint64_t>(),
                          *rc::gen::arbitrary<std::uint64_t>(),
                          *rc::gen::arbitrary<std::int64_t>()};
  result.identity.layout = {count(), *rc::gen::inRange(1, 1000), *rc::gen::arbitrary<bool>()};
  result.identity.job = bytes();
  result.identity.host = bytes();
  result.identity.process = count();
  result.identity.rank = *rc::gen::inRange(0, 1'000'000);
  result.identity.made_unix_s = count();
  result.segment = *rc::gen::arbitrary<std::uint64_t>();
  result.first_sequence =
      *rc::gen::inRange<std::uint64_t>(1, std::numeric_limits<std::uint64_t>::max());
  result.segment_bytes = *rc::gen::inRange<Bytes>(superblock_bytes, GiB);
  result.salt = *rc::gen::arbitrary<std::uint32_t>();
  return result;
}

RC_GTEST_PROP(SuperblockProperty, is_read_as_it_was_written, ()) {
  const Superblock superblock = draw_superblock();
  const auto block = encode_superblock(superblock);
  RC_ASSERT(block.has_value());
  RC_ASSERT(static_cast<Bytes>(block->size()) == superblock_bytes);
  const auto read = parse_superblock(*block);
  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == superblock);
}

RC_GTEST_PROP(SuperblockProperty, is_refused_where_a_byte_of_it_changed, ()) {
  auto block = *encode_superblock(draw_superblock());
  const auto used =
      sealed_block_header_bytes + load_little_endian<std::uint32_t>(std::span(block), 12);
  const auto at = *rc::gen::inRange<std::size_t>(0, used);
  RC_PRE(at < 20 || at >= 24);  // Nothing is kept there.
  block[at] ^= static_cast<std::byte>(*rc::gen::inRange(1, 256));
  RC_ASSERT(!parse_superblock(block).has_value());
}

RC_GTEST_PROP(SuperblockProperty, is_refused_where_its_end_is_missing, ()) {
  auto block = *encode_superblock(draw_superblock());
  const auto used =
      sealed_block_header_bytes + load_little_endian<std::uint32_t>(std::span(block), 12);
  block.resize(*rc::gen::inRange<std::size_t>(0, used));
  RC_ASSERT(!parse_superblock(block).has_value());
}

std::vector<std::byte> some_block() {
  Superblock superblock;
  superblock.identity.log = "x";
  superblock.identity.file.path = "/scratch/a";
  superblock.first_sequence = 1;
  superblock.segment_bytes = 32 * MiB;
  return *encode_superblock(superblock);
}

TEST(Superblock, OfAnotherVersionIsNamedByItsNumber) {
  for (const std::uint32_t version : {0U, 1U, 77U}) {
    auto block = some_block();
    store_little_endian(std::span(block), 8, version);
    const auto read = parse_superblock(block);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().kind, ErrorKind::unsupported);
    EXPECT_EQ(read.error().what, "the write-behind log segment is of format version " +
                                     std::to_string(version) +
                                     ", and this Forebay reads version 2; use the " +
                                     (version < 2 ? "older" : "newer") + " Forebay that wrote it");
  }
}

TEST(Superblock, OfAnotherVersionIsRecognisedWhateverElseChanged) {
  std::vector<std::byte> block(100, std::byte{0xee});
  const auto known = some_block();
  std::copy_n(known.begin(), 8, block.begin());
  store_little_endian(std::span(block), 8, std::uint32_t{3});
  EXPECT_EQ(parse_superblock(block).error().kind, ErrorKind::unsupported);
}

TEST(Superblock, OfParityHasAVersionOfItsOwn) {
  Superblock superblock = *parse_superblock(some_block());
  superblock.identity.purpose = LogPurpose::protection;
  auto block = *encode_superblock(superblock);
  EXPECT_EQ(*parse_superblock(block), superblock);
  store_little_endian(std::span(block), 8, parity_log_version + 1);
  EXPECT_EQ(parse_superblock(block).error().what,
            "the parity log segment is of format version 2, and this Forebay reads version 1; use "
            "the newer Forebay that wrote it");
}

TEST(Superblock, OfSomethingElseIsRefused) {
  EXPECT_EQ(parse_superblock({}).error().what,
            "this is no write-behind log segment: it is too short");
  EXPECT_EQ(parse_superblock(std::vector<std::byte>(8192)).error().what,
            "this is no write-behind log segment: it starts with other bytes");
}

TEST(Superblock, LacksNoFieldAndHasNoneOfAnotherType) {
  constexpr BlockKind kind{"FBWBLOG\n", log_version, "write-behind log segment"};
  const nlohmann::json complete = *open_block(kind, some_block());
  ASSERT_TRUE(parse_superblock(*seal_block(kind, complete, superblock_bytes)));
  int fields = 0;
  for (const auto& [key, value] : complete.items()) {
    nlohmann::json without = complete;
    without.erase(key);
    EXPECT_FALSE(parse_superblock(*seal_block(kind, without, superblock_bytes))) << key;
    nlohmann::json other = complete;
    other[key] = nlohmann::json::array();
    EXPECT_FALSE(parse_superblock(*seal_block(kind, other, superblock_bytes))) << key;
    ++fields;
  }
  EXPECT_EQ(fields, 16);
  nlohmann::json more = complete;
  more["from_a_later_day"] = 1;
  EXPECT_TRUE(parse_superblock(*seal_block(kind, more, superblock_bytes)));
}

TEST(Superblock, HasRoomForTheLongestPath) {
  Superblock superblock;
  superblock.identity.file.path.assign(4096, '\xff');
  EXPECT_TRUE(encode_superblock(superblock));
  superblock.identity.file.path.assign(9000, 'a');
  EXPECT_EQ(encode_superblock(superblock).error().kind, ErrorKind::invalid_argument);
}

}  // namespace
}  // namespace forebay
