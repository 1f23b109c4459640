// Goal: what one reader brought stays until the last has passed it, and a reader that died wants
// nothing; what cannot be shared ends no program. Method: readers of a file that does not exist, by
// its version alone: several in this process, one in a child that is killed, and some where there
// is no shared memory to be had.

#include "core/engine/prefetch/node_readers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "core/engine/prefetch/process_life.hpp"
#include "core/engine/prefetch/steady_time.hpp"
#include "core/storage/child_rig.hpp"

namespace forebay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Bytes unit = 64 * KiB;

/// Of no other test, nor of another run of this one at the same time.
FileVersion version_for(std::uint64_t test) {
  return {{static_cast<std::uint64_t>(::getpid()), test}, 10 * unit, 0, 0};
}

Extent at(Bytes first, Bytes units) { return {first * unit, units * unit}; }

TEST(NodeReaders, OneAloneGivesUpWhatItPassed) {
  const auto reader = NodeReaders::join(version_for(1), {at(0, 4)}, 4 * unit);
  reader->brought(at(0, 2));
  EXPECT_THAT(reader->passed({0, unit - 1}), IsEmpty()) << "a byte of the unit is wanted";
  EXPECT_THAT(reader->passed({unit - 1, 1}), ElementsAre(at(0, 1)));
  EXPECT_THAT(reader->passed(at(3, 1)), IsEmpty()) << "nobody brought it";
  EXPECT_THAT(reader->left(), ElementsAre(at(1, 1)));
}

TEST(NodeReaders, WhatLiesBetweenGoesWithWhatWasWanted) {
  const auto reader = NodeReaders::join(version_for(9), {at(0, 1), {3 * unit - 10, 20}}, 4 * unit);
  reader->brought({0, 3 * unit + 10});
  EXPECT_THAT(reader->passed(at(0, 1)), ElementsAre(at(0, 1)));
  EXPECT_THAT(reader->passed_between({unit, 2 * unit - 10}), ElementsAre(at(1, 1)))
      << "of the other unit something is wanted";
  EXPECT_THAT(reader->passed({3 * unit - 10, 20}), ElementsAre(at(2, 1), at(3, 1)));
}

TEST(NodeReaders, TheLastToPassGivesUp) {
  const auto first = NodeReaders::join(version_for(2), {at(0, 4)}, 4 * unit);
  const auto second = NodeReaders::join(version_for(2), {at(0, 1), at(2, 1)}, 4 * unit);
  EXPECT_EQ(first->readers(), 2);
  first->brought(at(0, 4));
  EXPECT_THAT(first->passed(at(0, 4)), ElementsAre(at(1, 1), at(3, 1)));
  EXPECT_THAT(second->passed(at(0, 1)), ElementsAre(at(0, 1)));
  EXPECT_THAT(second->passed(at(2, 1)), ElementsAre(at(2, 1)));
}

TEST(NodeReaders, WhatIsKeptForOthersHasALimit) {
  const auto first = NodeReaders::join(version_for(3), {at(0, 10)}, 3 * unit);
  const auto second = NodeReaders::join(version_for(3), {at(0, 10)}, 3 * unit);
  first->brought(at(0, 10));
  EXPECT_THAT(first->passed(at(0, 6)), ElementsAre(at(5, 1), at(4, 1), at(3, 1), at(2, 1)))
      << "3 units for each of the two, and those that the other wants first";
}

TEST(NodeReaders, OfPiecesThatLieApartAsManyAreKeptAsTheBudgetsHold) {
  std::vector<Extent> pieces;
  for (Bytes i = 0; i < 10; ++i) pieces.push_back({i * unit, unit / 4});
  const auto first = NodeReaders::join(version_for(21), pieces, unit);
  const auto second = NodeReaders::join(version_for(21), pieces, unit);
  for (const Extent& piece : pieces) first->brought(piece);
  EXPECT_THAT(first->passed(pieces[0]), ElementsAre(at(0, 1)));
  EXPECT_THAT(first->passed(pieces[1]), ElementsAre(at(1, 1)));
  EXPECT_THAT(first->passed(pieces[2]), IsEmpty()) << "4 for each of the two";
}

TEST(NodeReaders, OneThatWantsLittleKeepsNoMoreForOthers) {
  const auto first = NodeReaders::join(version_for(22), {at(0, 10)}, 3 * unit);
  const auto second = NodeReaders::join(version_for(22), {at(0, 10)}, 3 * unit);
  const auto little = NodeReaders::join(version_for(22), {{0, 4 * KiB}}, unit);
  first->brought(at(0, 10));
  EXPECT_THAT(first->passed(at(0, 6)), ElementsAre(at(5, 1), at(4, 1), at(3, 1)));
}

