// Goal: what is left of a declaration from a place on is what will be read there, and readers who
// begin a little apart have the same. Method: the worked examples, what a person may write, and a
// comparison with a count of single bytes.

#include "core/plan/declared_parts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "core/plan/fetch_plan.hpp"

namespace forebay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DeclaredParts, KnowsWhichBytesAreDeclared) {
  const std::vector<Extent> willneed = {{1000, 60}, {0, 60}, {1900, 200}};
  for (const Bytes offset : {0, 59, 1000, 1059, 1900, 1949}) {
    EXPECT_TRUE(is_declared(willneed, offset, 1950)) << offset;
  }
  for (const Bytes offset : {60, 999, 1060, 1950, 2000}) {
    EXPECT_FALSE(is_declared(willneed, offset, 1950)) << offset;
  }
  EXPECT_FALSE(is_declared({}, 0, 1950));
}

TEST(DeclaredParts, GoesOnFromAnOffset) {
  const std::vector<Extent> willneed = {{1000, 60}, {0, 60}, {500, 60}};
  EXPECT_THAT(declared_from(willneed, 20, 2000), ElementsAre(Extent{20, 40}, Extent{500, 60}));
  EXPECT_THAT(declared_from(willneed, 1000, 2000),
              ElementsAre(willneed[0], willneed[1], willneed[2]));
  EXPECT_THAT(declared_from(willneed, 300, 2000), IsEmpty());
  EXPECT_THAT(declared_from({}, 0, 2000), IsEmpty());
  EXPECT_EQ(first_declared({{3000, 1}, {5, 0}}, 2000), (Extent{5, 1995}));
  EXPECT_TRUE(first_declared({{3000, 1}}, 2000).empty());
}

TEST(DeclaredParts, ThoseWhoBeginALittleApartHaveTheSame) {
  const std::vector<Extent> willneed = {{1000, 60}, {0, 60}, {500, 60}};
  const auto expected = ElementsAre(Extent{40, 20}, Extent{500, 60});
  EXPECT_THAT(declared_around(willneed, 520, 2000, 100), expected);
  EXPECT_THAT(declared_around(willneed, 40, 2000, 100), expected);
  EXPECT_THAT(declared_around(willneed, 559, 2000, 100), expected);
  EXPECT_THAT(declared_around(willneed, 39, 2000, 100),
              ElementsAre(willneed[0], willneed[1], willneed[2]));
  EXPECT_THAT(declared_around({{0, 0}}, 777, 1000, 256), ElementsAre(Extent{768, 232}));
  constexpr Bytes most = std::numeric_limits<Bytes>::max();
  EXPECT_THAT(declared_around({{most, most}, {-1, 5}, {10, most}}, 700, 1000, 256),
              ElementsAre(Extent{522, 478}));
}

RC_GTEST_PROP(DeclaredPartsProperty, BeginsAtAMultipleOfTheUnit, ()) {
  const auto willneed = *rc::gen::nonEmpty(rc::gen::container<std::vector<Extent>>(
      rc::gen::construct<Extent>(rc::gen::inRange<Bytes>(0, 300), rc::gen::inRange<Bytes>(0, 90))));
  const Bytes unit = *rc::gen::inRange<Bytes>(1, 200);
  const Bytes offset = *rc::gen::inRange<Bytes>(0, 300);
  constexpr Bytes size = 256;
  std::vector<Bytes> order;  // Of reading.
  for (const Extent& written : willneed) {
    const Extent inside = in_file(written, size);
    for (Bytes at = inside.offset; at < inside.end(); ++at) order.push_back(at);
  }
  std::vector<Bytes> rest;
  for (const Extent& written : declared_around(willneed, offset, size, unit)) {
    const Extent inside = in_file(written, size);
    for (Bytes at = inside.offset; at < inside.end(); ++at) rest.push_back(at);
  }
  const auto first = std::ranges::find(order, offset);
  if (first == order.end()) {
    RC_ASSERT(rest.empty());
    return;
  }
  const auto from = order.begin() + (first - order.begin()) / unit * unit;
  RC_ASSERT(rest == std::vector<Bytes>(from, order.end()));
}

}  // namespace
}  // namespace forebay
