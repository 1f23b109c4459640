// Goal: a program gets from memory what was foreseen, never anything that the file does not hold,
// and is left alone where nothing can be foreseen.
// Method: a file in memory; the test asks for requests and carries them out itself, so that every
// order of events is chosen. Last, random programs, plans, changes and failures against the file.

#include "core/engine/prefetch/prefetched_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>

#include "core/engine/prefetch/prefetch_rig.hpp"

namespace forebay {
namespace {

constexpr Bytes block = 8 * KiB;

struct Rig {
  explicit Rig(ReadIntent intent, Bytes size = 256 * KiB, int blocks = 8,
               std::shared_ptr<FaultPlan> faults = nullptr, Extent in_page_cache = {},
               bool is_told = true)
      : content(size) {
    auto source = std::make_unique<MemorySource>(content, std::move(faults));
    source->in_page_cache = in_page_cache;
    source->is_told = is_told;
    file = std::make_unique<PrefetchedFile>("memory", std::move(source), std::move(intent),
                                            *FetchBuffer::make(blocks * block), block);
    file->start(content.version(), VersionedContent::later_ns);
  }

  /// Bytes served, which are compared with the file.
  Bytes read(Bytes offset, Bytes length) {
    std::vector<std::byte> into(static_cast<std::size_t>(length));
    const auto served =
        file->serve(into, offset, content.version(), VersionedContent::later_ns).bytes;
    const auto expected = content.bytes();
    if (std::memcmp(into.data(), expected.data() + offset, static_cast<std::size_t>(served)) != 0) {
      ADD_FAILURE() << "wrong bytes in " << served << " at " << offset;
      return -1;
    }
    return served;
  }

