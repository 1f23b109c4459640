// Goal: a set of extents holds the bytes that were added, each once, and says how many of others it
// holds.
// Method: random extents against a plain set of bytes; and what happens at the bound.

#include "core/model/extent_set.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <vector>

namespace forebay {
namespace {

constexpr Bytes file_bytes = 64;

Extent draw_extent() {
  const auto offset = *rc::gen::inRange<Bytes>(0, file_bytes);
  return {offset, *rc::gen::inRange<Bytes>(0, file_bytes - offset)};
}

/// How many bytes of `extent` are in `bytes`; adds them.
Bytes add_to(std::set<Bytes>& bytes, Extent extent) {
  Bytes there = 0;
  for (Bytes at = extent.offset; at < extent.end(); ++at) there += bytes.insert(at).second ? 0 : 1;
  return there;
}

RC_GTEST_PROP(ExtentSetProperty, holds_what_was_added, ()) {
  ExtentSet set;
  std::set<Bytes> bytes;
  std::vector<Extent> added;
  const auto count = *rc::gen::inRange(0, 20);
  for (int i = 0; i < count; ++i) {
    added.push_back(draw_extent());
    RC_ASSERT(set.add(added.back()) == add_to(bytes, added.back()));
  }
  const ExtentSet at_once(added);
  const Extent asked = draw_extent();
  RC_ASSERT(set.overlap(asked) == add_to(bytes, asked));
  RC_ASSERT(at_once.overlap(asked) == set.overlap(asked));
}

TEST(ExtentSet, adds_no_more_apart_than_it_may) {
  ExtentSet set(2);
  set.add({0, 10});
  set.add({20, 10});
  EXPECT_EQ(set.add({40, 10}), 0);
  EXPECT_EQ(set.overlap({40, 10}), 0);
  EXPECT_EQ(set.add({30, 10}), 0) << "behind the second one";
  EXPECT_EQ(set.overlap({0, 100}), 30);
  EXPECT_EQ(set.add({10, 10}), 0) << "which makes them one";
  EXPECT_EQ(set.add({90, 10}), 0);
  EXPECT_EQ(set.overlap({0, 100}), 50);
}

}  // namespace
}  // namespace forebay
