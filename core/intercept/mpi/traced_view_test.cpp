// Goal: a traced call is placed where its view puts it, or nowhere.
// Method: views of each kind, worked by hand.

#include "core/intercept/mpi/traced_view.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace forebay {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

TEST(TracedView, in_the_beginning_positions_are_bytes) {
  const TracedView view;
  EXPECT_EQ(view.byte_offset(7), 7);
  EXPECT_EQ(view.byte_offset(-1), -1);
  EXPECT_EQ(view.etypes_in(12), 12);
}

TEST(TracedView, a_view_without_holes_begins_at_its_displacement) {
  TracedView view;
  view.set({StridedTree::contiguous(32), 100, 32}, 8);
  EXPECT_EQ(view.byte_offset(5), 140);
  EXPECT_EQ(view.etypes_in(24), 3);
  EXPECT_EQ(view.etypes_in(25), std::nullopt);
  EXPECT_EQ(view.byte_offset(largest / 4), -1);
}

TEST(TracedView, holes_are_passed_over) {
  TracedView view;
  view.set({StridedTree::contiguous(16), 100, 64}, 8);
  EXPECT_EQ(view.byte_offset(0), 100);
  EXPECT_EQ(view.byte_offset(1), 108);
  EXPECT_EQ(view.byte_offset(2), 164);
  EXPECT_EQ(view.byte_offset(2'000'001), 64'000'108);
  EXPECT_EQ(view.byte_offset(largest / 8), -1);
}

TEST(TracedView, a_view_of_nothing_has_one_place) {
  TracedView view;
  view.set({StridedTree(), 100, 64}, 8);
  EXPECT_EQ(view.byte_offset(0), 100);
  EXPECT_EQ(view.byte_offset(5), 100);
  EXPECT_EQ(view.etypes_in(8), std::nullopt);
}

TEST(TracedView, what_has_no_tree_tells_nothing_until_the_next_view) {
  TracedView view;
  view.set_unknown();
  EXPECT_EQ(view.byte_offset(0), -1);
  EXPECT_EQ(view.etypes_in(8), std::nullopt);
  view.set({StridedTree::contiguous(1), 10, 1}, 1);
  EXPECT_EQ(view.byte_offset(3), 13);
}

}  // namespace
}  // namespace forebay