  VersionedContent content;
  std::unique_ptr<PrefetchedFile> file;
};

ReadIntent reads(std::vector<Extent> extents) { return {std::move(extents), {}, {}, {}, {}, {}}; }

TEST(PrefetchedFile, ServesWhatWasDeclaredInItsOrder) {
  Rig rig(reads({{100 * KiB, 5000}, {10, 6000}, {200 * KiB, 100}}));
  EXPECT_EQ(fetch_all(*rig.file), 3);
  EXPECT_EQ(rig.read(100 * KiB, 5000), 5000);
  EXPECT_EQ(rig.read(10, 6000), 6000);
  EXPECT_EQ(rig.read(200 * KiB, 100), 100);
  const auto figures = rig.file->figures();
  EXPECT_EQ(figures.reads_served, 3);
  EXPECT_EQ(figures.bytes_served, 11100);
  EXPECT_EQ(figures.bytes_unused, 20 * KiB - 11100) << "for transfers are whole units";
  EXPECT_EQ(figures.memory_peak, 20 * KiB) << "in units of transfer";
}

TEST(PrefetchedFile, CountsByBytesWhatWasFetchedForNothing) {
  Rig rig(reads({{0, 8 * KiB}, {64 * KiB, 8 * KiB}, {128 * KiB, 8 * KiB}}));
  EXPECT_EQ(fetch_all(*rig.file), 3);
  EXPECT_EQ(rig.read(0, 1000), 1000);
  EXPECT_EQ(rig.read(500, 1000), 1000);
  EXPECT_EQ(rig.read(68 * KiB, 4 * KiB), 4 * KiB);
  const Bytes unused = 24 * KiB - 1500 - 4 * KiB;
  EXPECT_EQ(rig.file->figures().bytes_unused, unused);
  rig.file->stop("");
  EXPECT_EQ(rig.file->figures().bytes_unused, unused);
}

TEST(PrefetchedFile, WhatComesTooLateWasFetchedForNothing) {
  Rig rig(reads({{0, 8 * KiB}}));
  const auto request = rig.file->next_request();
  ASSERT_TRUE(request.has_value());
  rig.file->stop("");
  carry_out(*rig.file, *request);
  EXPECT_EQ(rig.file->figures().bytes_unused, 8 * KiB);
}

TEST(PrefetchedFile, CountsWhatItFetchesAgainAndWhatHadBeenDeclared) {
  Rig rig(reads({{0, 4096}, {100 * KiB, 4096}, {0, 8192}}));
  for (const Extent& read : {Extent{0, 4096}, Extent{100 * KiB, 8192}, Extent{0, 8192}}) {
    fetch_all(*rig.file);
    rig.read(read.offset, read.length);
  }
  const auto figures = rig.file->figures();
  EXPECT_EQ(figures.bytes_fetched, 16 * KiB);
  EXPECT_EQ(figures.bytes_refetched, 4 * KiB);
  EXPECT_EQ(figures.bytes_asked, 20 * KiB);
  EXPECT_EQ(figures.bytes_asked_declared, 16 * KiB);
}

TEST(PrefetchedFile, GoesOnAsBlocksAreReadAndKeepsToItsMemory) {
  Rig rig(reads({{0, 0}}), MiB, 6);
  for (Bytes at = 0; at < MiB; at += 4 * KiB) {
    fetch_all(*rig.file);
    ASSERT_EQ(rig.read(at, 4 * KiB), 4 * KiB) << at;
  }
  const auto figures = rig.file->figures();
  EXPECT_EQ(figures.bytes_fetched, MiB);
  EXPECT_LE(figures.memory_peak, 6 * block);
}

TEST(PrefetchedFile, ServesTheBeginningOfAReadThatGoesFurther) {
  Rig rig(reads({{0, 4096}}));
  fetch_all(*rig.file);
  EXPECT_EQ(rig.read(1000, 10000), 3096);
}

TEST(PrefetchedFile, AReaderWaitsForWhatIsOnItsWay) {
  Rig rig(reads({{0, 4096}}));
  const auto request = rig.file->next_request();
  ASSERT_TRUE(request.has_value());
  std::thread device([&] { carry_out(*rig.file, *request); });
  EXPECT_EQ(rig.read(0, 4096), 4096);
  device.join();
}

TEST(PrefetchedFile, ReadersWaitThreeTimesForWhatNeverComes) {
  Rig rig(reads({{0, 4096}}));
  const auto request = rig.file->next_request();
  ASSERT_TRUE(request.has_value());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(rig.file->figures().stopped, "");
    EXPECT_EQ(rig.read(0, 4096), 0);
  }
  EXPECT_EQ(rig.file->figures().stopped, "what is fetched does not come");
  carry_out(*rig.file, *request);
  EXPECT_EQ(rig.read(0, 4096), 0) << "it comes too late";
}

TEST(PrefetchedFile, NothingIsServedOnceTheFileIsAnotherOne) {
  Rig rig(reads({{0, 0}}));
  fetch_all(*rig.file);
  ASSERT_EQ(rig.read(0, 100), 100);
  const std::byte data[] = {std::byte{1}};
  rig.content.write(data, 5000);
  EXPECT_EQ(rig.read(5000, 100), 0);
  EXPECT_FALSE(rig.file->next_request().has_value());
  EXPECT_EQ(rig.file->figures().stopped, "the file was changed");
}

TEST(PrefetchedFile, AChangeWhileARequestIsUnderWayIsNoticedToo) {
  Rig rig(reads({{0, 4096}}));
  const auto request = rig.file->next_request();
  ASSERT_TRUE(request.has_value());
  rig.content.resize(1000);
  carry_out(*rig.file, *request);
  EXPECT_EQ(rig.read(0, 1000), 0);
}

TEST(PrefetchedFile, WaitsForAFileThatWasJustWritten) {
  VersionedContent content(10000);
  PrefetchedFile file("memory", std::make_unique<MemorySource>(content), reads({{0, 0}}),
                      *FetchBuffer::make(4 * block), block);
  file.start(content.version(), settling_time_ns - 1);
  EXPECT_FALSE(file.next_request().has_value());
  std::vector<std::byte> into(10);
  file.serve(into, 0, content.version(), settling_time_ns);
  EXPECT_TRUE(file.next_request().has_value());
}

TEST(PrefetchedFile, AFailureIsTheProgramsOnlyIfItAsks) {
  const auto faults =
      std::make_shared<FaultPlan>(std::vector<Fault>{{StorageCall::read, 1, EIO, 100, false}});
  Rig rig(reads({{0, 4096}, {64 * KiB, 4096}, {128 * KiB, 4096}}), 256 * KiB, 8, faults);
  fetch_all(*rig.file);
  EXPECT_EQ(rig.read(0, 4096), 4096);
  EXPECT_EQ(rig.read(64 * KiB, 4096), 0) << "left to the program's own call";
  EXPECT_EQ(rig.read(128 * KiB, 4096), 4096);
  EXPECT_EQ(rig.file->figures().requests_failed, 1);
}

TEST(PrefetchedFile, WithoutDeclarationTheReadsSayWhereTheyLead) {
  Rig rig({});
  EXPECT_FALSE(rig.file->next_request().has_value());
  for (Bytes at = 0; at < 16000; at += 4000) EXPECT_EQ(rig.read(at, 4000), 0);
  EXPECT_GT(fetch_all(*rig.file), 0);
  EXPECT_EQ(rig.read(16000, 4000), 4000);
}

TEST(PrefetchedFile, WrongDeclarationsAreGivenUpSoon) {
  Rig rig(reads({{0, 0}}), 4 * MiB, 64);
  // Backwards through what the plan has far ahead.
  Bytes at = 4 * MiB;
  for (int i = 0; i < 100; ++i) {
    fetch_all(*rig.file);
    at -= 10'003 + 791 * (i % 13);
    EXPECT_EQ(rig.read(at, 10), 0);
  }
  const auto figures = rig.file->figures();
  EXPECT_LE(figures.bytes_fetched, 30 * block);
  EXPECT_GE(figures.plans_given_up, 1);
}

TEST(PrefetchedFile, AnIndexThatIsReadFirstDoesNotSpeakAgainstThePlan) {
  Rig rig(reads({{MiB, 64 * KiB}}), 4 * MiB, 8);
  for (Bytes at = 0; at < 40'000; at += 1000) {
    fetch_all(*rig.file);
    EXPECT_EQ(rig.read(at % 3 == 0 ? at : 60'000 - at, 10), 0);
  }
  fetch_all(*rig.file);
  EXPECT_EQ(rig.read(MiB, 4096), 4096);
}

TEST(PrefetchedFile, AnIndexThatIsReadInBetweenPassesNothing) {
  // Declared, or between neighbours that are fetched as one.
  std::vector<Extent> apart;
  for (Bytes node = 0; node < 4 * MiB; node += 256 * KiB) {
    apart.push_back({node + 1000, 256 * KiB - 1000});
  }
  for (const auto& willneed : {std::vector{Extent{0, 0}}, apart}) {
    Rig rig(reads(willneed), 4 * MiB, 32);
    Bytes served = 0;
    for (Bytes at = 1000; at < 4 * MiB; at += 4096) {
      fetch_all(*rig.file);
      if (at % (64 * KiB) == 1000) {
        rig.read(std::min(round_down(at, 256 * KiB) + 256 * KiB, 4 * MiB - 256 * KiB) + 10, 500);
      }
      served += rig.read(at, std::min<Bytes>(4096, 4 * MiB - at));
    }
    EXPECT_GT(served, 4 * MiB - 64 * KiB);
    EXPECT_LE(rig.file->figures().bytes_fetched, 4 * MiB);
  }
}

TEST(PrefetchedFile, WhoSkipsIsFollowed) {
  // With memory for four pieces, of which it reads a little; and once over the end of what is held.
  for (const Bytes step : {block + block / 2, 2 * block, 3 * block}) {
    Rig rig(reads({{0, 0}}), 4 * MiB, 4);
    fetch_all(*rig.file);
    EXPECT_EQ(rig.read(0, 2 * KiB), 2 * KiB);
    int served = 0;
    const auto steps = static_cast<int>(4 * MiB / step);
    for (int i = 1; i < steps; ++i) {
      fetch_all(*rig.file);
      if (rig.read(i * step, 2 * KiB) > 0) ++served;
    }
    EXPECT_GT(served, steps * 9 / 10) << step;
  }
  Rig rig(reads({{0, 0}}), 4 * MiB, 4);
  fetch_all(*rig.file);
  rig.read(0, 2 * KiB);
  rig.read(4 * block - 2 * KiB, 4 * KiB);
  Bytes served = 0;
  for (Bytes at = 4 * block + 2 * KiB; at < 8 * block; at += 2 * KiB) {
    fetch_all(*rig.file);
    served += rig.read(at, 2 * KiB);
  }
  EXPECT_GT(served, 2 * block);
}

TEST(PrefetchedFile, WhatFollowsADeclarationThatIsRightIsNotGuessed) {
  Rig rig(reads({{0, 512 * KiB}}), 4 * MiB, 32);
  for (Bytes at = 0; at < 512 * KiB; at += 8 * KiB) {
    fetch_all(*rig.file);
    EXPECT_EQ(rig.read(at, 8 * KiB), 8 * KiB);
  }
  EXPECT_EQ(rig.file->figures().bytes_fetched, 512 * KiB);
  EXPECT_EQ(rig.read(512 * KiB, 8 * KiB), 0);
  EXPECT_GT(fetch_all(*rig.file), 0) << "it goes on";
  EXPECT_EQ(rig.read(520 * KiB, 8 * KiB), 8 * KiB);
}

TEST(PrefetchedFile, AProgramThatReadsNothingOfThePlanIsLeftToItsPattern) {
  Rig rig(reads({{3 * MiB, 64 * KiB}}), 4 * MiB, 8);
  for (Bytes at = 0; at < 200 * 4000; at += 4000) {
    fetch_all(*rig.file);
    rig.read(at, 4000);
  }
  const auto figures = rig.file->figures();
  EXPECT_EQ(figures.plans_given_up, 1);
  EXPECT_GT(figures.bytes_served, 100 * 4000);
}

TEST(PrefetchedFile, AProgramThatSkipsAheadIsFollowed) {
  Rig rig(reads({{0, 0}}), 4 * MiB, 8);
  fetch_all(*rig.file);
  EXPECT_EQ(rig.read(0, 4096), 4096);
  Bytes served = 0;
  for (Bytes at = 2 * MiB; at < 3 * MiB; at += 4096) {
    fetch_all(*rig.file);
    served += rig.read(at, 4096);
  }
  EXPECT_GT(served, MiB * 9 / 10);
}

TEST(PrefetchedFile, WhatThePageCacheHasIsLeftToIt) {
  Rig rig(reads({{0, 0}}), 128 * KiB, 8, nullptr, {0, 64 * KiB});
  fetch_all(*rig.file);
  EXPECT_EQ(rig.read(0, 4096), 0);
  EXPECT_EQ(rig.read(64 * KiB, 4096), 4096);
  EXPECT_EQ(rig.file->figures().bytes_resident, 64 * KiB);
}

TEST(PrefetchedFile, WhatIsLeftToThePageCacheIsForeseenAllTheSame) {
  const Extent middle{64 * KiB, 8 * KiB};
  Rig rig(reads({{0, 8 * KiB}, middle, {128 * KiB, 8 * KiB}}), 256 * KiB, 8, nullptr, middle);
  EXPECT_EQ(fetch_all(*rig.file), 2);
  EXPECT_EQ(rig.read(0, 8 * KiB), 8 * KiB);
  EXPECT_TRUE(rig.file->foresees(middle.offset + 100));
  EXPECT_FALSE(rig.file->foresees(middle.end()));
}

TEST(PrefetchedFile, WhatAnotherOpeningReadsIsNotFetched) {
  Rig rig(reads({{0, 0}}), 256 * KiB, 4);
  fetch_all(*rig.file);
  ASSERT_EQ(rig.read(0, 4 * KiB), 4 * KiB);
  rig.file->end_before(128 * KiB);
  EXPECT_FALSE(rig.file->foresees(128 * KiB));
  for (Bytes at = 4 * KiB; at < 128 * KiB; at += 4 * KiB) {
    fetch_all(*rig.file);
    ASSERT_EQ(rig.read(at, 4 * KiB), 4 * KiB) << at;
  }
  fetch_all(*rig.file);
  EXPECT_EQ(rig.file->figures().bytes_fetched, 128 * KiB);
  EXPECT_TRUE(rig.file->is_done());
}

TEST(PrefetchedFile, WhoReadsOnWhereAnotherWasToGetsThatToo) {
  Rig rig(reads({{0, 96 * KiB}, {128 * KiB, 128 * KiB}}), 256 * KiB, 4);
  for (Bytes at = 0; at < 8 * KiB; at += 4 * KiB) {
    fetch_all(*rig.file);
    ASSERT_EQ(rig.read(at, 4 * KiB), 4 * KiB) << at;
  }
  rig.file->end_before(128 * KiB);
  Bytes served = 0;
  for (Bytes at = 8 * KiB; at < 256 * KiB; at += 4 * KiB) {
    if (at >= 96 * KiB && at < 128 * KiB) continue;
    fetch_all(*rig.file);
    served += rig.read(at, 4 * KiB);
  }
  EXPECT_EQ(served, 216 * KiB - 4 * KiB) << "all but the first, which nobody expected";
  EXPECT_EQ(rig.file->figures().plans_given_up, 0);
}

TEST(PrefetchedFile, AFileThatThePageCacheHasIsLeftAlone) {
  Rig rig(reads({{0, 0}}), 128 * KiB, 8, nullptr, {0, 128 * KiB});
  EXPECT_EQ(fetch_all(*rig.file), 0);
  EXPECT_EQ(rig.file->figures().stopped, "the page cache had it");
}

TEST(PrefetchedFile, AReaderWaitsForWhatIsNextAlsoIfItHasNotBegun) {
  VersionedContent content(100'000);
  std::thread device;
  std::unique_ptr<PrefetchedFile> file;
  const auto wake = [&] {
    if (!device.joinable()) device = std::thread([&] { fetch_all(*file); });
  };
  file =
      std::make_unique<PrefetchedFile>("memory", std::make_unique<MemorySource>(content),
                                       reads({{0, 0}}), *FetchBuffer::make(4 * block), block, wake);
  file->start(content.version(), VersionedContent::later_ns);
  std::vector<std::byte> into(5000);
  EXPECT_EQ(file->serve(into, 0, content.version(), VersionedContent::later_ns).bytes, 5000);
  device.join();
  EXPECT_TRUE(std::equal(into.begin(), into.end(), content.bytes().begin()));
}

TEST(PrefetchedFile, AheadLimitsWhatIsHeld) {
  ReadIntent intent = reads({{0, 0}});
  intent.ahead = 2;
  Rig rig(intent);
  EXPECT_EQ(fetch_all(*rig.file), 2);
}

TEST(PrefetchedFile, AGapIsFetchedAlongAndPartsAreServedInTheirOrder) {
  // The last is near the first, and read after one that is far away.
  ReadIntent intent = reads({{64 * KiB, 5000}, {MiB, 4096}, {80 * KiB, 4096}});
  intent.gap = GapChoice{16 * KiB};
  Rig rig(std::move(intent), 2 * MiB, 48);
  EXPECT_EQ(fetch_all(*rig.file), 2);
  EXPECT_EQ(rig.read(64 * KiB, 5000), 5000);
  EXPECT_EQ(rig.read(MiB, 4096), 4096);
  EXPECT_EQ(rig.read(80 * KiB, 4096), 4096);
  const auto figures = rig.file->figures();
  EXPECT_EQ(figures.reads_served, 3);
  EXPECT_EQ(figures.bytes_between, 16 * KiB - 5000);
  EXPECT_EQ(figures.bytes_unused, 0);
}

TEST(PrefetchedFile, APieceOfWhichAPartIsReadLaterStays) {
  std::vector<Extent> extents{{0, 4096}, {MiB, 4096}, {8 * KiB, 4096}};
  for (Bytes i = 0; i < 100; ++i) extents.push_back({2 * MiB + i * 64 * KiB, 40 * KiB});
  ReadIntent intent = reads(extents);
  intent.gap = GapChoice{4 * KiB};
  Rig rig(std::move(intent), 16 * MiB, 48);
  fetch_all(*rig.file);
  EXPECT_EQ(rig.read(0, 4096), 4096);
  EXPECT_EQ(rig.read(MiB, 4096), 4096);
  fetch_all(*rig.file);
  EXPECT_EQ(rig.read(8 * KiB, 4096), 4096);
  for (std::size_t i = 3; i < extents.size(); ++i) {
    fetch_all(*rig.file);
    ASSERT_EQ(rig.read(extents[i].offset, extents[i].length), extents[i].length) << i;
  }
  EXPECT_LE(rig.file->figures().memory_peak, 48 * block);
}

TEST(PrefetchedFile, PartsThatThePageCacheHasAreLeftToIt) {
  ReadIntent intent = reads({{0, 4096}, {8 * KiB, 4096}, {64 * KiB, 4096}});
  intent.gap = GapChoice{4 * KiB};
  Rig rig(std::move(intent), MiB, 48, nullptr, {0, 12 * KiB});
  EXPECT_EQ(fetch_all(*rig.file), 1);
  EXPECT_EQ(rig.file->figures().bytes_resident, 8 * KiB);
}

RC_GTEST_PROP(PrefetchedFileProperty, ServedBytesAreTheFilesBytes, ()) {
  const Bytes size = *rc::gen::inRange<Bytes>(1, 60'000);
  const auto extent = rc::gen::construct<Extent>(rc::gen::inRange<Bytes>(0, 64'000),
                                                 rc::gen::inRange<Bytes>(0, 20'000));
  const auto plan = *rc::gen::container<std::vector<Extent>>(extent);
  const auto fault = *rc::gen::inRange<std::int64_t>(0, 20);
  const auto faults = std::make_shared<FaultPlan>(
      std::vector<Fault>{{StorageCall::read, fault, EIO, 10, fault % 3 == 0}});
  ReadIntent intent = reads(plan);
  intent.gap = GapChoice{*rc::gen::inRange<Bytes>(0, 20'000)};
  Rig rig(std::move(intent), size, *rc::gen::inRange(1, 20), faults);
  std::vector<ReadRequest> under_way;
  const int steps = *rc::gen::inRange(0, 120);
  Bytes position = 0;
  for (int i = 0; i < steps; ++i) {
    switch (*rc::gen::inRange(0, 12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        if (const auto request = rig.file->next_request()) under_way.push_back(*request);
        break;
      case 4: {  // Requests end in any order.
        if (under_way.empty()) break;
        const auto which = *rc::gen::inRange<std::size_t>(0, under_way.size());
        carry_out(*rig.file, under_way[which]);
        under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(which));
        break;
      }
      case 5:
        if (*rc::gen::inRange(0, 8) == 0) {
          const std::vector<std::byte> data(100, static_cast<std::byte>(i));
          rig.content.write(data, *rc::gen::inRange<Bytes>(0, size));
        }
        break;
      case 6:
        position = *rc::gen::inRange<Bytes>(0, size);
        break;
      default: {
        // A reader would wait for what is under way.
        for (const auto& request : under_way) carry_out(*rig.file, request);
        under_way.clear();
        const Bytes length =
            std::min(*rc::gen::inRange<Bytes>(1, 20'000), rig.content.version().size - position);
        if (length <= 0) break;
        RC_ASSERT(rig.read(position, length) >= 0);
        position += length;
      }
    }
  }
  for (const auto& request : under_way) carry_out(*rig.file, request);
}

/// Reads all of a file of which nobody tells what the page cache has, block by block, where the
/// kernel takes `ns` for each. The bytes that were served.
Bytes read_untold(Rig& rig, std::int64_t ns) {
  const Bytes size = rig.content.version().size;
  Bytes served = 0;
  for (Bytes at = 0; at < size; at += block) {
    fetch_all(*rig.file);
    std::vector<std::byte> into(static_cast<std::size_t>(block));
    const auto answer =
        rig.file->serve(into, at, rig.content.version(), VersionedContent::later_ns);
    served += answer.bytes;
    if (answer.asks) rig.file->took(block - answer.bytes, ns);
  }
  return served;
}

TEST(PrefetchedFile, FetchesWhatTheKernelReadsSlowly) {
  Rig rig(reads({{0, 256 * KiB}}), 256 * KiB, 8, nullptr, {}, false);
  EXPECT_EQ(read_untold(rig, 3'000'000), 30 * block) << "two of 32 pieces showed it";
  EXPECT_EQ(rig.file->figures().bytes_resident, 2 * block);
  EXPECT_EQ(rig.file->figures().stopped, "");
}

TEST(PrefetchedFile, TimesTheFirstReadOfAPieceAlone) {
  Rig rig(reads({{0, 256 * KiB}}), 256 * KiB, 8, nullptr, {}, false);
  std::set<Bytes> pieces;
  for (Bytes at = 0; at < 256 * KiB; at += KiB) {
    fetch_all(*rig.file);
    std::vector<std::byte> into(static_cast<std::size_t>(KiB));
    const auto answer =
        rig.file->serve(into, at, rig.content.version(), VersionedContent::later_ns);
    // The kernel has the rest of a piece since its first read.
    const bool is_first = pieces.insert(at / block).second;
    if (answer.asks) rig.file->took(KiB, is_first ? 3'000'000 : 1'000);
  }
  EXPECT_EQ(rig.file->figures().stopped, "");
  EXPECT_EQ(rig.file->figures().bytes_resident, 2 * block);
}

TEST(PrefetchedFile, FetchesNoMoreWhereTheKernelReadsAsFastAsMemory) {
  Rig rig(reads({{0, 256 * KiB}}), 256 * KiB, 8, nullptr, {}, false);
  EXPECT_LE(read_untold(rig, 5'000), 2 * 8 * block) << "between three reads all memory was filled";
  EXPECT_EQ(rig.file->figures().stopped, "the page cache had it");
}

TEST(PrefetchedFile, TriesTheOnlyPieceToo) {
  Rig rig(reads({{0, block}}), block, 8, nullptr, {}, false);
  fetch_all(*rig.file);
  std::vector<std::byte> into(static_cast<std::size_t>(block));
  const auto answer = rig.file->serve(into, 0, rig.content.version(), VersionedContent::later_ns);
  EXPECT_TRUE(answer.asks);
  EXPECT_EQ(answer.bytes, 0);
}

}  // namespace
}  // namespace forebay
