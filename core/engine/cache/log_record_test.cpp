// Goal: a record's header says what it was told to say, and nothing else is taken for one.
// Method: random records; every bit of a header flipped; other salts; worked examples of what is
// refused although its checksum is right.

#include "core/engine/cache/log_record.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <string_view>
#include <vector>

#include "core/engine/cache/crc32c.hpp"
#include "core/engine/cache/little_endian.hpp"

namespace forebay {
namespace {

LogRecord draw_record() {
  LogRecord record;
  record.kind = *rc::gen::element(RecordKind::data, RecordKind::commit, RecordKind::flushed,
                                  RecordKind::truncate, RecordKind::truncated);
  record.epoch = *rc::gen::arbitrary<std::uint64_t>();
  record.sequence = *rc::gen::inRange<std::uint64_t>(1, std::numeric_limits<std::uint64_t>::max());
  switch (record.kind) {
    case RecordKind::data:
      record.length = *rc::gen::inRange<std::uint32_t>(1, largest_payload + 1);
      record.stored = record.length;
      if (record.length > 1 && *rc::gen::arbitrary<bool>()) {
        record.codec = PayloadCodec::lz4;
        record.stored = *rc::gen::inRange<std::uint32_t>(1, record.length);
      }
      record.value =
          *rc::gen::inRange<std::uint64_t>(0, std::numeric_limits<Bytes>::max() - largest_payload);
      record.data_checksum = *rc::gen::arbitrary<std::uint32_t>();
      break;
    case RecordKind::commit:
      break;
    case RecordKind::flushed:
    case RecordKind::truncated:
      record.value = *rc::gen::inRange<std::uint64_t>(0, record.sequence);
      break;
    case RecordKind::truncate:
      record.value = *rc::gen::inRange<std::uint64_t>(0, std::numeric_limits<Bytes>::max());
      break;
  }
  return record;
}

RC_GTEST_PROP(LogRecordProperty, is_read_as_it_was_written, ()) {
  const LogRecord record = draw_record();
  const auto salt = *rc::gen::arbitrary<std::uint32_t>();
  RC_ASSERT(decode_record(encode_record(record, salt), salt) == record);
}

RC_GTEST_PROP(LogRecordProperty, is_refused_with_any_bit_flipped, ()) {
  const auto salt = *rc::gen::arbitrary<std::uint32_t>();
  const RecordHeader header = encode_record(draw_record(), salt);
  for (std::size_t bit = 0; bit < 8 * header.size(); ++bit) {
    RecordHeader flipped = header;
    flipped[bit / 8] ^= std::byte{1} << (bit % 8);
    RC_ASSERT(!decode_record(flipped, salt).has_value());
  }
}

RC_GTEST_PROP(LogRecordProperty, is_refused_under_another_salt, ()) {
  const auto salt = *rc::gen::arbitrary<std::uint32_t>();
  const auto other = *rc::gen::distinctFrom(salt);
  RC_ASSERT(!decode_record(encode_record(draw_record(), salt), other).has_value());
}

RecordHeader with_right_checksum(RecordHeader header) {
  const auto all = std::span<const std::byte>(header);
  store_little_endian(std::span(header), 4, crc32c(all.subspan(8), crc32c(all.first(4), 0)));
  return header;
}

TEST(LogRecord, IsRefusedWhereItMeansNothingThoughItsChecksumIsRight) {
  const LogRecord data{RecordKind::data, 1, 2, 3, 4, 4, PayloadCodec::none, 5};
  const RecordHeader good = encode_record(data, 0);
  ASSERT_TRUE(decode_record(with_right_checksum(good), 0));

  RecordHeader header = good;
  header[3] = std::byte{6};
  EXPECT_FALSE(decode_record(with_right_checksum(header), 0)) << "an unknown kind";
  header = good;
  store_little_endian(std::span(header), 12, std::uint32_t{0});
  store_little_endian(std::span(header), 40, std::uint32_t{0});
  EXPECT_FALSE(decode_record(with_right_checksum(header), 0)) << "data without bytes";
  header = good;
  store_little_endian(std::span(header), 12, static_cast<std::uint32_t>(largest_payload + 1));
  store_little_endian(std::span(header), 40, static_cast<std::uint32_t>(largest_payload + 1));
  EXPECT_FALSE(decode_record(with_right_checksum(header), 0)) << "too long";
  header = good;
  store_little_endian(std::span(header), 40, std::uint32_t{3});
  EXPECT_FALSE(decode_record(with_right_checksum(header), 0)) << "cut, though not compressed";
  header[44] = std::byte{1};
  EXPECT_TRUE(decode_record(with_right_checksum(header), 0));
  header[44] = std::byte{2};
  EXPECT_FALSE(decode_record(with_right_checksum(header), 0)) << "an unknown codec";
  header[44] = std::byte{1};
  store_little_endian(std::span(header), 40, std::uint32_t{4});
  EXPECT_FALSE(decode_record(with_right_checksum(header), 0)) << "compressed, and not smaller";
  header = good;
  store_little_endian(std::span(header), 32, std::uint64_t{1} << 63);
  EXPECT_FALSE(decode_record(with_right_checksum(header), 0)) << "beyond every file";
  header = good;
  store_little_endian(std::span(header), 24, std::uint64_t{0});
  EXPECT_FALSE(decode_record(with_right_checksum(header), 0)) << "sequence numbers start at 1";
  header = encode_record({RecordKind::flushed, 1, 7, 6}, 0);
  store_little_endian(std::span(header), 32, std::uint64_t{7});
  EXPECT_FALSE(decode_record(with_right_checksum(header), 0)) << "it vouches for itself";
}

TEST(LogRecord, LooksAsTheFormatsExampleSays) {
  const std::string_view text = "hello";
  const RecordHeader header =
      encode_record({.epoch = 7,
                     .sequence = 1,
                     .value = 4096,
                     .length = 5,
                     .stored = 5,
                     .data_checksum = crc32c(std::as_bytes(std::span(text)))},
                    0);
  const std::vector<int> expected{
      0x46, 0x42, 0x52, 0x01, 0x11, 0x4f, 0xec, 0xd0, 0x4c, 0xbb, 0x71, 0x9a, 5, 0, 0, 0,
      7,    0,    0,    0,    0,    0,    0,    0,    1,    0,    0,    0,    0, 0, 0, 0,
      0,    0x10, 0,    0,    0,    0,    0,    0,    5,    0,    0,    0,    0, 0, 0, 0};
  ASSERT_EQ(header.size(), expected.size());
  for (std::size_t i = 0; i < header.size(); ++i) {
    EXPECT_EQ(std::to_integer<int>(header[i]), expected[i]) << "byte " << i;
  }
}

TEST(LogRecord, IsNotReadFromFewerBytes) {
  const RecordHeader header = encode_record({RecordKind::commit, 1, 2}, 9);
  for (std::size_t length = 0; length < header.size(); ++length) {
    EXPECT_FALSE(decode_record(std::span(header).first(length), 9));
  }
}

TEST(LogRecord, StartsAtMultiplesOfEight) {
  EXPECT_EQ(record_bytes(0), 48);
  EXPECT_EQ(record_bytes(1), 56);
  EXPECT_EQ(record_bytes(8), 56);
  EXPECT_EQ(record_bytes(4096), 4144);
  EXPECT_EQ(record_padding(4095), 1);
}

}  // namespace
}  // namespace forebay
