// Goal: whatever the views, memory types, ranks, nodes and striping, a collective write puts
// exactly the bytes into the file that the ranks' pieces say, and a read gives them back.
// Method: ranks are threads (ThreadExchange), storage is memory (MemoryFile), the expected file is
// computed byte by byte from the trees.

#include "core/engine/collective/collective_file.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <numeric>

#include "core/engine/collective/board.hpp"
#include "core/engine/collective/collective_rig.hpp"
#include "core/engine/collective/thread_exchange.hpp"
#include "core/storage/memory_file.hpp"

namespace forebay {
namespace {

/// A byte that depends on everything that could be mixed up.
std::byte pattern(int rank, Bytes position) {
  const auto x =
      static_cast<std::uint64_t>(position) * 2654435761U + static_cast<unsigned>(rank) * 97;
  return static_cast<std::byte>((x >> 7) ^ x ^ 0x5a);
}

std::vector<Bytes> offsets_of(const TiledTree& tiled, Bytes start, Bytes length) {
  std::vector<Bytes> offsets;
  TreeCursor cursor(tiled);
  cursor.seek_data(start);
  for (Run run; cursor.next(start + length, run);) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      for (Bytes b = 0; b < run.block; ++b) offsets.push_back(run.offset + i * run.stride + b);
    }
  }
  return offsets;
}

struct World {
  int ranks = 1;
  int ranks_per_node = 1;
  StripeLayout layout = {};
  Hints hints = {};
};

/// A program's buffer with a memory type, and its bytes as a data stream.
struct Buffer {
  TiledTree type;  ///< With displacement 0: offsets into `bytes`.
  std::vector<std::byte> bytes;

  Buffer(const StridedTree& tree, Bytes extent, Bytes length) : type{tree, 0, extent} {
    Bytes top = 0;
    for (const Bytes o : offsets_of(type, 0, length)) top = std::max(top, o + 1);
    bytes.assign(static_cast<std::size_t>(top), std::byte{0xEE});
  }
  TiledTree memory() {
    return {type.tree, reinterpret_cast<std::intptr_t>(bytes.data()), type.extent};
  }
  std::byte& at(Bytes offset) { return bytes[static_cast<std::size_t>(offset)]; }
};

/// A memory type with gaps for every second rank, contiguous for the others.
Buffer make_buffer(int rank, Bytes length) {
  if (rank % 2 == 0) return {StridedTree::contiguous(1), 1, length};
  return {StridedTree::strided(2, 5, StridedTree::contiguous(3)), 11, length};
}

