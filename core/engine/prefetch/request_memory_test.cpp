// Goal: of several files of one storage that a program reads, only the first measures which gaps
// are worth fetching; files elsewhere learn nothing from it, and what proves wrong is forgotten.
// Method: a tuner under a clock of its own, for a storage of so many operations a second or so many
// bytes; then files in memory, whose requests are looked at.

#include "core/engine/prefetch/request_memory.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "core/engine/prefetch/prefetch_rig.hpp"
#include "core/engine/prefetch/prefetched_file.hpp"

namespace forebay {
namespace {

constexpr Bytes block = 64 * KiB;
constexpr Bytes buffer_bytes = 8 * MiB;
constexpr Bytes gap_bytes = 16 * KiB;
constexpr int count = 200;
constexpr std::uint64_t here = 7;
constexpr std::uint64_t elsewhere = 8;

std::vector<Extent> extents() {
  std::vector<Extent> result;
  for (int i = 0; i < count; ++i) result.push_back({i * (block + gap_bytes), block});
  return result;
}

FetchPlan plan() { return {extents(), count * (block + gap_bytes)}; }

/// A request takes a hundredth of a second.
constexpr std::int64_t operation_ns = 10'000'000;

RequestTuner new_tuner() {
  const Bytes most = RequestTuner::most_joined_in(buffer_bytes, block);
  return {{block, std::nullopt}, most, std::nullopt};
}

/// Answers `requests` requests, each after `ns_for(its bytes)`; the reader always waits.
template <typename NsFor>
void answer(RequestTuner& tuner, int requests, NsFor ns_for) {
  std::int64_t now_ns = 0;
  for (int i = 0; i < requests; ++i) {
    const auto bytes = static_cast<Bytes>(load_of(extents(), tuner.shape()).mean());
    now_ns += ns_for(bytes);
    if (tuner.arrive(tuner.trial(), bytes, now_ns, now_ns))
      tuner.decide(extents(), extents().size());
  }
}

RequestTuner tuned() {
  RequestTuner tuner = new_tuner();
  answer(tuner, 300, [](Bytes) { return operation_ns; });
  return tuner;
}

PrefetchedFile file_of(VersionedContent& content, std::shared_ptr<RequestMemory> memory) {
  ReadIntent intent;
  intent.willneed = extents();
  return {"memory",
          std::make_unique<MemorySource>(content),
          std::move(intent),
          *FetchBuffer::make(buffer_bytes),
          block,
          nullptr,
          std::move(memory)};
}

Bytes first_request_of(VersionedContent& content, std::shared_ptr<RequestMemory> memory) {
  PrefetchedFile file = file_of(content, std::move(memory));
  file.start(content.version(), VersionedContent::later_ns);
  const auto request = file.next_request();
  if (!request) return 0;
  carry_out(file, *request);
  return static_cast<Bytes>(request->into.size());
}

TEST(RequestMemory, TheNextFileOfTheStorageJoinsFromTheBeginning) {
  const auto memory = std::make_shared<RequestMemory>();
  memory->learn(here, tuned());
  VersionedContent content(16 * MiB, {here, 1});
  EXPECT_EQ(first_request_of(content, std::make_shared<RequestMemory>()), block);
  EXPECT_GT(first_request_of(content, memory), 4 * block);
  VersionedContent other(16 * MiB, {elsewhere, 1});
  EXPECT_EQ(first_request_of(other, memory), block);
}

TEST(RequestMemory, WhatGainsNothingAnyMoreIsForgotten) {
  RequestMemory memory;
  memory.learn(here, tuned());
  RequestTuner tuner = new_tuner();
  memory.teach(here, tuner, plan());
  ASSERT_TRUE(tuner.shape().gap.has_value());
  // Now it is bytes that count, and what is joined has a quarter more of them.
  answer(tuner, 300, [](Bytes bytes) { return bytes * operation_ns / block; });
  ASSERT_TRUE(tuner.is_refuted());
  memory.learn(here, tuner);
  RequestTuner next = new_tuner();
  memory.teach(here, next, plan());
  EXPECT_FALSE(next.shape().gap.has_value());
}

TEST(RequestMemory, WhoHasFoundNothingYetLeavesWhatIsKnown) {
  RequestMemory memory;
  memory.learn(here, tuned());
  memory.learn(here, new_tuner());
  RequestTuner tuner = new_tuner();
  memory.teach(here, tuner, plan());
  EXPECT_TRUE(tuner.shape().gap.has_value());
}

}  // namespace
}  // namespace forebay