TEST(NodeReaders, WhatTheNextOneComesForIsLeftToIt) {
  const auto first = NodeReaders::join(version_for(16), {at(0, 10)}, 2 * unit);
  const auto second = NodeReaders::join(version_for(16), {at(0, 10)}, 2 * unit);
  const auto last = NodeReaders::join(version_for(16), {at(0, 10)}, unit);
  first->brought(at(0, 6));
  first->passed(at(0, 5));
  second->passed(at(0, 4));
  first->ahead(steady_ns());
  first->brought(at(6, 1));
  EXPECT_THAT(first->passed(at(5, 1)), ElementsAre(at(3, 1)))
      << "the second comes for 4 and 5, the last for 0 first";
}

TEST(NodeReaders, WhatWasLeftToOneThatDiedGoesWithTheOneThatLeftIt) {
  auto first = NodeReaders::join(version_for(17), {at(0, 10)}, unit);
  auto second = NodeReaders::join(version_for(17), {at(0, 10)}, unit);
  first->brought(at(0, 1));
  first->passed(at(0, 5));
  first->ahead(steady_ns());
  first->brought(at(5, 2));
  ASSERT_THAT(first->passed(at(5, 1)), ElementsAre(at(5, 1))) << "0 is left to the second";
  second.reset();
  EXPECT_THAT(first->left(), ElementsAre(at(6, 1), at(0, 1)));
}

TEST(NodeReaders, WhatIsKeptForOneThatDoesNotComeGoesFirst) {
  const auto first = NodeReaders::join(version_for(12), {at(0, 10)}, unit);
  const auto second = NodeReaders::join(version_for(12), {at(0, 10)}, unit);
  first->brought(at(0, 1));
  first->passed(at(0, 5));
  first->brought(at(5, 2));
  EXPECT_THAT(first->passed(at(5, 1)), ElementsAre(at(0, 1)));
}

TEST(NodeReaders, WhatAnotherWantsSoonIsNotTakenFromItForBeingOld) {
  const auto first = NodeReaders::join(version_for(13), {at(0, 10)}, unit);
  const auto second = NodeReaders::join(version_for(13), {at(0, 10)}, unit);
  first->brought(at(0, 1));
  first->passed(at(0, 5));
  first->ahead(steady_ns());
  first->brought(at(5, 2));
  EXPECT_THAT(first->passed(at(5, 1)), ElementsAre(at(5, 1)));
}

TEST(NodeReaders, WhoIsInFrontLetsAnotherCatchUpWhenNoMoreIsKept) {
  const auto first = NodeReaders::join(version_for(11), {at(0, 10)}, 4 * unit);
  const std::int64_t joined = steady_ns();
  constexpr std::int64_t ms = 1'000'000;
  first->brought(at(0, 8));
  first->passed(at(0, 4));
  EXPECT_EQ(first->ahead(joined + 10 * ms), Ahead::all) << "it is alone";
  auto second = NodeReaders::join(version_for(11), {at(0, 10)}, 4 * unit);
  EXPECT_EQ(first->ahead(joined + 11 * ms), Ahead::half) << "what is brought may stay";
  second->brought(at(0, 3));
  EXPECT_EQ(first->ahead(joined + 12 * ms), Ahead::nothing);
  EXPECT_EQ(second->ahead(joined + 10 * ms), Ahead::half) << "nobody is behind it";
  second->passed(at(0, 2));
  EXPECT_EQ(first->ahead(joined + 13 * ms), Ahead::half) << "two units are no harm";
}

TEST(NodeReaders, OneMeasuresForAllAndTheNextWhenItHasLeft) {
  auto first = NodeReaders::join(version_for(10), {at(0, 1)}, unit);
  const auto second = NodeReaders::join(version_for(10), {at(0, 1)}, unit);
  const auto third = NodeReaders::join(version_for(10), {at(0, 1)}, unit);
  EXPECT_TRUE(first->measures());
  EXPECT_FALSE(second->measures());
  EXPECT_EQ(second->told_gap(), std::nullopt);
  first->tell_gap(0);
  EXPECT_EQ(second->told_gap(), 0);
  first->tell_gap(64 * KiB);
  first.reset();
  EXPECT_TRUE(third->measures());
  EXPECT_FALSE(second->measures());
  EXPECT_EQ(second->told_gap(), 64 * KiB) << "what is known stays known";
}

TEST(NodeReaders, AnotherVersionIsAnotherFile) {
  FileVersion newer = version_for(4);
  newer.changed_ns = 1;
  const auto first = NodeReaders::join(version_for(4), {at(0, 1)}, unit);
  const auto second = NodeReaders::join(newer, {at(0, 1)}, unit);
  EXPECT_EQ(first->readers(), 1);
}

