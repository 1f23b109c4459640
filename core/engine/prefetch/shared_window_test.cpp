// Goal: what one reader fetches all can read, no byte of the memory has two writers, and readers
// that die, stop or lag at any step neither hold the others up nor harm them. Method: readers of a
// file that does not exist, several in this process and some in children that are killed; time is
// an argument.

#include "core/engine/prefetch/shared_window.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/storage/child_rig.hpp"

namespace forebay {
namespace {

using ::testing::IsEmpty;

constexpr Bytes unit = 4 * KiB;
constexpr Bytes memory = 16 * unit;
constexpr std::int64_t ms = 1'000'000;

/// Of no other test, nor of another run of this one at the same time.
WindowKind kind_for(std::uint64_t test) {
  return {{{static_cast<std::uint64_t>(::getpid()), test}, 100 * unit, 7, 9}, 5, memory};
}

/// The names in shared memory of windows for `kind`, by whatever plan.
std::vector<std::filesystem::path> files_for(const WindowKind& kind) {
  std::array<char, 100> begin{};
  std::snprintf(begin.data(), begin.size(), "forebay-window-2-%u-%llx-%llx-", ::geteuid(),
                static_cast<unsigned long long>(kind.version.id.device),
                static_cast<unsigned long long>(kind.version.id.inode));
  std::vector<std::filesystem::path> result;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    if (entry.path().filename().string().starts_with(begin.data())) result.push_back(entry.path());
  }
  return result;
}

/// The file and the plan are the same here: offsets are places.
std::optional<SharedWindow::Fetch> begin_piece(SharedWindow& window, Bytes first, Bytes units) {
  const Bytes length = units * unit;
  if (!window.make_room(length, first * unit)) return std::nullopt;
  return window.begin_piece({first * unit, length}, length, first * unit, first * unit + length);
}

void fill(std::span<std::byte> into, Bytes first) {
  std::ranges::fill(into, static_cast<std::byte>(first + 1));
}

/// Whether it is there and right.
bool fetch(SharedWindow& window, Bytes first, Bytes units) {
  const auto begun = begin_piece(window, first, units);
  if (!begun) return false;
  fill(begun->memory, first);
  window.end_piece(begun->number, true);
  return true;
}

/// The first byte of the unit, as it was filled; none: it is not there.
std::optional<int> byte_of(SharedWindow& window, Bytes at) {
  const auto piece = window.holding(at * unit);
  std::byte found{};
  if (!piece || !piece->is_ready || !window.copy(*piece, at * unit, {&found, 1})) {
    return std::nullopt;
  }
  return static_cast<int>(found) - 1;
}

TEST(SharedWindow, WhatOneFetchesAllRead) {
  const auto first = SharedWindow::join(kind_for(1));
  const auto second = SharedWindow::join(kind_for(1));
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_TRUE(first->is_maker());
  EXPECT_FALSE(second->is_maker());
  ASSERT_TRUE(first->enter(0, {}, 0) && second->enter(0, {}, 0));
  EXPECT_TRUE(first->begin_fetching());
  EXPECT_FALSE(second->begin_fetching());
  EXPECT_TRUE(first->fetches());
  EXPECT_FALSE(second->fetches());
  ASSERT_TRUE(fetch(*first, 0, 2));
  EXPECT_EQ(byte_of(*second, 1), 0);
  EXPECT_EQ(byte_of(*second, 2), std::nullopt);
  ASSERT_EQ(second->pieces().size(), 1U);
  EXPECT_EQ(second->pieces()[0].held, (Extent{0, 2 * unit}));
}

TEST(SharedWindow, ReadersOfOtherKindsAreApart) {
  auto other_plan = kind_for(2);
  ++other_plan.plan;
  auto other_version = kind_for(2);
  ++other_version.version.changed_ns;
  const auto first = SharedWindow::join(kind_for(2));
  first->enter(0, {}, 0);
  ASSERT_TRUE(first->begin_fetching() && fetch(*first, 0, 1));
  for (const auto& kind : {other_plan, other_version}) {
    const auto other = SharedWindow::join(kind);
    ASSERT_TRUE(other != nullptr);
    EXPECT_TRUE(other->is_maker());
    EXPECT_TRUE(other->pieces().empty());
    EXPECT_TRUE(other->is_fetched_by_nobody());
  }
}

TEST(SharedWindow, WhatIsNoneOfThisKindIsRefused) {
  const auto kind = kind_for(3);
  const auto window = SharedWindow::join(kind);
  ASSERT_EQ(files_for(kind).size(), 1U);
  constexpr int words = 8;  // Its number, and the kind.
  for (int word = 0; word < words; ++word) {
    const int file = ::open(files_for(kind)[0].c_str(), O_RDWR);
    std::uint64_t before = 0;
    const auto at = static_cast<off_t>(word * sizeof before);
    ASSERT_EQ(::pread(file, &before, sizeof before, at), 8);
    // A magic number of 0 would be that of a window that is being made.
    const std::uint64_t wrong = before ^ 0x100;
    ASSERT_EQ(::pwrite(file, &wrong, sizeof wrong, at), 8);
    EXPECT_EQ(SharedWindow::join(kind), nullptr) << word;
    ASSERT_EQ(::pwrite(file, &before, sizeof before, at), 8);
    ::close(file);
    EXPECT_NE(SharedWindow::join(kind), nullptr) << word;
  }
}

TEST(SharedWindow, PiecesThatLieOutsideTheMemoryAreNotRead) {
  const auto kind = kind_for(4);
  const auto window = SharedWindow::join(kind);
  window->enter(0, {}, 0);
  ASSERT_TRUE(window->begin_fetching() && fetch(*window, 0, 2));
  std::vector<std::uint64_t> words(16 * KiB / 8);
  const int file = ::open(files_for(kind)[0].c_str(), O_RDWR);
  ASSERT_GT(::pread(file, words.data(), words.size() * 8, 0), 0);
  // Whatever word is changed, nothing outside is touched.
  std::byte into{};
  for (std::size_t i = 8; i < words.size(); ++i) {
    for (const std::uint64_t wrong :
         {~std::uint64_t{0}, ~std::uint64_t{0} >> 1, std::uint64_t{0}}) {
      const auto at = static_cast<off_t>(i * 8);
      if (::pwrite(file, &wrong, 8, at) != 8) break;
      if (const auto piece = window->holding(unit)) window->copy(*piece, unit, {&into, 1});
      window->make_room(unit, 0);
      window->look_after(1000 * ms);
      window->others();
      ASSERT_EQ(::pwrite(file, &words[i], 8, at), 8);
    }
  }
  ::close(file);
}

TEST(SharedWindow, APieceStaysUntilAllHavePassed) {
  const auto first = SharedWindow::join(kind_for(5));
  const auto second = SharedWindow::join(kind_for(5));
  first->enter(0, {}, 0);
  second->enter(0, {}, 0);
  ASSERT_TRUE(first->begin_fetching());
  ASSERT_TRUE(fetch(*first, 0, 8) && fetch(*first, 8, 8));
  EXPECT_TRUE(first->pass(16 * unit, 0));
  EXPECT_FALSE(fetch(*first, 16, 8));
  const std::uint32_t rings = first->rings();
  EXPECT_TRUE(second->pass(7 * unit, 0));
  EXPECT_EQ(first->rings(), rings) << "that makes no room";
  EXPECT_TRUE(second->pass(8 * unit, 0));
  EXPECT_GT(first->rings(), rings);
  EXPECT_TRUE(fetch(*first, 16, 8));
  EXPECT_EQ(byte_of(*second, 8), 8);
  EXPECT_EQ(byte_of(*second, 0), std::nullopt);
}

TEST(SharedWindow, WhoCopiesAPieceThatMakesRoomMeanwhileLearnsOfIt) {
  const auto first = SharedWindow::join(kind_for(6));
  first->enter(0, {}, 0);
  ASSERT_TRUE(first->begin_fetching() && fetch(*first, 0, 16));
  const auto piece = first->holding(0);
  ASSERT_TRUE(piece.has_value());
  std::byte into{};
  EXPECT_TRUE(first->copy(*piece, 0, {&into, 1}));
  first->pass(16 * unit, 0);
  ASSERT_TRUE(fetch(*first, 16, 16));
  EXPECT_FALSE(first->copy(*piece, 0, {&into, 1}));
}

TEST(SharedWindow, ForOneWhoComesLateItIsFetchedFromItsPlaceOn) {
  const auto first = SharedWindow::join(kind_for(7));
  const auto second = SharedWindow::join(kind_for(7));
  first->enter(0, {}, 0);
  ASSERT_TRUE(first->begin_fetching());
  ASSERT_TRUE(fetch(*first, 0, 8) && fetch(*first, 8, 8));
  ASSERT_TRUE(first->advance(0, 16 * unit));
  first->pass(12 * unit, 0);
  ASSERT_TRUE(fetch(*first, 16, 8));
  ASSERT_TRUE(first->advance(16 * unit, 24 * unit));
  EXPECT_TRUE(second->enter(0, {}, 100 * ms));
  EXPECT_EQ(first->cursor(), 0);
  EXPECT_FALSE(first->advance(24 * unit, 25 * unit));
  EXPECT_TRUE(fetch(*first, 0, 8)) << "the furthest makes room";
  EXPECT_EQ(byte_of(*second, 0), 0);
  EXPECT_EQ(byte_of(*second, 8), 8);
  EXPECT_EQ(byte_of(*second, 16), std::nullopt);
}

TEST(SharedWindow, WhoIsTooFarAwayStaysApart) {
  const auto first = SharedWindow::join(kind_for(8));
  const auto second = SharedWindow::join(kind_for(8));
  constexpr std::int64_t now_ns = 10'000 * ms;
  EXPECT_TRUE(first->enter(40 * unit, {0, 40 * unit}, now_ns));
  EXPECT_FALSE(second->enter(0, {now_ns, 0}, now_ns));
  EXPECT_FALSE(second->is_in());
  EXPECT_FALSE(second->enter(70 * unit, {now_ns, 0}, now_ns));
  EXPECT_TRUE(second->enter(30 * unit, {now_ns, 0}, now_ns));
}

TEST(SharedWindow, WhoWasLeftBehindLearnsOfIt) {
  const auto first = SharedWindow::join(kind_for(9));
  const auto second = SharedWindow::join(kind_for(9));
  first->enter(0, {}, 0);
  second->enter(3, {}, 0);
  const auto others = first->others();
  ASSERT_EQ(others.size(), 1U);
  EXPECT_EQ(others[0].fellow.front, 3);
  second->pass(4, 0);
  first->leave_behind(others[0]);
  EXPECT_TRUE(second->is_in()) << "it has moved on since";
  first->leave_behind(first->others()[0]);
  EXPECT_FALSE(second->is_in());
  EXPECT_FALSE(second->pass(5, 0));
  EXPECT_EQ(first->tail(), 0);
}

TEST(SharedWindow, WhoLeavesLeavesTheFetchingToOthers) {
  auto first = SharedWindow::join(kind_for(10));
  const auto second = SharedWindow::join(kind_for(10));
  first->enter(0, {}, 0);
  second->enter(0, {}, 0);
  ASSERT_TRUE(first->begin_fetching());
  first->tell_gap(3);
  EXPECT_EQ(second->told_gap().value_or(std::nullopt), std::optional<Bytes>(3));
  first->leave();
  EXPECT_FALSE(first->fetches());
  EXPECT_TRUE(second->begin_fetching());
  first.reset();
  EXPECT_TRUE(second->fetches());
}

TEST(SharedWindow, WhatIsOnItsWayForOneThatGoesLandsOnNothing) {
  const auto first = SharedWindow::join(kind_for(20));
  const auto second = SharedWindow::join(kind_for(20));
  ASSERT_TRUE(first->enter(0, {}, 0) && second->enter(0, {}, 0) && first->begin_fetching());
  const auto begun = begin_piece(*first, 0, 4);
  ASSERT_TRUE(begun);
  first->depart();
  ASSERT_TRUE(second->begin_fetching());
  Bytes fetched = 0;
  while (fetch(*second, fetched, 1)) ++fetched;
  EXPECT_GE(fetched, 4);
  std::ranges::fill(begun->memory, std::byte{200});
  for (Bytes at = 0; at < fetched; ++at) EXPECT_EQ(byte_of(*second, at), at);
}

TEST(SharedWindow, WhatIsOnItsWayForOneThatIsStoppedIsFetchedAnewElsewhere) {
  const auto stopped = SharedWindow::join(kind_for(11));
  const auto second = SharedWindow::join(kind_for(11));
  stopped->enter(0, {}, 0);
  second->enter(0, {}, 0);
  ASSERT_TRUE(stopped->begin_fetching());
  const auto lost = begin_piece(*stopped, 0, 10);
  ASSERT_TRUE(lost.has_value());
  ASSERT_TRUE(stopped->advance(0, 10 * unit));
  EXPECT_TRUE(second->look_after(1000 * ms)) << "it is asked";
  EXPECT_TRUE(second->look_after(1100 * ms)) << "and has some time";
  EXPECT_FALSE(second->look_after(1500 * ms));
  EXPECT_EQ(second->cursor(), 0);
  ASSERT_TRUE(second->begin_fetching());
  EXPECT_EQ(second->longest_transfer(), 6 * unit);
  EXPECT_FALSE(begin_piece(*second, 0, 7).has_value()) << "it may be written to yet";
  ASSERT_TRUE(fetch(*second, 0, 6));
  // It goes on: its request has ended, and its memory is free.
  fill(lost->memory, 20);
  stopped->end_piece(lost->number, true);
  EXPECT_FALSE(stopped->fetches());
  EXPECT_EQ(byte_of(*second, 0), 0);
  EXPECT_EQ(second->longest_transfer(), 16 * unit);
  EXPECT_TRUE(fetch(*second, 6, 10));
}

TEST(SharedWindow, WhoAnswersGoesOnToFetch) {
  const auto first = SharedWindow::join(kind_for(12));
  const auto second = SharedWindow::join(kind_for(12));
  first->enter(0, {}, 0);
  second->enter(0, {}, 0);
  ASSERT_TRUE(first->begin_fetching());
  const std::uint32_t seen = first->rings();
  second->look_after(1 * ms);
  first->answer(seen);
  second->look_after(1500 * ms);
  EXPECT_FALSE(second->is_fetched_by_nobody());
}

/// Does `work` in a child, which is killed then.
template <typename Work>
void in_killed_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::raise(SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(SharedWindow, OneThatIsKilledHoldsNobodyUp) {
  const auto kind = kind_for(13);
  const auto window = SharedWindow::join(kind);
  window->enter(0, {}, 0);
  in_killed_child([&] {
    SharedWindow* const child = SharedWindow::join(kind).release();
    child->enter(0, {}, 0);
    child->begin_fetching();
    fetch(*child, 0, 2);
    child->advance(0, 2 * unit);
    begin_piece(*child, 2, 4);
    child->advance(2 * unit, 6 * unit);
  });
  EXPECT_FALSE(window->is_fetched_by_nobody());
  EXPECT_FALSE(window->look_after(0)) << "nothing is on its way";
  EXPECT_THAT(window->others(), IsEmpty());
  ASSERT_TRUE(window->begin_fetching());
  EXPECT_EQ(window->cursor(), 2 * unit);
  EXPECT_EQ(byte_of(*window, 1), 0) << "it had come";
  EXPECT_EQ(window->longest_transfer(), 10 * unit);
}

TEST(SharedWindow, NobodySharesWhoseLifeNobodyCanTell) {
  constexpr int shares = 1;
  const int status = in_child([] {
    if (!mount_for_itself("/proc", "tmpfs")) return may_not;
    return SharedWindow::join(kind_for(21)) == nullptr ? 0 : shares;
  });
  if (status == may_not) GTEST_SKIP() << "needs a mount";
  EXPECT_EQ(status, 0);
}

TEST(SharedWindow, WhatAllWhoDiedHaveLeftIsNotUsedAgain) {
  const auto kind = kind_for(14);
  in_killed_child([&] {
    SharedWindow* const child = SharedWindow::join(kind).release();
    child->enter(0, {}, 0);
    child->begin_fetching();
    begin_piece(*child, 0, 16);
    fetch(*child, 16, 1);
  });
  EXPECT_EQ(files_for(kind).size(), 1U);
  auto window = SharedWindow::join(kind);
  ASSERT_TRUE(window != nullptr);
  EXPECT_TRUE(window->is_maker());
  EXPECT_EQ(window->longest_transfer(), memory);
  window.reset();
  EXPECT_THAT(files_for(kind), IsEmpty());
}

TEST(SharedWindow, OneThatIsRetiredIsForThoseWhoHaveIt) {
  const auto kind = kind_for(17);
  auto first = SharedWindow::join(kind);
  first->retire();
  EXPECT_THAT(files_for(kind), IsEmpty());
  const auto second = SharedWindow::join(kind);
  EXPECT_TRUE(second->is_maker());
  first.reset();
  EXPECT_EQ(files_for(kind).size(), 1U) << "that of the second";
}

TEST(SharedWindow, ItGoesWithItsLastReader) {
  const auto kind = kind_for(15);
  auto first = SharedWindow::join(kind);
  auto second = SharedWindow::join(kind);
  first.reset();
  EXPECT_EQ(files_for(kind).size(), 1U);
  second.reset();
  EXPECT_THAT(files_for(kind), IsEmpty());
}

TEST(SharedWindow, WhatWasNotReadIsCounted) {
  const auto window = SharedWindow::join(kind_for(16));
  window->enter(0, {}, 0);
  ASSERT_TRUE(window->begin_fetching() && fetch(*window, 0, 8) && fetch(*window, 8, 8));
  EXPECT_EQ(byte_of(*window, 0), 0);
  window->pass(16 * unit, 0);
  ASSERT_TRUE(fetch(*window, 16, 16));
  // One byte is a 64th of a piece.
  constexpr Bytes unread = 16 * unit - 8 * unit / 64;
  EXPECT_EQ(window->unused_bytes(), unread);
  window->leave();
  EXPECT_EQ(window->unused_bytes(), unread + 16 * unit) << "nobody is left to read it";
  window->depart();
  EXPECT_EQ(window->unused_bytes(), unread + 16 * unit);
}

TEST(SharedWindow, WhatLiesBetweenExtentsIsNotToBeRead) {
  const auto window = SharedWindow::join(kind_for(18));
  window->enter(0, {}, 0);
  ASSERT_TRUE(window->begin_fetching());
  const std::array between{Extent{2 * unit, 4 * unit}};
  const auto begun = window->begin_piece({0, 8 * unit}, 8 * unit, 0, 8 * unit, between);
  ASSERT_TRUE(begun.has_value());
  fill(begun->memory, 0);
  EXPECT_TRUE(window->end_piece(begun->number, true));
  window->leave();
  EXPECT_EQ(window->unused_bytes(), 4 * unit);
}

}  // namespace
}  // namespace forebay
