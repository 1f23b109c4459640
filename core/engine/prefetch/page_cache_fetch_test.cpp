// Goal: what is declared comes into the page cache whole, whatever the kernel makes of advice, and
// goes when it was passed.  Method: a source that is a page cache, which cuts advice short, ignores
// it or refuses it.

#include "core/engine/prefetch/page_cache_fetch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <set>
#include <vector>

#include "core/plan/fetch_plan.hpp"

namespace forebay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Bytes unit = direct_alignment;

/// A kernel that takes advice of at most `longest` bytes; none: refuses it.
class CachedSource final : public FetchSource {
 public:
  explicit CachedSource(std::optional<Bytes> longest) : longest_(longest) {}
  Result<Bytes> read(std::span<std::byte> into, Bytes offset) override {
    ++reads;
    if (keeps_reads) enter({offset, static_cast<Bytes>(into.size())});
    return static_cast<Bytes>(into.size());
  }
  Result<std::int64_t> time_read(std::span<std::byte> into, Bytes offset) override {
    const bool was_there = pages.count(offset) > 0;
    EXPECT_TRUE(read(into, offset));
    return was_there ? 1'000 : 3'000'000;
  }
  std::optional<FileVersion> version() override { return std::nullopt; }
  bool tells_residence() const override { return is_told; }
  Bytes resident(Extent extent) override {
    if (!is_told) return 0;
    Bytes count = 0;
    for (Bytes at = extent.offset; at < extent.end(); at += unit) count += pages.count(at) * unit;
    return count;
  }
  Status advise(Extent extent, bool is_needed) override {
    if (!longest_) return tl::unexpected(error_from_errno(EINVAL, "advise"));
    if (is_needed) {
      enter({extent.offset, std::min(extent.length, *longest_)});
    } else {
      for (Bytes at = extent.offset; at < extent.end(); at += unit) pages.erase(at);
    }
    return {};
  }
  int descriptor() const override { return -1; }

  int reads = 0;
  bool keeps_reads = true;
  bool is_told = true;  ///< What is there.
  std::set<Bytes> pages;

 private:
  void enter(Extent extent) {
    for (Bytes at = extent.offset; at < extent.end(); at += unit) pages.insert(at);
  }
  const std::optional<Bytes> longest_;
};

TEST(PageCacheFetch, AdviceIsNoLongerThanTheKernelTakes) {
  CachedSource source(2 * unit);
  PageCacheFetch fetch(nullptr, 100 * unit);
  const auto first = fetch.bring(source, {10, 7 * unit});
  EXPECT_EQ(first.fetched, 7 * unit) << "in units of transfer, but for the one of the check";
  EXPECT_EQ(source.pages.size(), 8U);
  const auto second = fetch.bring(source, {20 * unit, 7 * unit});
  EXPECT_EQ(second.requests, 4);
  EXPECT_EQ(source.pages.size(), 15U);
  EXPECT_EQ(source.reads, 1);
}

TEST(PageCacheFetch, AdviceThatDoesNothingBecomesReads) {
  CachedSource source(0);
  PageCacheFetch fetch(nullptr, 100 * unit);
  fetch.bring(source, {0, 80 * unit});
  EXPECT_EQ(source.pages.size(), 80U);
  EXPECT_EQ(source.reads, 3);
}

TEST(PageCacheFetch, NothingIsBroughtWhereReadsPassThePageCache) {
  CachedSource source(MiB);
  source.keeps_reads = false;
  PageCacheFetch fetch(nullptr, 100 * unit);
  EXPECT_EQ(fetch.bring(source, {0, 4 * unit}).fetched, 0);
  EXPECT_EQ(fetch.bring(source, {0, 4 * unit}).requests, 0);
  EXPECT_TRUE(fetch.is_useless());
  EXPECT_THAT(source.pages, IsEmpty());
}

TEST(PageCacheFetch, WhoIsNotToldWhatIsThereFindsItOut) {
  constexpr Extent all{0, 300 * KiB};
  const std::vector<ReadAdvice::Item> passed = {{all, false, ReadAdvice::Kind::between, {}}};
  CachedSource source(128 * KiB);
  source.is_told = false;
  PageCacheFetch cold(nullptr, all.length);
  EXPECT_EQ(cold.bring(source, all).fetched, all.length);
  EXPECT_EQ(source.pages.size(), 75U) << "advice was not cut short";
  PageCacheFetch warm(nullptr, all.length);
  const auto brought = warm.bring(source, all);
  EXPECT_EQ(brought.resident, all.length);
  EXPECT_EQ(brought.requests, 0);
  EXPECT_THAT(warm.let_go(source, passed), IsEmpty());
  EXPECT_EQ(source.pages.size(), 75U) << "it may be another's";
  cold.let_go(source, passed);
  EXPECT_THAT(source.pages, IsEmpty());
  source.keeps_reads = false;
  PageCacheFetch useless(nullptr, all.length);
  EXPECT_EQ(useless.bring(source, all).requests, 0);
  EXPECT_TRUE(useless.is_useless());
}

TEST(PageCacheFetch, WhatIsThereIsNotFetchedAndARefusalIsCounted) {
  CachedSource source(std::nullopt);
  source.pages = {0, unit};
  PageCacheFetch fetch(nullptr, 100 * unit);
  EXPECT_EQ(fetch.bring(source, {0, 2 * unit}).resident, 2 * unit);
  const auto refused = fetch.bring(source, {0, 3 * unit});
  EXPECT_EQ(refused.failed, 1);
  EXPECT_EQ(refused.fetched, 0);
}

