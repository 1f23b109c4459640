// Goal: the map knows of every byte which write was the newest and where it lies, whatever came in
// whichever order.
// Method: random operations against an array with an entry per byte.

#include "core/engine/cache/dirty_map.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

namespace forebay {
namespace {

constexpr Bytes file_bytes = 64;

/// The same by brute force: order 0 is clean.
struct Model {
  struct Byte {
    std::uint64_t order = 0;
    Bytes position = 0;  ///< In the log.
    bool operator==(const Byte&) const = default;
  };
  std::array<Byte, file_bytes> bytes{};

  std::set<std::uint64_t> insert(Extent extent, std::uint64_t order, Bytes position) {
    std::set<std::uint64_t> superseded;
    for (Bytes at = extent.offset; at < extent.end(); ++at) {
      Byte& byte = bytes[static_cast<std::size_t>(at)];
      if (byte.order > order) continue;
      if (byte.order != 0) superseded.insert(byte.order);
      byte = {order, position + at - extent.offset};
    }
    return superseded;
  }
};

void check(const DirtyMap& map, const Model& model) {
  std::array<Model::Byte, file_bytes> seen{};
  Bytes before = -1;
  Bytes sum = 0;
  std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
  for (const auto& piece : map.overlapping({0, file_bytes})) {
    RC_ASSERT(piece.extent.offset >= before);
    RC_ASSERT(!piece.extent.empty());
    before = piece.extent.end();
    sum += piece.extent.length;
    lowest = std::min(lowest, piece.order);
    for (Bytes i = 0; i < piece.extent.length; ++i) {
      seen[static_cast<std::size_t>(piece.extent.offset + i)] = {piece.order,
                                                                 piece.place.position() + i};
    }
  }
  RC_ASSERT(seen == model.bytes);
  RC_ASSERT(map.bytes() == sum);
  RC_ASSERT(map.empty() == (sum == 0));
  RC_ASSERT(map.end() == std::max<Bytes>(before, 0));
  RC_ASSERT(map.lowest_order().value_or(std::numeric_limits<std::uint64_t>::max()) == lowest);
}

Extent draw_extent() {
  const auto offset = *rc::gen::inRange<Bytes>(0, file_bytes);
  return {offset, *rc::gen::inRange<Bytes>(1, file_bytes - offset + 1)};
}

RC_GTEST_PROP(DirtyMapProperty, knows_the_newest_write_of_every_byte, ()) {
  DirtyMap map;
  Model model;
  const auto orders =
      *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(1, 40));
  for (const std::uint64_t order : orders) {
    switch (*rc::gen::inRange(0, 6)) {
      case 0: {
        const Extent extent = draw_extent();
        Bytes erased = 0;
        for (Bytes at = extent.offset; at < extent.end(); ++at) {
          auto& byte = model.bytes[static_cast<std::size_t>(at)];
          if (byte.order == order) {
            byte = {};
            ++erased;
          }
        }
        RC_ASSERT(map.erase(extent, order) == erased);
        break;
      }
      case 1: {
        const auto size = *rc::gen::inRange<Bytes>(0, file_bytes);
        map.cut(size);
        std::fill(model.bytes.begin() + size, model.bytes.end(), Model::Byte{});
        break;
      }
      default: {
        // Each order is one record, which lies in one place; parts of it may come again.
        const Extent extent = draw_extent();
        LogPlace place;
        place.payload = static_cast<Bytes>(order) * 1000;
        place.skip = extent.offset;
        const auto superseded = map.insert(extent, order, place);
        RC_ASSERT(std::set<std::uint64_t>(superseded.begin(), superseded.end()) ==
                  model.insert(extent, order, place.position()));
      }
    }
    check(map, model);
  }
  const Extent part = draw_extent();
  Bytes in_part = 0;
  for (Bytes at = part.offset; at < part.end(); ++at) {
    in_part += model.bytes[static_cast<std::size_t>(at)].order != 0 ? 1 : 0;
  }
  Bytes found = 0;
  for (const auto& piece : map.overlapping(part)) {
    RC_ASSERT(intersect(piece.extent, part) == piece.extent);
    found += piece.extent.length;
  }
  RC_ASSERT(found == in_part);
  RC_ASSERT(map.any(part) == (in_part > 0));
  map.clear();
  check(map, Model{});
}

TEST(DirtyMap, JoinsPartsOfOneRecord) {
  DirtyMap map;
  LogPlace place;
  place.payload = 100;
  map.insert({0, 10}, 1, place);
  map.insert({20, 10}, 1, place.from(20));
  EXPECT_EQ(map.size(), 2U);
  map.insert({10, 10}, 1, place.from(10));
  EXPECT_EQ(map.size(), 1U);
  EXPECT_EQ(map.bytes(), 30);
  LogPlace elsewhere = place;
  elsewhere.payload = 500;
  map.insert({30, 10}, 2, elsewhere);
  map.insert({40, 10}, 2, elsewhere);
  EXPECT_EQ(map.size(), 3U) << "the same bytes of the log twice are no continuation";
}

TEST(DirtyMap, KeepsAPieceOnBothSidesOfANewerOne) {
  DirtyMap map;
  LogPlace old_place;
  old_place.payload = 100;
  LogPlace new_place;
  new_place.payload = 900;
  map.insert({0, 30}, 1, old_place);
  EXPECT_EQ(map.insert({10, 5}, 2, new_place), std::vector<std::uint64_t>{1});
  const auto pieces = map.overlapping({0, 100});
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[2].extent, (Extent{15, 15}));
  EXPECT_EQ(pieces[2].place.position(), 115);
  EXPECT_EQ(map.erase({0, 100}, 2), 5);
  EXPECT_EQ(map.bytes(), 25);
  EXPECT_FALSE(map.any({10, 5}));
}

}  // namespace
}  // namespace forebay
