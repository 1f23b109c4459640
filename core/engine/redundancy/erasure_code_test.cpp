// Goal: any members, up to as many as there are pieces left, are got back from the rest.
// Method: random blocks of unequal length, random losses of members and pieces together; every loss
// of a few small codes; the field recomputed bit by bit.

#include "core/engine/redundancy/erasure_code.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>

#include "core/model/noise.hpp"

namespace forebay {
namespace {

using Content = std::vector<std::byte>;

struct Coded {
  std::vector<Content> blocks;
  std::vector<Content> pieces;
};

Coded make_coded(const ErasureCode& code, std::size_t longest, std::mt19937_64& random) {
  Coded coded;
  for (int member = 0; member < code.members(); ++member) {
    coded.blocks.push_back(noise(random() % (longest + 1), random()));
  }
  for (int parity = 0; parity < code.parities(); ++parity) {
    Content piece(longest);
    for (int member = 0; member < code.members(); ++member) {
      code.fold(parity, member, coded.blocks[static_cast<std::size_t>(member)], piece);
    }
    coded.pieces.push_back(std::move(piece));
  }
  return coded;
}

/// Whether the blocks of `lost` come back from the others and from `parities`.
bool comes_back(const ErasureCode& code, const Coded& coded, const std::vector<int>& lost,
                const std::vector<int>& parities) {
  std::vector<Content> pieces;
  for (const int parity : parities) {
    Content piece = coded.pieces[static_cast<std::size_t>(parity)];
    for (int member = 0; member < code.members(); ++member) {
      if (std::ranges::find(lost, member) != lost.end()) continue;
      code.fold(parity, member, coded.blocks[static_cast<std::size_t>(member)], piece);
    }
    pieces.push_back(std::move(piece));
  }
  std::vector<std::span<std::byte>> spans(pieces.begin(), pieces.end());
  code.solve(parities, lost, spans);
  for (std::size_t i = 0; i < lost.size(); ++i) {
    Content wanted = coded.blocks[static_cast<std::size_t>(lost[i])];
    wanted.resize(pieces[i].size());
    if (pieces[i] != wanted) return false;
  }
  return true;
}

RC_GTEST_PROP(ErasureCodeProperty, gets_back_what_was_lost, ()) {
  const int members = *rc::gen::inRange(1, 40);
  const int parities = *rc::gen::inRange(1, 8);
  const auto code = ErasureCode::make(members, parities);
  RC_ASSERT(code.has_value());
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  const Coded coded = make_coded(*code, *rc::gen::inRange<std::size_t>(0, 300), random);
  std::vector<int> order(static_cast<std::size_t>(members));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, random);
  order.resize(static_cast<std::size_t>(*rc::gen::inRange(0, std::min(members, parities) + 1)));
  std::vector<int> pieces(static_cast<std::size_t>(parities));
  std::iota(pieces.begin(), pieces.end(), 0);
  std::ranges::shuffle(pieces, random);
  pieces.resize(order.size());
  RC_ASSERT(comes_back(*code, coded, order, pieces));
}

TEST(ErasureCode, SurvivesEveryLossThatItIsMadeFor) {
  std::mt19937_64 random(3);
  int losses = 0;
  for (const auto& [members, parities] : {std::pair{3, 1}, {4, 2}, {5, 3}}) {
    const auto code = ErasureCode::make(members, parities);
    ASSERT_TRUE(code);
    const Coded coded = make_coded(*code, 70, random);
    const unsigned all = 1U << (members + parities);
    for (unsigned gone = 0; gone < all; ++gone) {
      if (std::popcount(gone) > parities) continue;
      std::vector<int> lost;
      std::vector<int> pieces;
      for (int i = 0; i < members; ++i) {
        if ((gone >> i & 1U) != 0) lost.push_back(i);
      }
      for (int i = 0; i < parities && pieces.size() < lost.size(); ++i) {
        if ((gone >> (members + i) & 1U) == 0) pieces.push_back(i);
      }
      ASSERT_EQ(pieces.size(), lost.size());
      EXPECT_TRUE(comes_back(*code, coded, lost, pieces)) << members << "+" << parities;
      ++losses;
    }
  }
  EXPECT_EQ(losses, 5 + 22 + 93);
}

TEST(ErasureCode, AddsUpInItsFirstPiece) {
  std::mt19937_64 random(4);
  const auto code = ErasureCode::make(5, 2);
  ASSERT_TRUE(code);
  const Coded coded = make_coded(*code, 100, random);
  Content sum(100);
  for (const Content& block : coded.blocks) {
    for (std::size_t i = 0; i < block.size(); ++i) sum[i] ^= block[i];
  }
  EXPECT_EQ(coded.pieces[0], sum);
}

TEST(ErasureCode, CopiesASingleMember) {
  std::mt19937_64 random(5);
  const auto code = ErasureCode::make(1, 3);
  ASSERT_TRUE(code);
  const Coded coded = make_coded(*code, 1000, random);
  Content padded = coded.blocks[0];
  padded.resize(1000);
  for (const Content& piece : coded.pieces) EXPECT_EQ(piece, padded);
}

/// In the field of the format, with nothing but shifts.
unsigned multiply(unsigned a, unsigned b) {
  unsigned product = 0;
  for (; b != 0; b >>= 1U) {
    if ((b & 1U) != 0) product ^= a;
    a = (a << 1U) ^ ((a & 0x80U) != 0 ? 0x11dU : 0U);
  }
  return product;
}

TEST(ErasureCode, HasTheCoefficientsOfTheFormat) {
  const auto inverse = [](unsigned a) {
    unsigned b = 1;
    while (multiply(a, b) != 1) ++b;
    return b;
  };
  constexpr int members = 6;
  constexpr int parities = 4;
  const auto code = ErasureCode::make(members, parities);
  ASSERT_TRUE(code);
  const auto cauchy = [&](int parity, int member) {
    return inverse(static_cast<unsigned>(members + parity) ^ static_cast<unsigned>(member));
  };
  for (int parity = 0; parity < parities; ++parity) {
    for (int member = 0; member < members; ++member) {
      // c(p, m) / c(0, m), over the same of the first column.
      const auto scaled = [&](int column) {
        return multiply(cauchy(parity, column), inverse(cauchy(0, column)));
      };
      const unsigned wanted = multiply(scaled(member), inverse(scaled(0)));
      Content piece(1);
      code->fold(parity, member, Content{std::byte{1}}, piece);
      EXPECT_EQ(std::to_integer<unsigned>(piece[0]), wanted) << parity << ", " << member;
    }
  }
}

TEST(ErasureCode, HasAsManyPiecesAsTheFieldHasElements) {
  EXPECT_TRUE(ErasureCode::make(254, 2));
  EXPECT_EQ(ErasureCode::make(255, 2).error().kind, ErrorKind::invalid_argument);
  EXPECT_FALSE(ErasureCode::make(0, 1));
  EXPECT_FALSE(ErasureCode::make(1, 0));
}

}  // namespace
}  // namespace forebay