/// Runs one write_all of `call`, then one read_all, and checks both against brute force.
void check_round_trip(const World& world, const Call& call, Bytes initial_size = 0) {
  auto inode = std::make_shared<MemoryInode>(world.layout);
  std::vector<std::byte> expected(static_cast<std::size_t>(initial_size), std::byte{0x11});
  if (initial_size > 0) {
    Counters counters;
    ASSERT_TRUE(open_memory_file(inode, counters)->write_at(expected, 0));
  }
  for (int r = 0; r < world.ranks; ++r) {
    const auto i = static_cast<std::size_t>(r);
    Bytes position = 0;
    for (const Bytes o : offsets_of(call.views[i], call.starts[i], call.lengths[i])) {
      if (o >= static_cast<Bytes>(expected.size()))
        expected.resize(static_cast<std::size_t>(o + 1));
      expected[static_cast<std::size_t>(o)] = pattern(r, position++);
    }
  }
  std::mutex mutex;  // gtest's and rapidcheck's failures come from one thread at a time
  std::vector<std::string> problems;
  const auto complain = [&](const std::string& what) {
    const std::scoped_lock lock(mutex);
    problems.push_back(what);
  };
  run_ranks(world.ranks, world.ranks_per_node, [&](const std::shared_ptr<Exchange>& exchange) {
    const int r = exchange->rank();
    const auto i = static_cast<std::size_t>(r);
    Counters counters;
    const auto file =
        CollectiveFile::open(exchange, open_memory_file(inode, counters), world.hints, counters);
    // Twice, so that the second call goes by the remembered schedule.
    for (int repeat = 0; repeat < 2; ++repeat) {
      Buffer out = make_buffer(r, call.lengths[i]);
      Bytes position = 0;
      for (const Bytes o : offsets_of(out.type, 0, call.lengths[i])) {
        out.at(o) = pattern(r, position++);
      }
      const auto written =
          file->write_all({call.views[i], call.starts[i], out.memory(), call.lengths[i]});
      if (!written) return complain("write: " + to_string(written.error()));
      if (*written != call.lengths[i]) complain("wrong count written");
      exchange->barrier();
      Buffer in = make_buffer(r, call.lengths[i]);
      const auto got =
          file->read_all({call.views[i], call.starts[i], in.memory(), call.lengths[i]});
      if (!got) return complain("read: " + to_string(got.error()));
      if (*got != call.lengths[i]) complain("wrong count read");
      const auto content = inode->content();
      std::vector<Bytes> in_memory = offsets_of(in.type, 0, call.lengths[i]);
      std::vector<Bytes> in_file = offsets_of(call.views[i], call.starts[i], call.lengths[i]);
      std::vector<bool> selected(in.bytes.size(), false);
      for (std::size_t k = 0; k < in_file.size(); ++k) {
        selected[static_cast<std::size_t>(in_memory[k])] = true;
        if (in.at(in_memory[k]) != content[static_cast<std::size_t>(in_file[k])]) {
          return complain("read a wrong byte at " + std::to_string(in_file[k]));
        }
      }
      for (std::size_t k = 0; k < in.bytes.size(); ++k) {
        if (!selected[k] && in.bytes[k] != std::byte{0xEE}) {
          return complain("touched memory outside the type");
        }
      }
      exchange->barrier();
    }
  });
  for (const auto& problem : problems) ADD_FAILURE() << problem;
  const auto content = inode->content();
  ASSERT_EQ(content.size(), expected.size());
  const auto differ = std::mismatch(content.begin(), content.end(), expected.begin());
  ASSERT_EQ(differ.first, content.end()) << "file differs at " << differ.first - content.begin();
}

