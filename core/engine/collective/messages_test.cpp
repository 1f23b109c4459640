// Goal: what ranks send each other arrives as it was meant, and what is cut short, of another
// version or impossible is refused with a reason.
// Method: messages are written, changed byte by byte, and read.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/engine/collective/call_record.hpp"
#include "core/engine/collective/message_codec.hpp"
#include "core/engine/collective/read_message.hpp"

namespace forebay {
namespace {

using testing::HasSubstr;

constexpr CallRecord example{.tree = 0x0123456789abcdef,
                             .displacement = 4096,
                             .extent = 100,
                             .start = 7,
                             .length = 1'000'000,
                             .seamless = true};

constexpr CostWord some_cost{1, 2, 3, 255};

std::vector<std::byte> wire_of(const std::vector<CallRecord>& records) {
  std::vector<std::byte> wire;
  for (const CallRecord& record : records) {
    const CallRecordWire one = encode_call_record(record, some_cost);
    wire.insert(wire.end(), one.begin(), one.end());
  }
  return wire;
}

TEST(CallRecord, ArrivesAsItWasMeant) {
  const std::vector<CallRecord> records{example, {.tree = 5}, {.tree = 5, .seamless = true}};
  const auto decoded = decode_call_records(wire_of(records));
  ASSERT_TRUE(decoded) << to_string(decoded.error());
  EXPECT_EQ(decoded->calls, records);
  EXPECT_EQ(decoded->costs, std::vector<CostWord>(3, some_cost));
}

TEST(CallRecord, CutShortIsRefused) {
  const auto wire = wire_of({example, example});
  for (std::size_t size = 1; size < wire.size(); ++size) {
    const auto decoded = decode_call_records(std::span(wire).first(size));
    EXPECT_EQ(decoded.has_value(), size == call_record_bytes) << size;
  }
}

TEST(CallRecord, ADamagedHeadIsRefusedWithTheRankThatSentIt) {
  for (std::size_t at = 0; at < 4; ++at) {
    auto wire = wire_of({example, example, example});
    wire[call_record_bytes + at] ^= std::byte{0x40};
    const auto decoded = decode_call_records(wire);
    ASSERT_FALSE(decoded) << at;
    EXPECT_EQ(decoded.error().kind, ErrorKind::internal);
    EXPECT_THAT(decoded.error().what, HasSubstr("rank 1"));
  }
}

TEST(CallRecord, AnotherVersionIsNamed) {
  auto wire = wire_of({example});
  wire[2] = std::byte{200};
  const auto decoded = decode_call_records(wire);
  ASSERT_FALSE(decoded);
  EXPECT_THAT(decoded.error().what, HasSubstr("version 200"));
}

TEST(CallRecord, ImpossibleRangesAreRefused) {
  constexpr Bytes most = std::numeric_limits<Bytes>::max();
  const auto refused = [](CallRecord record) { return !decode_call_records(wire_of({record})); };
  EXPECT_TRUE(refused({.start = -1, .length = 1}));
  EXPECT_TRUE(refused({.start = 0, .length = -1}));
  EXPECT_TRUE(refused({.start = most, .length = 1}));
  EXPECT_TRUE(refused({.start = 1, .length = 0}));
  EXPECT_TRUE(refused({.displacement = 1}));
  EXPECT_FALSE(refused({.start = most - 1, .length = 1}));
}

std::vector<std::byte> read_message(Bytes plain, Bytes pieces) {
  std::vector<std::byte> message(static_cast<std::size_t>(read_header_bytes + pieces));
  encode_read_header({.valid_until = 12'345, .plain_bytes = plain}, message);
  return message;
}

TEST(ReadMessage, ArrivesAsItWasMeant) {
  const auto header = decode_read_header(read_message(1000, 400), 1000);
  ASSERT_TRUE(header) << to_string(header.error());
  EXPECT_EQ(header->valid_until, 12'345);
  EXPECT_EQ(header->plain_bytes, 1000);
}

TEST(ReadMessage, WhatDoesNotFitItsRoomIsRefused) {
  EXPECT_FALSE(decode_read_header(read_message(1001, 400), 1000));
  EXPECT_FALSE(decode_read_header(read_message(399, 400), 1000));
  EXPECT_FALSE(decode_read_header(read_message(-1, 0), 1000));
  EXPECT_TRUE(decode_read_header(read_message(0, 0), 0));
}

TEST(ReadMessage, CutShortOrDamagedIsRefused) {
  const auto message = read_message(100, 100);
  for (std::size_t size = 0; size < static_cast<std::size_t>(read_header_bytes); ++size) {
    EXPECT_FALSE(decode_read_header(std::span(message).first(size), 100)) << size;
  }
  for (std::size_t at = 0; at < 8; ++at) {
    auto damaged = message;
    damaged[at] ^= std::byte{1};
    EXPECT_FALSE(decode_read_header(damaged, 100)) << at;
  }
  auto negative_end = message;
  negative_end[15] |= std::byte{0x80};
  EXPECT_FALSE(decode_read_header(negative_end, 100));
}

TEST(MessageCodec, ACompressedMessageExpandsToItsSizeOrIsRefused) {
  MessageCodec codec(Toggle::enable);
  std::vector<std::byte> plain(20'000);
  for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<std::byte>(i / 100);
  std::vector<std::byte> storage;
  const auto wire = codec.encode(1, plain, storage);
  ASSERT_LT(wire.size(), plain.size());
  const auto expand = [&](std::size_t plain_size, std::size_t received) {
    std::vector<std::byte> message(plain_size);
    std::copy_n(wire.begin(), std::min(received, plain_size), message.begin());
    const auto status = MessageCodec::decode(message, static_cast<Bytes>(received));
    return status ? message : std::vector<std::byte>();
  };
  EXPECT_EQ(expand(plain.size(), wire.size()), plain);
  EXPECT_TRUE(expand(plain.size(), wire.size() - 1).empty());
  EXPECT_TRUE(expand(plain.size() - 1, wire.size()).empty());
  EXPECT_TRUE(expand(plain.size() + 1, wire.size()).empty());
  EXPECT_TRUE(expand(wire.size() - 1, wire.size()).empty()) << "longer than its plain form";
}

}  // namespace
}  // namespace forebay
