// Goal: many files are read ahead at once by one thread, within one amount of memory, and come and
// go while reads are under way.
// Method: files in memory behind the queue of threads; programs as threads that compare every byte.

#include "core/engine/prefetch/prefetcher.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "core/engine/prefetch/prefetch_rig.hpp"

namespace forebay {
namespace {

/// A program that reads all of its file, and whose bytes are right.
void read_through(Prefetcher& prefetcher, VersionedContent& content, const ReadIntent& intent,
                  Bytes step) {
  const auto file = prefetcher.add("memory", std::make_unique<MemorySource>(content), intent);
  ASSERT_TRUE(file.has_value()) << to_string(file.error());
  (*file)->start(content.version(), VersionedContent::later_ns);
  prefetcher.wake();
  const auto expected = content.bytes();
  std::vector<std::byte> into(static_cast<std::size_t>(step));
  for (Bytes at = 0; at < content.version().size; at += step) {
    const auto served = (*file)->serve(into, at, content.version(), VersionedContent::later_ns);
    if (served.room) prefetcher.wake();
    const auto count = static_cast<std::size_t>(served.bytes);
    ASSERT_EQ(std::memcmp(into.data(), expected.data() + at, count), 0) << at;
  }
  prefetcher.release(*file);
}

TEST(Prefetcher, ServesManyProgramsAtOnce) {
  Prefetcher prefetcher(make_thread_queue(4), 4 * MiB);
  std::vector<std::thread> programs;
  for (int i = 0; i < 8; ++i) {
    programs.emplace_back([&prefetcher, i] {
      for (int round = 0; round < 3; ++round) {
        VersionedContent content(300'000 + 1000 * i);
        ReadIntent intent;
        if (i % 2 == 0) intent.willneed = {{0, 0}};
        intent.block = 16 * KiB;
        intent.budget = 128 * KiB;
        read_through(prefetcher, content, intent, 4096 * (1 + round));
      }
    });
  }
  for (std::thread& program : programs) program.join();
}

TEST(Prefetcher, LaterFilesHaveLessMemoryUntilItRunsOut) {
  Prefetcher prefetcher(make_thread_queue(2), 10 * MiB);
  VersionedContent content(100);
  ReadIntent intent;
  intent.block = 2 * MiB;
  intent.budget = 8 * MiB;
  const auto add = [&] {
    return prefetcher.add("memory", std::make_unique<MemorySource>(content), intent);
  };
  const auto first = add();
  ASSERT_TRUE(first.has_value());
  // 2 MiB are left, of which each has half of what the one before has left: four times 64 KiB are
  // the least.
  for (int later = 0; later < 3; ++later) EXPECT_TRUE(add().has_value()) << later;
  const auto last = add();
  ASSERT_FALSE(last.has_value());
  EXPECT_EQ(last.error().kind, ErrorKind::no_memory);
  prefetcher.release(*first);
  // The thread may be looking at the file that goes.
  auto again = add();
  while (!again && again.error().kind == ErrorKind::no_memory) {
    std::this_thread::yield();
    again = add();
  }
  EXPECT_TRUE(again.has_value());
}

TEST(Prefetcher, BlocksThatDoNotFitTheMemoryGetSmaller) {
  Prefetcher prefetcher(make_thread_queue(2), MiB);
  VersionedContent content(300'000);
  ReadIntent intent;
  intent.willneed = {{0, 0}};
  intent.block = GiB;
  intent.budget = 64 * KiB;
  read_through(prefetcher, content, intent, 10'000);
  intent.budget = 16 * KiB - 1;
  EXPECT_FALSE(prefetcher.add("memory", std::make_unique<MemorySource>(content), intent));
}

TEST(Prefetcher, WhereWhatWasStoredCannotBeWrittenOutTheFileIsLeftToTheKernel) {
  Prefetcher prefetcher(make_thread_queue(2), MiB);
  VersionedContent content(300'000);
  ReadIntent intent;
  intent.willneed = {{0, 0}};
  intent.block = 16 * KiB;
  auto source = std::make_unique<MemorySource>(content);
  source->written_out = fail(EIO, "write it out");
  const auto file = prefetcher.add("memory", std::move(source), intent);
  ASSERT_TRUE(file.has_value());
  (*file)->start(content.version(), VersionedContent::later_ns);
  prefetcher.wake();
  std::vector<std::byte> into(1000);
  for (bool over = false; !over;) {
    const auto served = (*file)->serve(into, 0, content.version(), VersionedContent::later_ns);
    EXPECT_EQ(served.bytes, 0);
    over = served.over;
  }
  EXPECT_EQ((*file)->figures().stopped, "what was stored in it cannot be written out");
  prefetcher.release(*file);
}

TEST(Prefetcher, AFileMayGoWhileItsReadsAreUnderWay) {
  VersionedContent content(MiB);
  for (int i = 0; i < 50; ++i) {
    Prefetcher prefetcher(make_thread_queue(4), 4 * MiB);
    ReadIntent intent;
    intent.willneed = {{0, 0}};
    auto file = prefetcher.add("memory", std::make_unique<MemorySource>(content), intent);
    ASSERT_TRUE(file.has_value());
    (*file)->start(content.version(), VersionedContent::later_ns);
    prefetcher.wake();
    prefetcher.release(*file);
    EXPECT_EQ((*file)->figures().stopped, "");
  }
}

}  // namespace
}  // namespace forebay
