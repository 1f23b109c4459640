// Goal: programs that read a file together get its bytes, each fetched once, whoever of them
// fetches; and one that reads elsewhere, stops or ends changes nothing for the others. Method: a
// file in memory and several openings of it, as of several processes, in one test; what they want
// fetched is carried out while one of them reads. Last, programs as threads with fetching of their
// own each.

#include "core/engine/prefetch/shared_file.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "core/engine/prefetch/prefetch_rig.hpp"
#include "core/engine/prefetch/prefetcher.hpp"
#include "core/engine/prefetch/steady_time.hpp"

namespace forebay {
namespace {

constexpr Bytes block = 8 * KiB;
constexpr Bytes memory = 64 * KiB;

/// Of no other test, nor of another run of this one at the same time.
FileId id_for(std::uint64_t test) { return {static_cast<std::uint64_t>(::getpid()), test}; }

ReadIntent reads(std::vector<Extent> extents) {
  return {std::move(extents), block, memory, {}, GapChoice{0}, {}};
}

/// Some openings of a file.
struct Rig {
  Rig(std::uint64_t test, const ReadIntent& intent, int openings, Bytes size = 512 * KiB,
      bool told = true)
      : content(size, id_for(test)), is_told(told) {
    for (int i = 0; i < openings; ++i) open(intent);
  }

  void open(const ReadIntent& intent) {
    const auto version = content.version();
    auto window =
        SharedFile::window_for(version, intent, block, memory, VersionedContent::later_ns);
    if (window == nullptr) {
      ADD_FAILURE() << "no shared memory is to be had";
      return;
    }
    auto source = std::make_unique<MemorySource>(content);
    source->is_told = is_told;
    files.push_back(std::make_unique<SharedFile>("memory", std::move(source), intent,
                                                 std::move(window), version, block,
                                                 SharedWindow::Before{steady_ns(), 0}, [] {}));
  }

  /// What a read is answered, while all that is wanted is fetched. Its bytes are compared.
  ServedFile::Served read(std::size_t who, Bytes offset, Bytes length) {
    std::vector<std::byte> into(static_cast<std::size_t>(length));
    std::atomic<bool> is_over = false;
    ServedFile::Served served;
    std::thread program([&] {
      served = files[who]->serve(into, offset, content.version(), VersionedContent::later_ns);
      is_over = true;
    });
    while (!is_over.load()) {
      for (const auto& file : files) {
        if (is_fetching) fetch_all(*file);
      }
      std::this_thread::yield();
    }
    program.join();
    const auto expected = content.bytes();
    const auto count = static_cast<std::size_t>(served.bytes);
    EXPECT_EQ(std::memcmp(into.data(), expected.data() + offset, count), 0) << offset;
    return served;
  }

  Bytes fetched() const {
    Bytes sum = 0;
    for (const auto& file : files) sum += file->figures().bytes_fetched;
    return sum;
  }