TEST(NodeReaders, TheDeadWantNothing) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const FileVersion version = version_for(5);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto reader = NodeReaders::join(version, {at(0, 4)}, 4 * unit);
    if (::write(ready[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const auto reader = NodeReaders::join(version, {at(0, 4)}, 4 * unit);
  ASSERT_EQ(reader->readers(), 2);
  reader->brought(at(0, 4));
  EXPECT_THAT(reader->passed(at(0, 1)), IsEmpty());
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(reader->readers(), 1);
  EXPECT_THAT(reader->passed(at(1, 1)), ElementsAre(at(1, 1)));
  EXPECT_THAT(reader->left(), ElementsAre(at(2, 1), at(3, 1), at(0, 1)));
  ::close(ready[0]);
  ::close(ready[1]);
}

/// 0: a reader that has found no shared memory does what it does alone.
int read_alone(const FileVersion& version) {
  const auto reader = NodeReaders::join(version, {at(0, 4)}, 4 * unit);
  reader->brought(at(0, 2));
  const bool is_right = reader->readers() == 1 && reader->passed(at(0, 1)).size() == 1;
  return is_right && reader->left().size() == 1 ? 0 : 1;
}

TEST(NodeReaders, WhoHasEndedIsGoneBeforeItsParentHasWaitedForIt) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const std::uint64_t beginning = beginning_of(child);
  EXPECT_FALSE(has_ended(child, beginning));
  ::kill(child, SIGKILL);
  siginfo_t found{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &found, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(has_ended(child, beginning));
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(has_ended(child, beginning));
}

TEST(NodeReaders, OneThatMayMakeNoSuchFileIsAlone) {
  EXPECT_EQ(in_child([] {
              const rlimit limit{4096, 4096};
              return ::setrlimit(RLIMIT_FSIZE, &limit) == 0 ? read_alone(version_for(6)) : 2;
            }),
            0);
}

TEST(NodeReaders, OneThatFindsTheMemoryFullIsAlone) {
  const int status = in_child([] {
    // A shared memory of its own, of one page; only root has that.
    if (!mount_for_itself("/dev/shm", "tmpfs", "size=4k")) return may_not;
    constexpr int leaves_names = 2;
    const int read = read_alone(version_for(7));
    return read == 0 && !std::filesystem::is_empty("/dev/shm") ? leaves_names : read;
  });
  if (status == may_not) GTEST_SKIP() << "needs a mount";
  EXPECT_EQ(status, 0);
}

/// In a space of process numbers of its own, where `/proc` shows those of it, or none.
int in_space_of_its_own(const FileVersion& version, bool is_shown) {
  return in_child([&] {
    if (::unshare(CLONE_NEWPID) != 0) return may_not;
    return in_child([&] {
      if (is_shown && !mount_for_itself("/proc", "proc")) return may_not;
      return read_alone(version);
    });
  });
}

/// Whether another process lives is told by numbers, which mean others there.
TEST(NodeReaders, ProcessesOfOtherSpacesOfNumbersDoNotMeet) {
  const FileVersion version = version_for(18);
  const auto first = NodeReaders::join(version, {at(0, 4)}, 4 * unit);
  for (const bool is_shown : {false, true}) {
    const int status = in_space_of_its_own(version, is_shown);
    if (status == may_not) GTEST_SKIP() << "needs root";
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(in_child([&] { return read_alone(version); }), 1) << "else they meet";
}

TEST(NodeReaders, OneWhoseLifeNobodyCanTellIsAlone) {
  const FileVersion version = version_for(19);
  const auto first = NodeReaders::join(version, {at(0, 4)}, 4 * unit);
  const int status =
      in_child([&] { return mount_for_itself("/proc", "tmpfs") ? read_alone(version) : may_not; });
  if (status == may_not) GTEST_SKIP() << "needs a mount";
  EXPECT_EQ(status, 0);
}

TEST(NodeReaders, TheMemoryOfAnotherUserIsNotUsed) {
  const FileVersion version = version_for(8);
  const auto first = NodeReaders::join(version, {at(0, 1)}, unit);
  char name[64] = {};
  std::snprintf(name, sizeof name, "-%llx-%llx-",
                static_cast<unsigned long long>(version.id.device),
                static_cast<unsigned long long>(version.id.inode));
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    if (entry.path().string().find(name) == std::string::npos) continue;
    constexpr uid_t nobody = 65534;
    if (::chown(entry.path().c_str(), nobody, nobody) != 0) GTEST_SKIP() << "only root can";
  }
  const auto second = NodeReaders::join(version, {at(0, 1)}, unit);
  EXPECT_EQ(second->readers(), 1);
}

}  // namespace
}  // namespace forebay
