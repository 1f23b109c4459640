// Goal: what is declared and does not fit a file is told with its line, and what fits is not.
// Method: small intent files, for a file of 100 KiB.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/read_intent.hpp"
#include "core/model/section_index.hpp"

namespace forebay {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr Bytes size = 100 * KiB;

std::vector<std::string> told(std::string_view toml, Bytes file_size = size) {
  const auto sections = read_sections(toml, "job.toml");
  if (!sections) {
    ADD_FAILURE() << to_string(sections.error());
    return {};
  }
  const std::array paths = {"/data/a.dat"};
  return unfit_reads(SectionIndex(*sections).sections_for(paths, file_size), file_size);
}

std::vector<std::string> told_of(const std::string& willneed) {
  return told("[[file]]\npath = '*'\nwillneed = [\n" + willneed + "]\n");
}

TEST(UnfitReads, WhatFitsIsNotTold) {
  EXPECT_THAT(told_of("[0, 0],\n"), IsEmpty());
  EXPECT_THAT(told_of("[0, 4096],\n[65536, 0],\n[4096, 61440],\n"), IsEmpty());
  EXPECT_THAT(told_of("[4096, 4096],\n[0, 8192],\n"), IsEmpty()) << "it is read again";
  EXPECT_THAT(told_of("[0, 104448],\n"), IsEmpty()) << "to the end of a page";
  EXPECT_THAT(told("[[file]]\npath = '*'\nwillneed = [[0, 0]]\n", 0), IsEmpty());
  EXPECT_THAT(told("[[file]]\npath = '*'\nbudget = '1MiB'\n"), IsEmpty());
}

TEST(UnfitReads, ExtentsOutsideTheFileAreToldWithTheirLine) {
  EXPECT_THAT(
      told_of("[0, 4096],\n[102400, 1], [99999999999, 0],\n['96KiB', 9223372036854775807],\n"),
      ElementsAre("job.toml:5: willneed [102400, 1] lies outside, as the file has 102400 bytes, "
                  "and has no effect",
                  "job.toml:5: willneed [99999999999, 0] lies outside, as the file has 102400 "
                  "bytes, and has no effect",
                  "job.toml:6: willneed [98304, 9223372036854775807] goes beyond the end, as the "
                  "file has 102400 bytes; only what lies in it counts"));
  EXPECT_THAT(told_of("[9223372036854775807, 9223372036854775807],\n"), SizeIs(1));
}

TEST(UnfitReads, ExtentsThatOverlapTheOneBeforeAreTold) {
  EXPECT_THAT(told_of("[0, 8192],\n[4096, 8192],\n[12287, 1],\n[12288, 1],\n"),
              ElementsAre("job.toml:5: willneed [4096, 8192] overlaps the pair before it, and the "
                          "two are read as one",
                          StartsWith("job.toml:6: willneed [12287, 1] overlaps")));
  EXPECT_THAT(told_of("[0, 0],\n[4096, 10],\n"), SizeIs(1)) << "all is declared already";
}

TEST(UnfitReads, SectionsThatContradictEachOtherAreTold) {
  constexpr std::string_view one = "[[file]]\npath = '*'\nwillneed = [[0, 10]]\n";
  constexpr std::string_view other = "[[file]]\npath = 'a.dat'\nwillneed = [[20, 10]]\n";
  EXPECT_THAT(told(std::string(one) + std::string(other)),
              ElementsAre("job.toml:3: willneed has no effect on this file, for which that of line "
                          "6 counts"));
  EXPECT_THAT(told(std::string(one) + std::string(one)), IsEmpty());
  EXPECT_THAT(told("[[file]]\npath = '*'\nsame_size = 5\nwillneed = [[0, 10]]\n"),
              ElementsAre("job.toml:3: same_size is 5, but the file has 102400 bytes: what was "
                          "recorded may not fit it"));
}

TEST(UnfitReads, AListThatDoesNotFitAtAllHasSaidEnough) {
  std::string willneed;
  for (int i = 0; i < 100; ++i) willneed += "[200000, 1],\n";
  const auto sentences = told_of(willneed);
  ASSERT_THAT(sentences, SizeIs(17));
  EXPECT_THAT(sentences[15], StartsWith("job.toml:19: "));
  EXPECT_THAT(sentences[16], AllOf(StartsWith("and 84 more"), EndsWith("like these")));
}

}  // namespace
}  // namespace forebay
