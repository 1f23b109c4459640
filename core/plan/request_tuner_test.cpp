// Goal: gaps are fetched along where a storage is limited by its operations, about as many as make
// the whole fastest, and nowhere else: not where bandwidth is the limit, nor where the reader is.
// Method: a plan like that of an analysis of particle collisions is fetched and read under a clock
// of its own. The storage is a model, with a limit of operations and one of bandwidth, that answers
// in bursts if asked to; or as the testbed's servers do (testbed/README.md).

#include "core/plan/request_tuner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <random>

#include "core/plan/fetch_plan.hpp"

namespace forebay {
namespace {

constexpr RequestShape usual{512 * KiB, std::nullopt};
constexpr Bytes budget = 8 * MiB;
constexpr std::size_t most_under_way = 32;

/// Extents of 60 to 430 KB with gaps of 250 KB in the mean, some of them exchanged.
std::vector<Extent> analysis(int count) {
  std::mt19937_64 random(1);
  const auto draw = [&](Bytes least, Bytes most) {
    return least + static_cast<Bytes>(random() % static_cast<std::uint64_t>(most - least));
  };
  std::vector<Extent> extents;
  Bytes offset = 0;
  for (int i = 0; i < count; ++i) {
    // The smaller of two draws: small gaps are more frequent than large ones.
    offset += std::min(draw(0, 750'000), draw(0, 750'000));
    const Bytes length = draw(60'000, 430'000);
    extents.push_back({offset, length});
    offset += length;
  }
  for (std::size_t i = 0; i + 1 < extents.size(); i += 27) std::swap(extents[i], extents[i + 1]);
  return extents;
}

/// When a request that is made at a time is answered, in seconds. Asked in the order of time.
using Storage = std::function<double(double now, Bytes bytes)>;

Storage limited(double operations_per_s, double bytes_per_s) {
  return [=, free_operation = 0.0, free_bytes = 0.0](double now, Bytes bytes) mutable {
    free_operation = std::max(free_operation, now) + 1 / operations_per_s;
    free_bytes = std::max(free_bytes, now) + static_cast<double>(bytes) / bytes_per_s;
    return std::max(free_operation, free_bytes);
  };
}

/// In each slice of time as much as the limits allow for it, at once; the rest waits for another.
Storage throttled(double operations_per_s, double bytes_per_s) {
  constexpr double slice_s = 0.1;
  return [=, slice = 0.0, operations = 0.0, moved = 0.0](double now, Bytes bytes) mutable {
    const auto begin = [&](double which) {
      slice = which;
      operations = moved = 0;
    };
    if (std::floor(now / slice_s) > slice) begin(std::floor(now / slice_s));
    if (operations + 1 > operations_per_s * slice_s || moved > bytes_per_s * slice_s) {
      begin(slice + 1);
    }
    operations += 1;
    moved += static_cast<double>(bytes);
    return std::max(now, slice * slice_s);
  };
}

/// The same, but for a longest operation, as of devices that take so many pieces of memory; how
/// much is done in each slice varies.
Storage splitting(double operations_per_s, double bytes_per_s, Bytes longest, unsigned seed) {
  constexpr double slice_s = 0.1;
  constexpr double spread = 0.3;
  constexpr double share_split = 0.6;  // Where the memory happens to lie side by side it is not.
  return [=, random = std::mt19937_64(seed), slice = 0.0, share = 1.0, operations = 0.0,
          moved = 0.0](double now, Bytes bytes) mutable {
    std::uniform_real_distribution<double> draw;
    const auto begin = [&](double which) {
      slice = which;
      operations = moved = 0;
      share = slice_s * (1 + spread * (2 * draw(random) - 1));
    };
    if (std::floor(now / slice_s) > slice) begin(std::floor(now / slice_s));
    while (bytes > 0) {
      const Bytes part = bytes > longest && draw(random) < share_split ? longest : bytes;
      if (operations + 1 > operations_per_s * share || moved > bytes_per_s * share)
        begin(slice + 1);
      operations += 1;
      moved += static_cast<double>(part);
      bytes -= part;
    }
    return std::max(now, slice * slice_s);
  };
}

Storage testbed(double latency_s, double bytes_per_s, std::size_t slots) {
  return [=, busy = 0.0, answers = std::deque<double>{}](double now, Bytes bytes) mutable {
    double start = now;
    if (answers.size() >= slots) start = std::max(start, answers[answers.size() - slots]);
    busy = std::max(start, busy) + static_cast<double>(bytes) / bytes_per_s;
    answers.push_back(busy + latency_s);
    return answers.back();
  };
}

struct Outcome {
  double seconds = 0;
  int requests = 0;
  double bytes = 0;
  double needed = 0;
  RequestShape last;
  std::optional<RequestTuner::Found> found;
  bool is_refuted = false;
};

/// Fetches all of the plan, as much ahead of the reader as the budget holds. The reader takes
/// `byte_s` for each declared byte, in the order of fetching. `known`: of a file before.
Outcome fetch(const std::vector<Extent>& extents, std::optional<Bytes> gap, Storage storage,
              double byte_s = 0, const std::optional<RequestTuner::Found>& known = {}) {
  struct Request {
    double answer;
    Bytes bytes;
    Bytes needed;
    int trial;
  };
  Bytes size = 0;
  for (const Extent& extent : extents) size = std::max(size, extent.end());
  FetchPlan plan(extents, size);
  RequestTuner tuner(usual, RequestTuner::longest_request, gap);
  if (known) tuner.begin_with(*known, plan.coming(RequestTuner::extents_to_weigh));
  Outcome outcome;
  outcome.needed = static_cast<double>(plan.bytes());
  std::deque<Request> under_way;
  Bytes held = 0;
  double now = 0;
  double waited = 0;
  for (;;) {
    while (held < budget && under_way.size() < most_under_way) {
      const auto piece = plan.next(tuner.shape());
      if (!piece) break;
      const Bytes bytes = transfer_of(piece->hull()).length;
      under_way.push_back({storage(now, bytes), bytes, piece->needed(), tuner.trial()});
      held += bytes;
      ++outcome.requests;
      outcome.bytes += static_cast<double>(bytes);
    }
    if (under_way.empty()) break;
    const Request request = under_way.front();
    under_way.pop_front();
    waited += std::max(0.0, request.answer - now);
    now = std::max(now, request.answer);
    if (tuner.arrive(request.trial, request.bytes, static_cast<std::int64_t>(now * 1e9),
                     static_cast<std::int64_t>(waited * 1e9))) {
      tuner.decide(plan.coming(RequestTuner::extents_to_weigh), plan.left());
    }
    now += byte_s * static_cast<double>(request.needed);
    held -= request.bytes;
  }
  outcome.seconds = now;
  outcome.last = tuner.shape();
  outcome.found = tuner.found();
  outcome.is_refuted = tuner.is_refuted();
  return outcome;
}

TEST(RequestTuner, FetchesGapsWhereOperationsAreTheLimit) {
  const auto extents = analysis(2000);
  const Outcome plain = fetch(extents, 0, limited(300, 200e6));
  const Outcome best = fetch(extents, 256 * KiB, limited(300, 200e6));
  const Outcome tuned = fetch(extents, std::nullopt, limited(300, 200e6));
  EXPECT_LT(tuned.seconds, 0.55 * plain.seconds);
  EXPECT_LT(tuned.seconds, 1.1 * best.seconds);
  EXPECT_LT(tuned.bytes, 1.5 * tuned.needed);
}

TEST(RequestTuner, BurstsDoNotDeceiveIt) {
  const auto extents = analysis(2000);
  const Outcome plain = fetch(extents, 0, throttled(300, 200e6));
  const Outcome tuned = fetch(extents, std::nullopt, throttled(300, 200e6));
  EXPECT_LT(tuned.seconds, 0.6 * plain.seconds);
  const Outcome wide = fetch(extents, std::nullopt, throttled(1e5, 50e6));
  EXPECT_LT(wide.bytes, 1.05 * wide.needed);
}

TEST(RequestTuner, FindsItsWayWhereLargeRequestsAreSplitAndRatesVary) {
  double plain = 0;
  double best = 0;
  double tuned = 0;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const auto extents = analysis(2600);
    const auto seconds = [&](std::optional<Bytes> gap) {
      return fetch(extents, gap, splitting(300, 200e6, 512 * KiB, seed)).seconds;
    };
    plain += seconds(0);
    best += seconds(256 * KiB);
    tuned += seconds(std::nullopt);
  }
  EXPECT_LT(tuned, 0.8 * plain);
  EXPECT_LT(tuned, 1.25 * best);
}

TEST(RequestTuner, FetchesNoGapsWhereBandwidthIsTheLimit) {
  const auto extents = analysis(500);
  const Outcome plain = fetch(extents, 0, testbed(0.003, 400e6, 10));
  const Outcome tuned = fetch(extents, std::nullopt, testbed(0.003, 400e6, 10));
  EXPECT_EQ(tuned.last, usual);
  EXPECT_LT(tuned.bytes, 1.04 * tuned.needed);
  EXPECT_LT(tuned.seconds, 1.02 * plain.seconds);
}

TEST(RequestTuner, FetchesNoGapsWhereTheReaderIsSlow) {
  const auto extents = analysis(500);
  const Outcome tuned = fetch(extents, std::nullopt, limited(300, 200e6), 1 / 30e6);
  EXPECT_EQ(tuned.last, usual);
  EXPECT_LT(tuned.bytes, 1.03 * tuned.needed);
}

TEST(RequestTuner, SmallScatteredReadsAreJoined) {
  std::vector<Extent> extents;
  for (Bytes i = 0; i < 4000; ++i) extents.push_back({i * 32 * KiB, 4 * KiB});
  const Outcome plain = fetch(extents, 0, throttled(300, 200e6));
  const Outcome tuned = fetch(extents, std::nullopt, throttled(300, 200e6));
  EXPECT_LT(tuned.seconds, 0.4 * plain.seconds);
}

/// Chunks of an array of which every fourth is read.
std::vector<Extent> chunks(Bytes count) {
  std::vector<Extent> extents;
  for (Bytes i = 0; i < count; ++i) extents.push_back({i * 256 * KiB, 64 * KiB});
  return extents;
}

TEST(RequestTuner, NoGapIsLongerThanARequest) {
  const RequestTuner tuner(usual, MiB, std::numeric_limits<Bytes>::max());
  EXPECT_EQ(tuner.gap_for_others(), MiB);
}

TEST(RequestTuner, APlanThatIsTooShortToEarnATrialBackIsLeftAlone) {
  const Outcome few = fetch(chunks(1000), std::nullopt, testbed(0.003, 400e6, 10));
  EXPECT_EQ(few.bytes, few.needed);
  const Outcome many = fetch(chunks(10'000), std::nullopt, testbed(0.003, 400e6, 10));
  EXPECT_GT(many.bytes, many.needed);
  EXPECT_EQ(many.last, usual);
}

TEST(RequestTuner, ATrialIsOfSmallerRequestsWhereTheLargestCostTooMuch) {
  const Outcome plain = fetch(chunks(1000), 0, throttled(300, 200e6));
  const Outcome tuned = fetch(chunks(1000), std::nullopt, throttled(300, 200e6));
  EXPECT_LT(tuned.seconds, 0.6 * plain.seconds);
}

TEST(RequestTuner, AGapThatWasOrderedIsKept) {
  const auto extents = analysis(300);
  const Outcome ordered = fetch(extents, 64 * KiB, testbed(0.003, 400e6, 10));
  EXPECT_EQ(ordered.last, (RequestShape{RequestTuner::longest_request, 64 * KiB}));
  const Outcome none = fetch(extents, 0, limited(300, 200e6));
  EXPECT_EQ(none.last, usual);
}

TEST(RequestTuner, ItBeginsAnewWhenTheStorageMayHaveChanged) {
  const auto extents = analysis(12'000);
  int made = 0;
  auto fast = limited(1e5, 200e6);
  auto slow = limited(300, 200e6);
  const Outcome tuned = fetch(extents, std::nullopt, [&](double now, Bytes bytes) {
    return ++made < 1000 ? fast(now, bytes) : slow(now, bytes);
  });
  EXPECT_NE(tuned.last, usual);
}

TEST(RequestTuner, OneThatWasStoppedJoinsOnlyByOrder) {
  RequestTuner tuner(usual, MiB, std::nullopt);
  tuner.stop();
  for (std::int64_t i = 0; i < 10'000; ++i) {
    EXPECT_FALSE(tuner.arrive(tuner.trial(), 4 * KiB, i * 10'000'000, i * 10'000'000));
  }
  EXPECT_EQ(tuner.shape(), usual);
  RequestTuner ordered(usual, MiB, 64 * KiB);
  ordered.stop();
  EXPECT_EQ(ordered.shape(), (RequestShape{MiB, 64 * KiB}));
  ordered.go_on();
  EXPECT_EQ(ordered.shape(), (RequestShape{MiB, 64 * KiB}));
}

TEST(RequestTuner, OneThatGoesOnMeasuresAnew) {
  RequestTuner tuner(usual, MiB, std::nullopt);
  tuner.stop();
  tuner.go_on();
  bool knows_enough = false;
  for (std::int64_t i = 0; i < 100; ++i) {
    knows_enough |= tuner.arrive(tuner.trial(), 4 * KiB, i * 10'000'000, i * 10'000'000);
  }
  EXPECT_TRUE(knows_enough);
}

TEST(RequestTuner, BeginsWithWhatAnotherFileOfTheStorageShowed) {
  const auto extents = analysis(600);
  const Outcome first = fetch(extents, std::nullopt, throttled(300, 200e6));
  ASSERT_TRUE(first.found.has_value());
  const Outcome second = fetch(extents, std::nullopt, throttled(300, 200e6), 0, first.found);
  const Outcome best = fetch(extents, 256 * KiB, throttled(300, 200e6));
  EXPECT_GT(first.seconds, 1.1 * best.seconds);
  EXPECT_LT(second.seconds, 1.05 * best.seconds);
}

TEST(RequestTuner, WhatWasFoundForOtherSizesSaysNothing) {
  const auto found = fetch(analysis(600), std::nullopt, throttled(300, 200e6)).found;
  ASSERT_TRUE(found.has_value());
  std::vector<Extent> small;
  for (Bytes i = 0; i < 400; ++i) small.push_back({i * MiB, 4 * KiB});
  RequestTuner tuner(usual, RequestTuner::longest_request, std::nullopt);
  tuner.begin_with(*found, small);
  EXPECT_EQ(tuner.shape(), usual);
  RequestTuner ordered(usual, RequestTuner::longest_request, 0);
  ordered.begin_with(*found, analysis(600));
  EXPECT_EQ(ordered.shape(), usual);
}

TEST(RequestTuner, WhatWasFoundIsRefutedWhereBandwidthIsTheLimit) {
  const auto extents = analysis(2000);
  const auto found = fetch(extents, std::nullopt, throttled(300, 200e6)).found;
  ASSERT_TRUE(found.has_value());
  const Outcome plain = fetch(extents, 0, testbed(0.003, 400e6, 10));
  const Outcome other = fetch(extents, std::nullopt, testbed(0.003, 400e6, 10), 0, found);
  EXPECT_TRUE(other.is_refuted);
  EXPECT_FALSE(other.found.has_value());
  EXPECT_EQ(other.last, usual);
  EXPECT_LT(other.seconds, 1.1 * plain.seconds);
}

TEST(RequestLoad, CountsWhatIsTransferred) {
  const std::vector<Extent> extents{{0, 4 * KiB}, {8 * KiB, 100}, {MiB, 4 * KiB}};
  const RequestLoad apart = load_of(extents, usual);
  EXPECT_EQ(apart.requests, 3);
  EXPECT_EQ(apart.bytes, 12 * KiB);
  EXPECT_EQ(apart.needed, 8 * KiB + 100);
  const RequestLoad joined = load_of(extents, {MiB, 4 * KiB});
  EXPECT_EQ(joined.requests, 2);
  EXPECT_EQ(joined.bytes, 16 * KiB);
}

}  // namespace
}  // namespace forebay
