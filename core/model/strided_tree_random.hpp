#pragma once

#include <rapidcheck.h>

#include <vector>

#include "core/model/strided_tree.hpp"

// For property tests: random trees, each with the list of its bytes by brute force.

namespace forebay {

/// A tree and the offset of each of its bytes, in type-map order.
struct RandomTree {
  StridedTree tree;
  std::vector<Bytes> bytes;
};

/// Draws a tree at most `depth` deep; inside a property only.
inline RandomTree draw_tree(int depth, bool monotone) {
  // Without rapidcheck's growth of sizes: most trees would be empty.
  const auto draw = [](Bytes low, Bytes high) {
    return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<Bytes>(low, high + 1));
  };
  const auto span = [](const RandomTree& t) { return t.tree.upper() - t.tree.lower(); };
  RandomTree result;
  const auto append = [&](const RandomTree& child, Bytes offset) {
    for (const Bytes byte : child.bytes) result.bytes.push_back(byte + offset);
  };
  switch (depth <= 1 ? draw(0, 1) : draw(1, 6)) {
    case 0: {
      const Bytes length = draw(0, 9);
      result.tree = StridedTree::contiguous(length);
      for (Bytes i = 0; i < length; ++i) result.bytes.push_back(i);
      break;
    }
    case 1: {  // Blocks.
      std::vector<Bytes> offsets;
      std::vector<Bytes> lengths;
      const bool equal = draw(0, 1) == 1;
      const Bytes block = draw(1, 6);
      Bytes end = draw(-20, 20);
      for (Bytes n = draw(0, 9); n > 0; --n) {
        lengths.push_back(equal ? block : draw(0, 5));
        offsets.push_back(monotone ? end + 2 * draw(0, 2) : draw(-40, 40));
        end = offsets.back() + lengths.back();
        for (Bytes i = 0; i < lengths.back(); ++i) result.bytes.push_back(offsets.back() + i);
      }
      result.tree = StridedTree::indexed(offsets, lengths);
      break;
    }
    case 2: {  // Copies at offsets of their own.
      const RandomTree child = draw_tree(depth - 1, monotone);
      std::vector<Bytes> offsets;
      Bytes next = draw(-20, 20);
      for (Bytes n = draw(0, 5); n > 0; --n) {
        offsets.push_back(monotone ? next : draw(-60, 60));
        next = offsets.back() + span(child) + 4 * draw(0, 2);
        append(child, offsets.back());
      }
      result.tree = StridedTree::indexed(offsets, child.tree);
      break;
    }
    case 3: {  // Different children, some of them the same.
      std::vector<StridedTree::Placed> children;
      Bytes end = draw(-20, 20);
      RandomTree child;
      for (Bytes n = draw(0, 4); n > 0; --n) {
        if (children.empty() || draw(0, 2) > 0) child = draw_tree(depth - 1, monotone);
        const Bytes offset = monotone ? end - child.tree.lower() + 4 * draw(0, 2) : draw(-60, 60);
        children.push_back({offset, child.tree});
        if (child.tree.size() > 0) end = offset + child.tree.upper();
        append(child, offset);
      }
      result.tree = StridedTree::sequence(children);
      break;
    }
    default: {  // Copies a stride apart, sometimes one that continues the child.
      const RandomTree child = draw_tree(depth - 1, monotone);
      const Bytes count = draw(0, 4);
      const Bytes stride = monotone ? span(child) + 4 * draw(0, 3) : draw(-50, 50);
      for (Bytes i = 0; i < count; ++i) append(child, i * stride);
      result.tree = StridedTree::strided(count, stride, child.tree);
      if (draw(0, 3) == 0) {
        const Bytes shift = draw(-30, 30);
        result.tree = result.tree.shifted(shift);
        for (Bytes& byte : result.bytes) byte += shift;
      }
      break;
    }
  }
  return result;
}

/// A tiled tree, not empty, and the offsets of the bytes of its first copies.
struct RandomTiled {
  TiledTree tiled;
  std::vector<Bytes> bytes;
};

inline RandomTiled draw_tiled(int depth, bool monotone, int copies) {
  RandomTree one = draw_tree(depth, monotone);
  if (one.bytes.empty()) one = {StridedTree::contiguous(1), {0}};
  RandomTiled result;
  const Bytes span = one.tree.upper() - one.tree.lower();
  result.tiled.tree = one.tree;
  result.tiled.displacement = *rc::gen::inRange<int>(0, 200);
  result.tiled.extent =
      monotone ? span + *rc::gen::element<Bytes>(0, 0, 4, 8, 13) : *rc::gen::inRange<int>(-80, 81);
  for (int i = 0; i < copies; ++i) {
    for (const Bytes byte : one.bytes) {
      result.bytes.push_back(result.tiled.displacement + i * result.tiled.extent + byte);
    }
  }
  return result;
}

}  // namespace forebay