  VersionedContent content;
  const bool is_told;  ///< What the page cache has.
  std::vector<std::unique_ptr<SharedFile>> files;
  bool is_fetching = true;
};

TEST(SharedFile, EachByteIsFetchedOnceForAll) {
  Rig rig(1, reads({{0, 0}}), 3);
  for (Bytes at = 0; at < 512 * KiB; at += 4 * KiB) {
    for (std::size_t who = 0; who < 3; ++who) {
      ASSERT_EQ(rig.read(who, at, 4 * KiB).bytes, 4 * KiB) << who << " at " << at;
    }
  }
  EXPECT_EQ(rig.fetched(), 512 * KiB);
  EXPECT_EQ(rig.files[0]->figures().memory_peak, memory);
  EXPECT_EQ(rig.files[1]->figures().memory_peak, 0) << "it is counted once";
  EXPECT_EQ(rig.files[2]->figures().reads_served, 128);
}

TEST(SharedFile, OneThatComesLaterIsServedFromTheBeginning) {
  Rig rig(2, reads({{0, 0}}), 2);
  for (Bytes at = 0; at < 60 * KiB; at += 4 * KiB) rig.read(0, at, 4 * KiB);
  for (Bytes at = 0; at < 512 * KiB; at += 4 * KiB) {
    ASSERT_EQ(rig.read(1, at, 4 * KiB).bytes, 4 * KiB) << at;
    if (at < 60 * KiB) continue;
    ASSERT_EQ(rig.read(0, at, 4 * KiB).bytes, 4 * KiB) << at;
  }
  EXPECT_LE(rig.fetched(), 512 * KiB + 2 * memory) << "what had gone, and what made room for it";
}

TEST(SharedFile, WhenTheOneThatFetchesEndsAnotherGoesOn) {
  Rig rig(3, reads({{0, 0}}), 2);
  for (Bytes at = 0; at < 256 * KiB; at += 4 * KiB) {
    rig.read(0, at, 4 * KiB);
    rig.read(1, at, 4 * KiB);
  }
  rig.files.erase(rig.files.begin());
  for (Bytes at = 256 * KiB; at < 512 * KiB; at += 4 * KiB) {
    ASSERT_EQ(rig.read(0, at, 4 * KiB).bytes, 4 * KiB) << at;
  }
}

TEST(SharedFile, WhatIsOnItsWayForOneThatEndsIsForTheOthers) {
  Rig rig(4, reads({{0, 0}}), 2);
  rig.read(0, 0, 4 * KiB);
  rig.read(1, 0, 4 * KiB);
  for (Bytes at = 4 * KiB; at < 48 * KiB; at += 4 * KiB) rig.read(0, at, 4 * KiB);
  rig.is_fetching = false;
  rig.read(1, 4 * KiB, 32 * KiB);
  const auto request = rig.files[0]->next_request();
  ASSERT_TRUE(request.has_value());
  rig.files[0]->stop("");
  carry_out(*rig.files[0], *request);
  EXPECT_EQ(rig.read(1, request->offset, 4 * KiB).bytes, 4 * KiB);
}

TEST(SharedFile, WhatAnotherOpeningReadsIsNotFetchedButForOthers) {
  Rig rig(7, reads({{0, 0}}), 2);
  rig.read(0, 0, 4 * KiB);
  rig.files[0]->end_before(256 * KiB);
  for (Bytes at = 4 * KiB; at < 256 * KiB; at += 4 * KiB) {
    ASSERT_EQ(rig.read(0, at, 4 * KiB).bytes, 4 * KiB) << at;
  }
  EXPECT_TRUE(rig.files[0]->is_done());
  EXPECT_EQ(rig.fetched(), 256 * KiB);
  // One that comes now, or has fallen behind, reads all of it.
  for (Bytes at = 200 * KiB; at < 512 * KiB; at += 4 * KiB) {
    const Bytes served = rig.read(1, at, 4 * KiB).bytes;
    if (at > 204 * KiB) ASSERT_EQ(served, 4 * KiB) << at;  // Its first read may be of an index.
  }
  EXPECT_GE(rig.files[1]->figures().bytes_fetched, 256 * KiB);
}

TEST(SharedFile, WhoReadsOnWhereAnotherWasToGetsThatToo) {
  Rig rig(10, reads({{0, 0}}), 1);
  rig.read(0, 0, 4 * KiB);
  rig.files[0]->end_before(256 * KiB);
  for (Bytes at = 4 * KiB; at < 512 * KiB; at += 4 * KiB) {
    ASSERT_EQ(rig.read(0, at, 4 * KiB).bytes, 4 * KiB) << at;
  }
  EXPECT_EQ(rig.fetched(), 512 * KiB);
}

TEST(SharedFile, GroupsReadApart) {
  const auto intent = reads({{0, 0}});
  Rig rig(11, intent, 1);
  const auto version = rig.content.version();
  auto window =
      SharedFile::window_for(version, intent, block, memory, VersionedContent::later_ns, 1);
  ASSERT_NE(window, nullptr);
  EXPECT_TRUE(window->is_maker());
  rig.read(0, 0, 4 * KiB);
  EXPECT_TRUE(window->others().empty());
}

TEST(SharedFile, WhoFetchesNoFurtherLeavesThatToOthers) {
  Rig rig(8, reads({{0, 0}}), 2);
  const auto read_both = [&rig](Bytes from, Bytes to) {
    for (Bytes at = from; at < to; at += 4 * KiB) {
      rig.read(0, at, 4 * KiB);
      rig.read(1, at, 4 * KiB);
    }
  };
  read_both(0, 96 * KiB);
  rig.files[0]->end_before(128 * KiB);
  read_both(96 * KiB, 124 * KiB);
  // It does not come to the end of its part, and the other reads on, further than was fetched.
  for (Bytes at = 124 * KiB; at < 180 * KiB; at += 4 * KiB) {
    ASSERT_EQ(rig.read(1, at, 4 * KiB).bytes, 4 * KiB) << at;
  }
  EXPECT_LE(rig.files[0]->figures().bytes_fetched, 96 * KiB + memory);
  EXPECT_GT(rig.files[1]->figures().bytes_fetched, 0);
}

TEST(SharedFile, ForeseesWhatIsReadNextWhereverItComesFrom) {
  constexpr Bytes far = 4 * MiB;
  const auto intent = reads({{0, 4 * KiB}, {far, 4 * KiB}, {2 * far, far}});
  const VersionedContent like(4 * far, id_for(9));
  auto window =
      SharedFile::window_for(like.version(), intent, block, memory, VersionedContent::later_ns);
  ASSERT_NE(window, nullptr);
  VersionedContent content(4 * far, id_for(9));
  auto source = std::make_unique<MemorySource>(content);
  source->in_page_cache = {far, 4 * KiB};
  SharedFile file("memory", std::move(source), intent, std::move(window), content.version(), block,
                  SharedWindow::Before{steady_ns(), 0, 0}, [] {});
  std::vector<std::byte> into(static_cast<std::size_t>(4 * KiB));
  fetch_all(file);
  ASSERT_EQ(file.serve(into, 0, content.version(), VersionedContent::later_ns).bytes, 4 * KiB);
  fetch_all(file);
  EXPECT_TRUE(file.foresees(far)) << "the page cache has it, and it is gone past";
  EXPECT_TRUE(file.foresees(2 * far));
  EXPECT_FALSE(file.foresees(2 * far + far / 2)) << "megabytes later";
}

TEST(SharedFile, OneThatDoesNotReadOnIsLeftBehind) {
  Rig rig(5, reads({{0, 0}}), 2);
  rig.read(1, 0, 4 * KiB);
  for (Bytes at = 0; at < 512 * KiB; at += 4 * KiB) rig.read(0, at, 4 * KiB);
  EXPECT_EQ(rig.files[0]->figures().reads_served, 128);
  EXPECT_TRUE(rig.read(1, 4 * KiB, 4 * KiB).left);
  EXPECT_FALSE(rig.files[1]->next_request().has_value());
}

TEST(SharedFile, WhenAllMemoryIsLostTheOthersGoOnInOtherWays) {
  const auto intent = reads({{0, 0}});
  Rig rig(15, intent, 1);
  const auto version = rig.content.version();
  const pid_t child = ::fork();
  if (child == 0) {
    // It dies with all of it on its way.
    const auto window =
        SharedFile::window_for(version, intent, block, memory, VersionedContent::later_ns);
    window->enter(0, {}, 0);
    window->begin_fetching();
    window->begin_piece({0, memory}, memory, 0, memory);
    ::raise(SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const auto served = rig.read(0, 0, 4 * KiB);
  EXPECT_TRUE(served.left && served.again);
  rig.open(intent);
  EXPECT_EQ(rig.read(1, 0, 4 * KiB).bytes, 4 * KiB) << "in another window";
}

TEST(SharedFile, OneThatReadsElsewhereGoesItsOwnWay) {
  Rig rig(6, reads({{0, 16 * KiB}, {256 * KiB, 64 * KiB}, {16 * KiB, 64 * KiB}}), 1);
  rig.read(0, 256 * KiB, 4 * KiB);
  rig.read(0, 260 * KiB, 4 * KiB);
  EXPECT_FALSE(rig.read(0, 0, 4 * KiB).left);
  EXPECT_FALSE(rig.read(0, 4 * KiB, 4 * KiB).left);
  const auto last = rig.read(0, 8 * KiB, 4 * KiB);
  EXPECT_TRUE(last.left);
  EXPECT_FALSE(last.over);
}

TEST(SharedFile, AnIndexThatIsReadInBetweenPassesNothing) {
  // Declared, or between neighbours that are fetched as one.
  std::vector<Extent> apart;
  for (Bytes node = 0; node < 512 * KiB; node += 32 * KiB) {
    apart.push_back({node + 1000, 32 * KiB - 1000});
  }
  std::uint64_t test = 100;
  for (const auto& willneed : {std::vector{Extent{0, 0}}, apart}) {
    Rig rig(test++, reads(willneed), 2);
    for (std::size_t who = 0; who < 2; ++who) rig.read(who, 480 * KiB + 10, 500);
    for (Bytes at = 1000; at < 512 * KiB - 4 * KiB; at += 4 * KiB) {
      for (std::size_t who = 0; who < 2; ++who) {
        if (at % (32 * KiB) == 1000)
          rig.read(who, std::min(round_down(at, 32 * KiB) + 32 * KiB, 480 * KiB) + 10, 500);
        ASSERT_EQ(rig.read(who, at, 4 * KiB).bytes, 4 * KiB) << who << " at " << at;
      }
    }
    EXPECT_EQ(rig.fetched(), 512 * KiB);
  }
}

TEST(SharedFile, WhoSkipsIsFollowed) {
  Rig rig(110, reads({{0, 0}}), 2);
  int served = 0;
  for (Bytes at = 0; at < 500 * KiB; at += 20 * KiB) {
    for (std::size_t who = 0; who < 2; ++who) {
      if (rig.read(who, at, 4 * KiB).bytes == 4 * KiB) ++served;
    }
  }
  EXPECT_GT(served, 46) << "of 50";
  EXPECT_EQ(rig.read(0, 508 * KiB, 4 * KiB).bytes, 4 * KiB);
  EXPECT_TRUE(rig.files[0]->is_done());
}

TEST(SharedFile, AReadLongerThanTheMemoryIsServedBehindASkip) {
  Rig rig(111, reads({{0, 0}}), 1);
  rig.read(0, 0, 4 * KiB);
  EXPECT_EQ(rig.read(0, 28 * KiB, 200 * KiB).bytes, 200 * KiB);
  EXPECT_EQ(rig.read(0, 228 * KiB, 4 * KiB).bytes, 4 * KiB);
}

TEST(SharedFile, WhoSkipsMoreThanIsThereDoesNotWait) {
  Rig rig(113, reads({{0, 0}}), 1);
  rig.read(0, 0, 4 * KiB);
  for (Bytes at = 50 * KiB; at < 500 * KiB; at += 50 * KiB) {
    EXPECT_FALSE(rig.read(0, at, 4 * KiB).left) << at;
  }
  EXPECT_LT(rig.files[0]->figures().waited_ns, std::chrono::nanoseconds(longest_wait).count());
}

TEST(SharedFile, WhoReadsTheBeginningAgainAndAgainGoesOn) {
  Rig rig(114, reads({{0, 0}}), 2);
  for (Bytes at = 8 * KiB; at < 500 * KiB; at += 8 * KiB) {
    for (std::size_t who = 0; who < 2; ++who) {
      rig.read(who, 0, 512);
      ASSERT_EQ(rig.read(who, at, 8 * KiB).bytes, 8 * KiB) << who << " at " << at;
    }
  }
}

TEST(SharedFile, OneThatReadsBackwardsFromTheBeginningGoesItsOwnWay) {
  Rig rig(112, reads({{0, 0}}), 1);
  EXPECT_FALSE(rig.read(0, 400 * KiB, 4 * KiB).left);
  EXPECT_FALSE(rig.read(0, 390 * KiB, 4 * KiB).left);
  EXPECT_TRUE(rig.read(0, 380 * KiB, 4 * KiB).left);
}

TEST(SharedFile, AProgramThatReadsNothingOfThePlanMayHaveAPattern) {
  Rig rig(7, reads({{256 * KiB, 64 * KiB}}), 1);
  ServedFile::Served served;
  for (Bytes at = 0; at < 100'000 && !served.left; at += 1000) served = rig.read(0, at, 1000);
  EXPECT_TRUE(served.left && served.astray);
  EXPECT_FALSE(served.over);
  EXPECT_TRUE(rig.files[0]->is_done());
  EXPECT_EQ(rig.fetched(), 0);
  EXPECT_EQ(rig.files[0]->figures().plans_given_up, 1);
}

TEST(SharedFile, NothingIsServedOnceTheFileIsAnotherOne) {
  Rig rig(8, reads({{0, 0}}), 2);
  rig.read(0, 0, 4 * KiB);
  rig.read(1, 0, 4 * KiB);
  const std::byte data[] = {std::byte{1}};
  rig.content.write(data, 5000);
  for (std::size_t who = 0; who < 2; ++who) {
    const auto served = rig.read(who, 4 * KiB, 4 * KiB);
    EXPECT_EQ(served.bytes, 0);
    EXPECT_TRUE(served.over);
    EXPECT_EQ(rig.files[who]->figures().stopped, "the file was changed");
  }
}

TEST(SharedFile, WhatWasReadOfAChangedFileIsForNobody) {
  Rig rig(9, reads({{0, 0}}), 1);
  rig.read(0, 0, 4 * KiB);
  rig.is_fetching = false;
  for (Bytes at = 4 * KiB; at < 32 * KiB; at += 4 * KiB) rig.read(0, at, 4 * KiB);
  const auto request = rig.files[0]->next_request();
  ASSERT_TRUE(request.has_value());
  rig.content.resize(500 * KiB);
  carry_out(*rig.files[0], *request);
  EXPECT_EQ(rig.files[0]->figures().stopped, "the file was changed");
}

TEST(SharedFile, AFailureIsTheProgramsOnlyIfItAsks) {
  const auto intent = reads({{0, 4096}, {64 * KiB, 4096}, {128 * KiB, 4096}});
  Rig rig(10, intent, 0);
  const auto version = rig.content.version();
  const auto faults =
      std::make_shared<FaultPlan>(std::vector<Fault>{{StorageCall::read, 1, EIO, 100, false}});
  rig.files.push_back(std::make_unique<SharedFile>(
      "memory", std::make_unique<MemorySource>(rig.content, faults), intent,
      SharedFile::window_for(version, intent, block, memory, VersionedContent::later_ns), version,
      block, SharedWindow::Before{steady_ns(), 0}, [] {}));
  EXPECT_EQ(rig.read(0, 0, 4096).bytes, 4096);
  EXPECT_EQ(rig.read(0, 64 * KiB, 4096).bytes, 0);
  EXPECT_EQ(rig.read(0, 128 * KiB, 4096).bytes, 4096);
  EXPECT_EQ(rig.files[0]->figures().requests_failed, 1);
}

TEST(SharedFile, WhatCameInPartsOrNotAtAllIsReadByEachForHimself) {
  for (const int os_errno : {0, EIO}) {
    Rig rig(os_errno == 0 ? 16 : 17, reads({{0, 0}}), 2);
    for (std::size_t who = 0; who < 2; ++who) rig.read(who, 0, 4 * KiB);
    for (Bytes at = 4 * KiB; at < 48 * KiB; at += 4 * KiB) rig.read(0, at, 4 * KiB);
    rig.is_fetching = false;
    rig.read(1, 4 * KiB, 32 * KiB);
    const auto request = rig.files[0]->next_request();
    ASSERT_TRUE(request.has_value());
    const Bytes part = os_errno == 0 ? 4 * KiB : 0;
    rig.files[0]->ended({request->tag, part, os_errno});
    for (std::size_t who = 0; who < 2; ++who) {
      EXPECT_EQ(rig.read(who, request->offset, 8 * KiB).bytes, 0) << who << ", " << os_errno;
    }
    rig.is_fetching = true;
    for (std::size_t who = 0; who < 2; ++who) {
      EXPECT_EQ(rig.read(who, request->offset + 8 * KiB, 4 * KiB).bytes, 4 * KiB) << who;
    }
    EXPECT_EQ(rig.files[0]->figures().requests_failed, 1);
    EXPECT_GE(rig.files[0]->figures().bytes_unused, part);
  }
}

TEST(SharedFile, GapsAreFetchedAlongAndPartsAreServedInTheirOrder) {
  ReadIntent intent = reads({{64 * KiB, 5000}, {MiB, 4096}, {76 * KiB, 4096}});
  intent.gap = GapChoice{16 * KiB};
  intent.block = 16 * KiB;
  VersionedContent content(2 * MiB, id_for(11));
  const auto version = content.version();
  SharedFile file(
      "memory", std::make_unique<MemorySource>(content), intent,
      SharedFile::window_for(version, intent, 16 * KiB, memory, VersionedContent::later_ns),
      version, 16 * KiB, {steady_ns(), 0}, [] {});
  std::vector<std::byte> into(5000);
  std::thread device([&] {
    int count = 0;
    while (count < 2) {
      count += fetch_all(file);
      std::this_thread::yield();
    }
  });
  const auto serve = [&](Bytes offset, Bytes length) {
    return file
        .serve(std::span(into).first(static_cast<std::size_t>(length)), offset, version,
               VersionedContent::later_ns)
        .bytes;
  };
  EXPECT_EQ(serve(64 * KiB, 5000), 5000);
  EXPECT_EQ(serve(MiB, 4096), 4096);
  EXPECT_EQ(serve(76 * KiB, 4096), 4096);
  device.join();
  EXPECT_EQ(file.figures().requests, 2);
  EXPECT_EQ(file.figures().bytes_between, 12 * KiB - 5000);
}

TEST(SharedFile, AProgramMayReadItAllOnceMore) {
  Rig rig(12, reads({{0, 128 * KiB}}), 2);
  for (int round = 0; round < 2; ++round) {
    for (Bytes at = 0; at < 128 * KiB; at += 4 * KiB) {
      for (std::size_t who = 0; who < 2; ++who) {
        ASSERT_EQ(rig.read(who, at, 4 * KiB).bytes, 4 * KiB) << who << " at " << at;
      }
    }
  }
}

TEST(SharedFile, AFileThatThePageCacheHasIsLeftToIt) {
  const auto intent = reads({{0, 0}});
  VersionedContent content(2 * MiB, id_for(13));
  const auto version = content.version();
  auto source = std::make_unique<MemorySource>(content);
  source->in_page_cache = {0, 2 * MiB};
  SharedFile file(
      "memory", std::move(source), intent,
      SharedFile::window_for(version, intent, block, memory, VersionedContent::later_ns), version,
      block, {steady_ns(), 0}, [] {});
  std::atomic<bool> is_over = false;
  std::thread device([&] {
    while (!is_over.load()) {
      EXPECT_EQ(fetch_all(file), 0);
      std::this_thread::yield();
    }
  });
  std::vector<std::byte> into(4096);
  EXPECT_EQ(file.serve(into, 0, version, VersionedContent::later_ns).bytes, 0);
  is_over = true;
  device.join();
  EXPECT_EQ(file.figures().stopped, "the page cache had it");
}

TEST(SharedFile, ProgramsOfDifferentSpeedHaveTheRightBytes) {
  const ReadIntent intent = reads({{0, 0}});
  VersionedContent content(MiB + 1234, id_for(14));
  const auto expected = content.bytes();
  std::atomic<Bytes> served = 0;
  const auto program = [&](int number) {
    Prefetcher prefetcher(make_thread_queue(4), 4 * MiB);
    const auto file =
        prefetcher.add_shared("memory", std::make_unique<MemorySource>(content), intent,
                              content.version(), {steady_ns(), 0}, VersionedContent::later_ns);
    ASSERT_TRUE(file.has_value()) << to_string(file.error());
    const Bytes step = 1000 + 3000 * number;
    std::vector<std::byte> into(static_cast<std::size_t>(step));
    // The last one ends early.
    const Bytes end = number == 3 ? MiB / 2 : MiB + 1234;
    for (Bytes at = 0; at < end; at += step) {
      const auto part = std::span(into).first(static_cast<std::size_t>(std::min(step, end - at)));
      const auto answer = (*file)->serve(part, at, content.version(), VersionedContent::later_ns);
      if (answer.room) prefetcher.wake();
      const auto count = static_cast<std::size_t>(answer.bytes);
      ASSERT_EQ(std::memcmp(into.data(), expected.data() + at, count), 0) << at;
      served += answer.bytes;
    }
    prefetcher.release(*file);
  };
  std::vector<std::thread> programs;
  programs.reserve(4);
  for (int number = 0; number < 4; ++number) programs.emplace_back(program, number);
  for (std::thread& one : programs) one.join();
  EXPECT_GT(served.load(), 0);
}

/// Two read a file in turns, of which nobody tells what the page cache has, where the kernel takes
/// `ns` for a read. The bytes that were served.
Bytes read_untold(Rig& rig, std::int64_t ns) {
  Bytes served = 0;
  for (Bytes at = 0; at < 512 * KiB; at += 4 * KiB) {
    for (std::size_t who = 0; who < 2; ++who) {
      const auto answer = rig.read(who, at, 4 * KiB);
      served += answer.bytes;
      if (answer.asks) rig.files[who]->took(4 * KiB - answer.bytes, ns);
    }
  }
  return served;
}

TEST(SharedFile, FetchesWhatTheKernelReadsSlowly) {
  Rig rig(18, reads({{0, 0}}), 2, 512 * KiB, false);
  EXPECT_GT(read_untold(rig, 3'000'000), 2 * 512 * KiB * 7 / 8);
  EXPECT_GT(rig.files[0]->figures().bytes_resident + rig.files[1]->figures().bytes_resident, 0);
  EXPECT_LT(rig.fetched(), 512 * KiB);
}

TEST(SharedFile, WhatAnotherHasReadShowsNothing) {
  Rig rig(20, reads({{0, 0}}), 2, 512 * KiB, false);
  ASSERT_TRUE(rig.read(0, 0, 4 * KiB).asks) << "it comes first, and fetches";
  rig.files[0]->took(4 * KiB, 3'000'000);
  bool fetcher_asked = false;
  for (Bytes at = 4 * KiB; at < 512 * KiB; at += 4 * KiB) {
    const auto other = rig.read(1, at, 4 * KiB);
    const auto own = rig.read(0, at, 4 * KiB);
    fetcher_asked = fetcher_asked || own.asks;
    if (other.asks) rig.files[1]->took(4 * KiB, 3'000'000);
    if (own.asks) rig.files[0]->took(4 * KiB, 1'000);
  }
  EXPECT_FALSE(fetcher_asked);
  EXPECT_GT(rig.files[0]->figures().bytes_resident, block) << "more than one was left for a trial";
  EXPECT_EQ(rig.files[0]->figures().stopped, "");
}

TEST(SharedFile, FetchesNoMoreWhereTheKernelReadsAsFastAsMemory) {
  Rig rig(19, reads({{0, 0}}), 2, 512 * KiB, false);
  read_untold(rig, 5'000);
  for (const auto& file : rig.files) EXPECT_EQ(file->figures().stopped, "the page cache had it");
  EXPECT_LT(rig.fetched(), 480 * KiB) << "each of the two has had three reads to find out";
}

}  // namespace
}  // namespace forebay
