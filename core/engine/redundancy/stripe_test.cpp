// Goal: the header of a stripe is read as it was written, and one that makes no sense is refused.
// Method: random stripes; each field left out, of another type or out of range.

#include "core/engine/redundancy/stripe.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

namespace forebay {
namespace {

using nlohmann::json;

Stripe draw_stripe() {
  const auto text = [] { return *rc::gen::container<std::string>(rc::gen::inRange('a', 'z')); };
  Stripe stripe;
  stripe.group = text();
  stripe.generation = *rc::gen::arbitrary<std::uint64_t>();
  stripe.parities = *rc::gen::inRange(1, 5);
  stripe.piece = *rc::gen::inRange(0, stripe.parities);
  const int members = *rc::gen::inRange(1, 6);
  for (int i = 0; i < members; ++i) {
    StripeMember member;
    member.identity.log = text();
    member.identity.file = {"/scratch/" + text(), 1, *rc::gen::arbitrary<std::uint64_t>()};
    member.identity.host = text();
    member.identity.rank = i;
    member.last_sequence = *rc::gen::arbitrary<std::uint64_t>();
    member.flushed = *rc::gen::arbitrary<std::uint64_t>();
    member.checksum = *rc::gen::arbitrary<std::uint32_t>();
    std::uint64_t segment = 0;
    const int ranges = *rc::gen::inRange(0, 4);
    for (int r = 0; r < ranges; ++r) {
      segment += *rc::gen::inRange<std::uint64_t>(1, 5);
      const auto begin = *rc::gen::inRange<Bytes>(superblock_bytes, MiB);
      member.ranges.push_back({.segment = segment,
                               .first_sequence = *rc::gen::inRange<std::uint64_t>(1, 1000),
                               .salt = *rc::gen::arbitrary<std::uint32_t>(),
                               .segment_bytes = 4 * MiB,
                               .begin = begin,
                               .end = begin + *rc::gen::inRange<Bytes>(1, MiB)});
    }
    stripe.members.push_back(std::move(member));
  }
  return stripe;
}

RC_GTEST_PROP(StripeProperty, is_read_as_it_was_written, ()) {
  const Stripe stripe = draw_stripe();
  const auto read = parse_stripe(encode_stripe(stripe));
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->same_stripe(stripe));
  RC_ASSERT(read->piece == stripe.piece);
}

RC_GTEST_PROP(StripeProperty, is_refused_where_its_end_is_missing, ()) {
  auto bytes = encode_stripe(draw_stripe());
  bytes.resize(*rc::gen::inRange<std::size_t>(0, bytes.size()));
  RC_ASSERT(!parse_stripe(bytes).has_value());
}

Stripe some_stripe() {
  StripeMember member;
  member.identity.log = "log";
  member.ranges = {{1, 1, 7, 4 * MiB, superblock_bytes, superblock_bytes + 100},
                   {2, 9, 8, 4 * MiB, superblock_bytes, superblock_bytes + 50}};
  return {.group = "group", .generation = 3, .piece = 0, .parities = 2, .members = {member}};
}

bool reads(const json& map) {
  const auto value = json::to_cbor(map);
  return parse_stripe(std::as_bytes(std::span(value))).has_value();
}

json some_map() {
  const auto bytes = encode_stripe(some_stripe());
  const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return json::from_cbor(begin, begin + bytes.size());
}

/// Each field of `map` left out and of another type; `put` puts the map back where it was.
template <typename Put>
int spoil(const json& map, Put put) {
  int fields = 0;
  for (const auto& [key, value] : map.items()) {
    json without = map;
    without.erase(key);
    EXPECT_FALSE(reads(put(without))) << key;
    json other = map;
    other[key] = nullptr;
    EXPECT_FALSE(reads(put(other))) << key;
    ++fields;
  }
  return fields;
}

TEST(Stripe, LacksNoFieldAndHasNoneOfAnotherType) {
  const json map = some_map();
  ASSERT_TRUE(reads(map));
  EXPECT_EQ(spoil(map, [](const json& other) { return other; }), 5);
  EXPECT_EQ(spoil(map["members"][0],
                  [&](const json& member) {
                    json other = map;
                    other["members"][0] = member;
                    return other;
                  }),
            5);
  EXPECT_EQ(spoil(map["members"][0]["ranges"][1],
                  [&](const json& range) {
                    json other = map;
                    other["members"][0]["ranges"][1] = range;
                    return other;
                  }),
            6);
}

TEST(Stripe, MakesSense) {
  const auto refuses = [](const auto& change) {
    Stripe stripe = some_stripe();
    change(stripe);
    return !parse_stripe(encode_stripe(stripe)).has_value();
  };
  EXPECT_TRUE(refuses([](Stripe& stripe) { stripe.piece = 2; }));
  EXPECT_TRUE(refuses([](Stripe& stripe) { stripe.piece = -1; }));
  EXPECT_TRUE(refuses([](Stripe& stripe) { stripe.parities = 0; }));
  EXPECT_TRUE(refuses([](Stripe& stripe) { stripe.parities = 256; }));
  EXPECT_TRUE(refuses([](Stripe& stripe) { stripe.members.clear(); }));
  EXPECT_TRUE(refuses([](Stripe& stripe) { stripe.members.resize(256, stripe.members[0]); }));
  const auto refuses_range = [&](const auto& change) {
    return refuses([&](Stripe& stripe) { change(stripe.members[0].ranges[1]); });
  };
  EXPECT_TRUE(refuses_range([](StripeRange& range) { range.begin = superblock_bytes - 1; }));
  EXPECT_TRUE(refuses_range([](StripeRange& range) { range.end = range.begin; }));
  EXPECT_TRUE(refuses_range([](StripeRange& range) { range.end = range.segment_bytes + 1; }));
  EXPECT_TRUE(refuses_range([](StripeRange& range) { range.first_sequence = 0; }));
  EXPECT_TRUE(refuses_range([](StripeRange& range) { range.segment = 1; })) << "twice the same";
}

TEST(Stripe, IsAsLongAsItsLongestBlock) {
  Stripe stripe = some_stripe();
  EXPECT_EQ(stripe.length(), 150);
  stripe.members.push_back(stripe.members[0]);
  stripe.members[1].ranges.pop_back();
  EXPECT_EQ(stripe.length(), 150);
  EXPECT_EQ(superblock_of(stripe.members[0], stripe.members[0].ranges[1]).first_sequence, 9U);
}

}  // namespace
}  // namespace forebay