/// Part of a file of four.
constexpr Extent part(Bytes number) {
  return {number * NodeReaders::smallest_unit, NodeReaders::smallest_unit};
}
constexpr Extent all_parts{0, part(4).offset};

std::set<Bytes> pages_of(Extent extent) {
  std::set<Bytes> pages;
  for (Bytes at = extent.offset; at < extent.end(); at += unit) pages.insert(at);
  return pages;
}

/// One of the readers of such a file, of which the test runs some at a time.
PageCacheFetch reader_of(const std::vector<Extent>& wanted, Bytes kept_most = MiB) {
  const FileVersion version{{static_cast<std::uint64_t>(::getpid()), 1}, all_parts.length, 0, 0};
  return {NodeReaders::join(version, wanted, kept_most), all_parts.length};
}

/// Of that file's pages that were `there` before, and that the program read by itself in the first
/// part, what is left when it has passed all but the last part.
std::set<Bytes> left_of(const std::set<Bytes>& there, ReadAdvice::Kind first) {
  CachedSource source(MiB);
  source.pages = there;
  auto fetch = reader_of({all_parts});
  fetch.bring(source, part(1));
  fetch.bring(source, part(2));
  source.pages.merge(pages_of(part(0)));
  const ReadAdvice::Item items[] = {{part(0), false, first}, {part(1), false}, {part(2), false}};
  fetch.let_go(source, items);
  return source.pages;
}

TEST(PageCacheFetch, WhatTheProgramReadByItselfGoesUnlessTheFileWasThereBefore) {
  const auto all = pages_of(all_parts);
  EXPECT_EQ(left_of(all, ReadAdvice::Kind::read), all);
  EXPECT_THAT(left_of({}, ReadAdvice::Kind::read), IsEmpty());
  EXPECT_EQ(left_of({}, ReadAdvice::Kind::skipped), pages_of(part(0))) << "it was skipped";
  auto holed = all;
  holed.erase(part(2).offset);
  auto left = all;
  for (const Bytes page : pages_of(part(2))) left.erase(page);
  EXPECT_EQ(left_of(holed, ReadAdvice::Kind::read), left) << "only where some was missing";
}

TEST(PageCacheFetch, WhatOthersHadGivenUpAndIsReadByWhoIsBehindGoesWithHim) {
  CachedSource source(MiB);
  auto first = reader_of({all_parts}, NodeReaders::smallest_unit);
  auto behind = reader_of({all_parts}, NodeReaders::smallest_unit);
  first.bring(source, all_parts);
  const ReadAdvice::Item items[] = {
      {part(0), false}, {part(1), false}, {part(2), false}, {part(3), false}};
  first.let_go(source, items);
  EXPECT_LT(source.pages.size(), pages_of(all_parts).size()) << "it is too much to be kept";
  source.pages = pages_of(all_parts);
  behind.let_go(source, items);
  EXPECT_THAT(source.pages, IsEmpty());
}

TEST(PageCacheFetch, WhatLiesBetweenIsNotFetchedForItself) {
  CachedSource source(MiB);
  const std::vector<Extent> declared = {part(0), part(2), part(3)};
  auto first = reader_of(declared);
  auto other = reader_of(declared);
  EXPECT_EQ(first.bring(source, all_parts, declared).fetched, all_parts.length - unit)
      << "one by the check";
  const ReadAdvice::Item items[] = {{part(0), false},
                                    {part(2), false},
                                    {part(3), false},
                                    {part(1), false, ReadAdvice::Kind::between}};
  EXPECT_THAT(first.let_go(source, items), ElementsAre(part(1)));
  EXPECT_EQ(other.bring(source, all_parts, declared).requests, 0);
  source.pages.erase(part(3).offset);
  EXPECT_EQ(other.bring(source, all_parts, declared).fetched, unit)
      << "what is missing is at the end";
  other.let_go(source, items);
  EXPECT_THAT(source.pages, IsEmpty());
}

TEST(PageCacheFetch, WhatWasPassedGoesAndWhatLiesSideBySideAtOnce) {
  CachedSource source(MiB);
  PageCacheFetch fetch(nullptr, 100 * unit);
  fetch.bring(source, {0, 3 * unit});
  const ReadAdvice::Item items[] = {{{2 * unit, unit}, false}, {{100, unit}, false}};
  EXPECT_THAT(fetch.let_go(source, items), ElementsAre(Extent{0, 3 * unit}));
  EXPECT_THAT(source.pages, IsEmpty());
}

TEST(PageCacheFetch, WhatIsToStayIsNotTakenOut) {
  CachedSource source(MiB);
  PageCacheFetch fetch(nullptr, 100 * unit, {}, PageCacheFetch::Passed::stays);
  fetch.bring(source, {0, 3 * unit});
  const ReadAdvice::Item items[] = {{{0, 3 * unit}, false}};
  EXPECT_THAT(fetch.let_go(source, items), IsEmpty());
  EXPECT_THAT(fetch.let_go_of_all(source), IsEmpty());
  EXPECT_EQ(source.pages.size(), 3U);
}

}  // namespace
}  // namespace forebay
