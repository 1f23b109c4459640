// Goal: a walk meets every byte once and in order, however little each system call moves.
// Method: random pieces, batch limits and amounts moved, against the bytes laid end to end.

#include "core/storage/piece_walk.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace forebay {
namespace {

RC_GTEST_PROP(PieceWalk, MeetsEveryByteOnceAndInOrder, ()) {
  const auto lengths = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange(0, 12));
  const Bytes limit = *rc::gen::inRange<Bytes>(1, 40);
  std::string memory;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    memory.append(lengths[i], static_cast<char>('a' + i % 26));
  }
  std::vector<iovec> pieces;
  std::size_t at = 0;
  for (const std::size_t length : lengths) {
    pieces.push_back({memory.data() + at, length});
    at += length;
  }
  RC_ASSERT(total_bytes(pieces) == static_cast<Bytes>(memory.size()));

  PieceWalk walk(pieces, limit);
  Bytes done = 0;
  for (auto batch = walk.next(); !batch.empty(); batch = walk.next()) {
    const Bytes offered = total_bytes(batch);
    RC_ASSERT(offered > 0 && offered <= limit);
    const char* expected = memory.data() + done;
    for (const iovec& piece : batch) {
      RC_ASSERT(piece.iov_len > 0u);
      RC_ASSERT(static_cast<const char*>(piece.iov_base) == expected);
      expected += piece.iov_len;
    }
    const Bytes moved = *rc::gen::inRange<Bytes>(1, offered + 1);
    walk.advance(moved);
    done += moved;
  }
  RC_ASSERT(done == static_cast<Bytes>(memory.size()));
}

TEST(PieceWalk, OffersAtMostIovMaxPieces) {
  char byte = 0;
  const std::vector<iovec> pieces(IOV_MAX + 5, iovec{&byte, 1});
  PieceWalk walk(pieces, MiB);
  EXPECT_EQ(walk.next().size(), static_cast<std::size_t>(IOV_MAX));
  walk.advance(IOV_MAX);
  EXPECT_EQ(walk.next().size(), 5u);
}

TEST(PieceWalk, CutsAHugePieceAtTheLimit) {
  // Only addresses are computed; the memory need not exist.
  char byte = 0;
  const std::vector<iovec> pieces{{&byte, static_cast<std::size_t>(3 * GiB) + 1}};
  PieceWalk walk(pieces, GiB);
  std::vector<Bytes> batches;
  for (auto batch = walk.next(); !batch.empty(); batch = walk.next()) {
    batches.push_back(total_bytes(batch));
    walk.advance(batches.back());
  }
  EXPECT_EQ(batches, (std::vector<Bytes>{GiB, GiB, GiB, 1}));
}

}  // namespace
}  // namespace forebay