TEST(CollectiveFile, InterleavedPiecesOnOneNode) {
  check_round_trip({.ranks = 2, .ranks_per_node = 2}, interleaved(2, 8, 400'000));
}

TEST(CollectiveFile, InterleavedPiecesOnThreeNodesOverStripes) {
  check_round_trip({.ranks = 6, .ranks_per_node = 2, .layout = {.stripe_size = 4096, .servers = 3}},
                   interleaved(6, 24, 4'000));
}

TEST(CollectiveFile, HolesKeepWhatTheFileHeld) {
  Call call = interleaved(2, 16, 3'000);
  for (auto& view : call.views) view.extent = 80;  // 48 of 80 bytes belong to nobody
  check_round_trip({.ranks = 2, .ranks_per_node = 1}, call, 300'000);
}

TEST(CollectiveFile, RanksWithNothingToDoTakePart) {
  Call call = interleaved(4, 100, 50);
  call.lengths[1] = call.lengths[3] = 0;
  World world{.ranks = 4, .ranks_per_node = 2};
  world.hints.collective_write = world.hints.collective_read = Toggle::enable;
  check_round_trip(world, call, 100'000);
}

TEST(CollectiveFile, AnEmptyCallTouchesNothing) {
  Call call = interleaved(3, 8, 10);
  call.lengths = {0, 0, 0};
  check_round_trip({.ranks = 3, .ranks_per_node = 2}, call);
}

/// Reading beyond the end gives what is there, leaves the rest of the buffer alone and counts
/// right.
TEST(CollectiveFile, ReadStopsAtTheEndOfTheFile) {
  for (const int ranks_per_node : {1, 2, 4}) {
    for (const Bytes file_size : {0, 1, 4095, 10'000, 123'457}) {
      const Call call = interleaved(4, 12, 5'000);
      auto inode = std::make_shared<MemoryInode>(StripeLayout{.stripe_size = 4096, .servers = 2});
      std::vector<std::byte> content(static_cast<std::size_t>(file_size));
      for (Bytes o = 0; o < file_size; ++o) content[static_cast<std::size_t>(o)] = pattern(9, o);
      Counters setup;
      ASSERT_TRUE(open_memory_file(inode, setup)->write_at(content, 0));
      run_ranks(4, ranks_per_node, [&](const std::shared_ptr<Exchange>& exchange) {
        const auto i = static_cast<std::size_t>(exchange->rank());
        Counters counters;
        Hints hints;
        hints.collective_read = Toggle::enable;
        const auto file =
            CollectiveFile::open(exchange, open_memory_file(inode, counters), hints, counters);
        std::vector<std::byte> buffer(static_cast<std::size_t>(call.lengths[i]), std::byte{0xEE});
        const auto got =
            file->read_all({call.views[i], 0, buffer_at(buffer.data()), call.lengths[i]});
        Bytes expected = 0;
        bool right = true;
        for (const Bytes o : offsets_of(call.views[i], 0, call.lengths[i])) {
          if (o >= file_size) break;
          right &= buffer[static_cast<std::size_t>(expected++)] == pattern(9, o);
        }
        for (auto k = static_cast<std::size_t>(expected); k < buffer.size(); ++k) {
          right &= buffer[k] == std::byte{0xEE};
        }
        ASSERT_TRUE(got);
        EXPECT_EQ(*got, expected);
        EXPECT_TRUE(right) << "file of " << file_size << " bytes, rank " << i;
      });
    }
  }
}

TEST(CollectiveFile, RanksOfANodeMayMoveTheSameBytes) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ranks that write the same bytes at once race: that is their program's";
#endif
  // Together their pieces are larger than a window, which is all that a message has room for.
  constexpr Bytes length = 50'000;
  for (const int ranks_per_node : {1, 2, 3, 6}) {
    auto inode = std::make_shared<MemoryInode>(StripeLayout{.stripe_size = 4096, .servers = 2});
    Counters setup;
    const std::vector<std::byte> before(length + 100, std::byte{0x11});
    ASSERT_TRUE(open_memory_file(inode, setup)->write_at(before, 0));
    run_ranks(6, ranks_per_node, [&](const std::shared_ptr<Exchange>& exchange) {
      Counters counters;
      Hints hints;
      hints.collective_write = hints.collective_read = Toggle::enable;
      const auto file =
          CollectiveFile::open(exchange, open_memory_file(inode, counters), hints, counters);
      // All write the same into every second block of 10 bytes.
      const TiledTree view{StridedTree::contiguous(10), 7, 20};
      std::vector<std::byte> data(length / 2);
      for (Bytes i = 0; i < length / 2; ++i) data[static_cast<std::size_t>(i)] = pattern(9, i);
      ASSERT_TRUE(file->write_all({view, 0, buffer_at(data.data()), length / 2}));
      exchange->barrier();
      std::vector<std::byte> got(static_cast<std::size_t>(length));
      const TiledTree bytes{StridedTree::contiguous(1), 7, 1};
      ASSERT_TRUE(file->read_all({bytes, 0, buffer_at(got.data()), length}));
      bool right = true;
      for (Bytes i = 0; i < length; ++i) {
        const std::byte expected = i % 20 < 10 ? pattern(9, i / 20 * 10 + i % 20) : std::byte{0x11};
        right &= got[static_cast<std::size_t>(i)] == expected;
      }
      EXPECT_TRUE(right) << ranks_per_node << " ranks a node, rank " << exchange->rank();
      EXPECT_EQ(counters.exchanged_calls, 2);
    });
  }
}

TEST(CollectiveFile, LaterCallsOverwriteEarlierOnes) {
  auto inode = std::make_shared<MemoryInode>(StripeLayout{.stripe_size = 4096, .servers = 2});
  run_ranks(4, 2, [&](const std::shared_ptr<Exchange>& exchange) {
    Counters counters;
    const auto file =
        CollectiveFile::open(exchange, open_memory_file(inode, counters), {}, counters);
    std::vector<std::byte> buffer(40'000);
    for (int step = 0; step < 10; ++step) {
      const Call call = interleaved(4, 40, 1'000);
      const int as = (exchange->rank() + step) % 4;  // the pieces change hands
      std::fill(buffer.begin(), buffer.end(), static_cast<std::byte>(step * 4 + as));
      ASSERT_TRUE(file->write_all(
          {call.views[static_cast<std::size_t>(as)], 0, buffer_at(buffer.data()), 40'000}));
    }
  });
  const auto content = inode->content();
  ASSERT_EQ(content.size(), 160'000U);
  for (std::size_t o = 0; o < content.size(); ++o) {
    ASSERT_EQ(content[o], static_cast<std::byte>(36 + o / 40 % 4)) << o;
  }
}

TEST(CollectiveFile, ARepeatedCallReusesItsSchedule) {
  auto inode = std::make_shared<MemoryInode>();
  run_ranks(3, 3, [&](const std::shared_ptr<Exchange>& exchange) {
    Counters counters;
    const auto file =
        CollectiveFile::open(exchange, open_memory_file(inode, counters), {}, counters);
    const Call call = interleaved(3, 8, 100);
    const auto i = static_cast<std::size_t>(exchange->rank());
    std::vector<std::byte> buffer(800);
    for (int step = 0; step < 5; ++step) {
      ASSERT_TRUE(file->write_all({call.views[i], 0, buffer_at(buffer.data()), 800}));
    }
    EXPECT_EQ(counters.schedules_built.load(), 1);
    EXPECT_EQ(counters.schedules_reused.load(), 4);
  });
}

/// Hints that come before the first exchange count as those at the opening; later, aggregators and
/// buffers stay.
TEST(CollectiveFile, TakesHintsUntilDataWasExchanged) {
  auto inode = std::make_shared<MemoryInode>();
  run_ranks(3, 3, [&](const std::shared_ptr<Exchange>& exchange) {
    Counters counters;
    Hints hints;
    hints.collective_write = Toggle::enable;
    const auto file =
        CollectiveFile::open(exchange, open_memory_file(inode, counters), hints, counters);
    EXPECT_EQ(file->hints_in_force().aggregators, 3);
    hints.aggregators = 2;
    hints.buffer_size = 64 * KiB;
    EXPECT_FALSE(file->set_hints(hints).aggregators);
    EXPECT_EQ(file->hints_in_force().aggregators, 2);
    EXPECT_EQ(file->hints_in_force().buffer_size, 64 * KiB);

    const Call call = interleaved(3, 8, 100);
    const auto i = static_cast<std::size_t>(exchange->rank());
    std::vector<std::byte> buffer(800);
    ASSERT_TRUE(file->write_all({call.views[i], 0, buffer_at(buffer.data()), 800}));
    EXPECT_EQ(file->aggregators().size(), 2U);
    EXPECT_FALSE(file->set_hints(hints).aggregators);
    Hints late = hints;
    late.aggregators = 1;
    EXPECT_TRUE(file->set_hints(late).aggregators);
    late = hints;
    late.buffer_size = 128 * KiB;
    EXPECT_TRUE(file->set_hints(late).aggregators);
    EXPECT_EQ(file->hints_in_force().aggregators, 2);
    EXPECT_EQ(file->hints_in_force().buffer_size, 64 * KiB);
    ASSERT_TRUE(file->write_all({call.views[i], 0, buffer_at(buffer.data()), 800}));
  });
}

/// Messages between nodes shrink where the user asks for it and the data allow; what is read back
/// is what was written.
TEST(CollectiveFile, CompressedMessagesCarryTheSameBytes) {
  auto inode = std::make_shared<MemoryInode>();
  run_ranks(4, 1, [&](const std::shared_ptr<Exchange>& exchange) {
    Counters counters;
    Hints hints;
    hints.compress = Toggle::enable;
    const auto file =
        CollectiveFile::open(exchange, open_memory_file(inode, counters), hints, counters);
    const Call call = interleaved(4, 64, 5'000);
    const auto i = static_cast<std::size_t>(exchange->rank());
    std::vector<std::byte> out(320'000);
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = static_cast<std::byte>(k / 3'000 + i);
    ASSERT_TRUE(file->write_all({call.views[i], 0, buffer_at(out.data()), 320'000}));
    exchange->barrier();
    std::vector<std::byte> in(out.size());
    ASSERT_TRUE(file->read_all({call.views[i], 0, buffer_at(in.data()), 320'000}));
    EXPECT_EQ(in, out);
    std::int64_t sums[2] = {counters.message_bytes.load(), counters.message_bytes_raw.load()};
    exchange->all_reduce(sums, Reduce::sum);
    EXPECT_GT(sums[1], 0);
    EXPECT_LT(sums[0], sums[1] / 2);
  });
}

/// Where every rank's view is one long piece, calls cost no agreement; until a view changes.
TEST(CollectiveFile, SeamlessViewsAgreeOnce) {
  auto inode = std::make_shared<MemoryInode>();
  run_ranks(2, 2, [&](const std::shared_ptr<Exchange>& exchange) {
    Counters counters;
    const auto file =
        CollectiveFile::open(exchange, open_memory_file(inode, counters), {}, counters);
    const TiledTree bytes{StridedTree::contiguous(1), 0, 1};
    std::vector<std::byte> buffer(100);
    const Bytes mine = exchange->rank() * 1'000;
    ASSERT_TRUE(file->write_all({bytes, mine, buffer_at(buffer.data()), 100}));
    const auto said = counters.metadata_bytes.load();
    // Only one rank calls: a call that waited for the other would hang here.
    if (exchange->rank() == 1) {
      ASSERT_TRUE(file->write_all({bytes, mine + 100, buffer_at(buffer.data()), 100}));
    }
    EXPECT_EQ(counters.metadata_bytes.load(), said);
    file->view_changed(0);
    const Call call = interleaved(2, 8, 10);
    const auto i = static_cast<std::size_t>(exchange->rank());
    ASSERT_TRUE(file->write_all({call.views[i], 0, buffer_at(buffer.data()), 80}));
    EXPECT_EQ(counters.exchanged_calls.load(), 1);
  });
}

/// The next checkpoint is a file of its own, over the same exchange.
TEST(CollectiveFile, TheNextFileFindsViewsAndSchedules) {
  run_ranks(3, 2, [](const std::shared_ptr<Exchange>& exchange) {
    const Call call = interleaved(3, 20, 1'000);
    const auto i = static_cast<std::size_t>(exchange->rank());
    std::vector<std::byte> buffer(20'000);
    const Access access{call.views[i], 0, buffer_at(buffer.data()), 20'000};
    for (int checkpoint = 0; checkpoint < 3; ++checkpoint) {
      auto inode = std::make_shared<MemoryInode>();
      Counters counters;
      const auto file = CollectiveFile::open(exchange, open_memory_file(inode, counters),
                                             going(Toggle::enable), counters);
      ASSERT_TRUE(file->write_all(access));
      EXPECT_EQ(counters.schedules_built.load(), checkpoint == 0 ? 1 : 0);
      EXPECT_EQ(counters.schedules_reused.load(), checkpoint == 0 ? 0 : 1);
      EXPECT_EQ(counters.exchanged_calls.load(), 1);
    }
    // One that is read, or gathered otherwise, is another matter.
    auto inode = std::make_shared<MemoryInode>();
    Counters counters;
    Hints hints = going(Toggle::enable);
    hints.buffer_size = 8'192;
    const auto file =
        CollectiveFile::open(exchange, open_memory_file(inode, counters), hints, counters);
    ASSERT_TRUE(file->write_all(access));
    EXPECT_EQ(counters.schedules_built.load(), 1);
  });
}

/// A board goes from file to file as long as it fits, in the middle of its slots' rounds.
TEST(CollectiveFile, TheNextFileFindsTheBuffers) {
  auto inode = std::make_shared<MemoryInode>();
  run_ranks(3, 2, [&](const std::shared_ptr<Exchange>& exchange) {
    const Call call = interleaved(3, 20, 1'000);
    const auto i = static_cast<std::size_t>(exchange->rank());
    const Board* before = nullptr;
    Bytes buffer_size_before = 0;
    for (const Bytes buffer_size : {8'192, 8'192, 4'096, 4'096, 8'192}) {
      Counters counters;
      Hints hints = going(Toggle::enable);
      hints.buffer_size = buffer_size;
      {
        const auto file =
            CollectiveFile::open(exchange, open_memory_file(inode, counters), hints, counters);
        std::vector<std::byte> out(20'000, static_cast<std::byte>(buffer_size / 64 + 1 + i));
        ASSERT_TRUE(file->write_all({call.views[i], 0, buffer_at(out.data()), 20'000}));
        std::vector<std::byte> in(out.size());
        ASSERT_TRUE(file->read_all({call.views[i], 0, buffer_at(in.data()), 20'000}));
        EXPECT_EQ(in, out);
        // An odd number of windows: the next file begins with another slot.
        ASSERT_TRUE(file->read_all({call.views[i], 0, buffer_at(in.data()), 20}));
        EXPECT_EQ(exchange->take_board(), nullptr) << "two files would use it";
      }
      auto left = exchange->take_board();
      ASSERT_NE(left, nullptr);
      if (buffer_size == buffer_size_before) {
        EXPECT_EQ(left.get(), before);
      }
      before = left.get();
      buffer_size_before = buffer_size;
      exchange->leave(std::move(left));
    }
  });
}

TEST(CollectiveFile, IndependentStridedAccessRoundTrips) {
  auto inode = std::make_shared<MemoryInode>();
  run_ranks(3, 3, [&](const std::shared_ptr<Exchange>& exchange) {
    for (const Toggle sieve : {Toggle::automatic, Toggle::enable, Toggle::disable}) {
      Counters counters;
      Hints hints;
      hints.sieve_write = hints.sieve_read = sieve;
      const auto file =
          CollectiveFile::open(exchange, open_memory_file(inode, counters), hints, counters);
      const Call call = interleaved(3, 7, 2'000);
      const auto i = static_cast<std::size_t>(exchange->rank());
      std::vector<std::byte> out(14'000);
      std::vector<std::byte> in(14'000);
      for (std::size_t k = 0; k < out.size(); ++k) {
        out[k] = pattern(exchange->rank() + static_cast<int>(sieve), static_cast<Bytes>(k));
      }
      // Independent writers of interleaved pieces at the same time: nobody loses a byte.
      const auto written = file->write({call.views[i], 700, buffer_at(out.data()), 13'000});
      ASSERT_TRUE(written);
      exchange->barrier();
      const auto got = file->read({call.views[i], 700, buffer_at(in.data()), 13'000});
      ASSERT_TRUE(got);
      EXPECT_EQ(*got, 13'000);
      EXPECT_TRUE(std::equal(in.begin(), in.begin() + 13'000, out.begin()));
      exchange->barrier();
    }
  });
}

/// How many bytes are copied to write `length` from memory that `tree` describes; all arrive.
Bytes copied_from(const StridedTree& tree, Bytes extent, Bytes length) {
  auto inode = std::make_shared<MemoryInode>();
  Bytes copied = 0;
  run_ranks(1, 1, [&](const std::shared_ptr<Exchange>& exchange) {
    Counters counters;
    const auto file =
        CollectiveFile::open(exchange, open_memory_file(inode, counters), {}, counters);
    Buffer out(tree, extent, length);
    std::vector<std::byte> expected(7);
    for (const Bytes o : offsets_of(out.type, 0, length)) {
      out.at(o) = pattern(0, static_cast<Bytes>(expected.size()));
      expected.push_back(out.at(o));
    }
    const TiledTree view{StridedTree::contiguous(1), 7, 1};
    EXPECT_EQ(file->write({view, 0, out.memory(), length}).value_or(-1), length);
    EXPECT_EQ(inode->content(), expected);
    copied = counters.bytes_copied.load();
  });
  return copied;
}

TEST(CollectiveFile, LongBlocksOfMemoryAreWrittenFromWhereTheyLie) {
  constexpr Bytes length = 2'000'000;
  const auto rows = [](Bytes row, Bytes stride) {
    return StridedTree::strided(50, stride, StridedTree::contiguous(row));
  };
  EXPECT_EQ(copied_from(rows(1'500, 1'600), 90'000, length), 0);
  EXPECT_EQ(copied_from(rows(100, 120), 6'100, length), length);
  // A few short ones among them do not matter.
  const std::vector<Bytes> offsets{0, 5'100, 5'120};
  const std::vector<Bytes> lengths{5'000, 10, 90};
  EXPECT_EQ(copied_from(StridedTree::indexed(offsets, lengths), 6'000, length), 0);
}

/// A random monotone view without overlap between ranks: a permutation of slots of a tile is dealt
/// out to the ranks, some to nobody.
Call random_call(int ranks) {
  Call call;
  const auto slots = *rc::gen::inRange<int>(1, 12);
  const auto slot_bytes = *rc::gen::element<Bytes>(1, 3, 8, 64, 1000);
  std::vector<int> owner = *rc::gen::container<std::vector<int>>(static_cast<std::size_t>(slots),
                                                                 rc::gen::inRange<int>(-1, ranks));
  for (int r = 0; r < ranks; ++r) {
    std::vector<Bytes> offsets;
    for (int s = 0; s < slots; ++s) {
      if (owner[static_cast<std::size_t>(s)] == r) offsets.push_back(s * slot_bytes);
    }
    const bool any = !offsets.empty();
    const auto tree = any ? StridedTree::indexed(offsets, StridedTree::contiguous(slot_bytes))
                          : StridedTree::contiguous(slot_bytes);
    call.views.push_back({tree, 13, slots * slot_bytes});
    call.starts.push_back(any ? *rc::gen::inRange<Bytes>(0, 2 * tree.size()) : 0);
    call.lengths.push_back(any ? *rc::gen::inRange<Bytes>(0, 40 * tree.size()) : 0);
  }
  return call;
}

RC_GTEST_PROP(CollectiveFileProperty, RandomViewsRoundTrip, ()) {
  World world;
  world.ranks = *rc::gen::inRange(1, 7);
  world.ranks_per_node = *rc::gen::inRange(1, 5);
  if (*rc::gen::arbitrary<bool>()) {
    world.layout = {.stripe_size = *rc::gen::element<Bytes>(64, 1000, 4096),
                    .servers = *rc::gen::inRange(2, 5)};
  }
  if (*rc::gen::arbitrary<bool>())
    world.hints.buffer_size = *rc::gen::element<Bytes>(1, 4096, 100'000);
  if (*rc::gen::arbitrary<bool>()) world.hints.aggregators = *rc::gen::inRange(1, 5);
  if (*rc::gen::arbitrary<bool>()) {
    world.hints.collective_write = world.hints.collective_read = Toggle::enable;
  }
  if (*rc::gen::arbitrary<bool>()) world.hints.compress = Toggle::enable;
  check_round_trip(world, random_call(world.ranks), *rc::gen::element<Bytes>(0, 5'000));
  RC_ASSERT(!testing::Test::HasFailure());
}

}  // namespace
}  // namespace forebay
