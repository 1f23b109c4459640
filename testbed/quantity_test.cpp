// Goal: sizes, rates, durations and extents mean what a person means by them, and nothing is
// guessed. Method: tables of accepted and refused spellings.

#include "testbed/quantity.hpp"

#include <gtest/gtest.h>

namespace forebay::testbed {
namespace {

using std::chrono::nanoseconds;

TEST(Quantity, ReadsSizesInPowersOf1024And1000) {
  EXPECT_EQ(parse_bytes("64KiB").value(), 65536);
  EXPECT_EQ(parse_bytes("0.5MiB").value(), 524288);
  EXPECT_EQ(parse_bytes("2 GiB").value(), 2147483648);
  EXPECT_EQ(parse_bytes("64kB").value(), 64000);
  EXPECT_EQ(parse_bytes("512").value(), 512);
  EXPECT_EQ(parse_bytes("512B").value(), 512);
}

TEST(Quantity, RefusesSizesThatCouldMeanTwoThings) {
  for (const char* text : {"", "64K", "1M", "KiB", "-1KiB", "1kib", "nan", "inf", "1 MiB/s",
                           "99999999999GiB", "1e3", "0x10"}) {
    const auto result = parse_bytes(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().kind, ErrorKind::invalid_argument);
    EXPECT_NE(result.error().what.find("64KiB"), std::string::npos) << "names the accepted form";
  }
}

TEST(Quantity, ReadsRates) {
  EXPECT_EQ(parse_bytes_per_second("4MiB/s").value(), 4 * MiB);
  EXPECT_EQ(parse_bytes_per_second("100MB/s").value(), 100'000'000);
  for (const char* text : {"4MiB", "/s", "0MiB/s", "0.1B/s", "4MiB/h"}) {
    EXPECT_FALSE(parse_bytes_per_second(text)) << text;
  }
}

TEST(Quantity, ReadsDurationsAndTakesBareNumbersAsMilliseconds) {
  EXPECT_EQ(parse_duration("3ms").value(), nanoseconds(3'000'000));
  EXPECT_EQ(parse_duration("3").value(), nanoseconds(3'000'000));
  EXPECT_EQ(parse_duration("250us").value(), nanoseconds(250'000));
  EXPECT_EQ(parse_duration("1.5s").value(), nanoseconds(1'500'000'000));
  EXPECT_EQ(parse_duration("0").value(), nanoseconds(0));
  for (const char* text : {"", "ms", "-3ms", "3m", "3 minutes"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(Quantity, ReadsExtents) {
  EXPECT_EQ(parse_extent("1MiB+64KiB").value(), (Extent{MiB, 64 * KiB}));
  EXPECT_EQ(parse_extent("0+1").value(), (Extent{0, 1}));
  for (const char* text : {"", "1MiB", "+", "1MiB+", "+4KiB", "1MiB+0", "1MiB-4KiB", "1+1+1",
                           "9223372036854774784+1KiB"}) {
    const auto result = parse_extent(text);
    ASSERT_FALSE(result) << text;
    EXPECT_NE(result.error().what.find("1MiB+64KiB"), std::string::npos) << "names the form";
  }
}

}  // namespace
}  // namespace forebay::testbed
