// Goal: maps are read, and no bytes do harm.
// Method: worked examples of what a library of CBOR trips over.

#include "core/engine/cache/cbor_map.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace forebay {
namespace {

using nlohmann::json;

std::optional<json> parse(const std::vector<std::uint8_t>& bytes) {
  return parse_cbor_map(std::as_bytes(std::span(bytes)));
}

TEST(CborMap, IsReadAsItWasWritten) {
  const json map = {{"one", 1},
                    {"minus", -1},
                    {"text", "abc"},
                    {"bytes", json::binary({1, 2, 255})},
                    {"list", {json{{"deep", true}}, nullptr, 1.5}}};
  EXPECT_EQ(parse(json::to_cbor(map)), map);
}

TEST(CborMap, IsNothingElse) {
  EXPECT_FALSE(parse({}));
  EXPECT_FALSE(parse(json::to_cbor(json{1, 2})));
  auto bytes = json::to_cbor(json{{"one", 1}});
  bytes.push_back(0);
  EXPECT_FALSE(parse(bytes)) << "and something behind it";
  bytes.resize(bytes.size() - 2);
  EXPECT_FALSE(parse(bytes)) << "and all of it";
}

TEST(CborMap, IsNotAsLargeAsItSays) {
  EXPECT_FALSE(parse({0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe}));
  EXPECT_FALSE(parse({0xa1, 0x61, 'a', 0x9b, 0x9b, 0x9b, 0x9b, 0x9b, 0x9b, 0x9b, 0x9b, 0x9b}));
  EXPECT_FALSE(parse({0xa1, 0x61, 'a', 0x7b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
}

TEST(CborMap, IsNotNestedWithoutEnd) {
  std::vector<std::uint8_t> bytes = {0xa1, 0x61, 'a'};
  bytes.insert(bytes.end(), 10'000'000, 0x81);
  bytes.push_back(0);
  EXPECT_FALSE(parse(bytes));
}

}  // namespace
}  // namespace forebay
