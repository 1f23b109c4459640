// Goal: what an intent file says of reads is understood, and mistakes are named with their line.
// Method: small intent files, one point each. The format is docs/formats/intent.md.

#include "core/model/read_intent.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/section_index.hpp"

namespace forebay {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<ReadSection> sections(std::string_view toml) {
  auto result = read_sections(toml, "job.toml");
  if (!result) {
    ADD_FAILURE() << to_string(result.error());
    return {};
  }
  return *std::move(result);
}

TEST(ReadIntent, ASectionSaysWhatWillBeReadAndWithHowMuchMemory) {
  const auto found = sections(R"(
[[file]]
path = "/data/*.root"
willneed = [[0, 4096], ["1MiB", 100], [8192, 0]]
block = "256KiB"
budget = 8388608
ahead = 16
gap = "192KiB"
policy = "mercury"
cb_nodes = 2
)");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].pattern, "/data/*.root");
  EXPECT_THAT(found[0].problems, IsEmpty());
  EXPECT_THAT(found[0].intent.willneed,
              ElementsAre(Extent{0, 4096}, Extent{MiB, 100}, Extent{8192, 0}));
  EXPECT_EQ(found[0].intent.block, 256 * KiB);
  EXPECT_EQ(found[0].intent.budget, 8 * MiB);
  EXPECT_EQ(found[0].intent.ahead, 16);
  EXPECT_EQ(found[0].intent.gap->bytes, 192 * KiB);
  EXPECT_EQ(found[0].intent.policy, ReadPolicy::mercury);
}

TEST(ReadIntent, SectionsOfOtherThingsAreNone) {
  EXPECT_THAT(sections("version = 1\n[[file]]\npath = '*'\ncb_nodes = 2\n"), IsEmpty());
  EXPECT_THAT(sections(""), IsEmpty());
  EXPECT_THAT(sections("file = 3\n"), IsEmpty());
  EXPECT_THAT(sections("[[file]]\nahead = 2\n"), IsEmpty()) << "for no file";
}

TEST(ReadIntent, LaterSectionsWinKeyByKey) {
  const auto found = sections(R"(
[[file]]
path = "*"
willneed = [[0, 0]]
budget = "8MiB"
[[file]]
path = "*.dat"
cache = "16MiB"
)");
  ASSERT_THAT(found, SizeIs(2));
  const ReadSection* all[] = {&found[0], &found[1]};
  const ReadIntent intent = combined(all);
  EXPECT_THAT(intent.willneed, ElementsAre(Extent{0, 0}));
  EXPECT_EQ(intent.budget, 16 * MiB);
  EXPECT_EQ(intent.block, std::nullopt);
}

/// Patterns of the sections for a file.
std::vector<std::string> patterns_for(const std::vector<ReadSection>& sections, const char* path,
                                      Bytes size) {
  std::vector<std::string> patterns;
  for (const ReadSection* section : SectionIndex(sections).sections_for(std::array{path}, size)) {
    patterns.push_back(section->pattern);
  }
  return patterns;
}

TEST(ReadIntent, ASectionIsForOtherFilesOfTheSizeThatItNames) {
  const auto found = sections(R"(
[[file]]
path = "*"
budget = "8MiB"
[[file]]
path = "/data/mesh_001.h5"
same_size = 1000
willneed = [[0, 10]]
[[file]]
path = "/data/field_001.h5"
same_size = 1000
willneed = [[5, 10]]
[[file]]
path = "/data/named.h5"
willneed = [[0, 0]]
)");
  ASSERT_THAT(found, SizeIs(4));
  EXPECT_THAT(patterns_for(found, "/data/mesh_001.h5", 1000),
              ElementsAre("*", "/data/mesh_001.h5"));
  EXPECT_THAT(patterns_for(found, "/other/mesh_002.h5", 1000),
              ElementsAre("*", "/data/mesh_001.h5"));
  EXPECT_THAT(patterns_for(found, "/data/field_002.h5", 1000),
              ElementsAre("*", "/data/field_001.h5"));
  EXPECT_THAT(patterns_for(found, "/data/field_002.h5", 1001), ElementsAre("*"));
  EXPECT_THAT(patterns_for(found, "/data/named.h5", 1000), ElementsAre("*", "/data/named.h5"))
      << "what is said of it by name counts";
}

TEST(ReadIntent, AFormatCountsBeforeAPersonAndAPersonBeforeARecording) {
  constexpr const char* format = "[[file]]\npath = '*'\nfrom = 'format'\nwillneed = [[1, 1]]\n";
  constexpr const char* person = "[[file]]\npath = '*'\nwillneed = [[2, 1]]\n";
  constexpr const char* recording =
      "[[file]]\npath = '*'\nfrom = 'recording'\nwillneed = [[3, 1]]\n";
  constexpr const char* older = "[[file]]\npath = '*'\nsame_size = 9\nwillneed = [[4, 1]]\n";
  constexpr const char* blocks = "[[file]]\npath = '*'\nbudget = '1MiB'\n";
  const auto declared = [](const std::vector<std::string>& parts) {
    std::string toml;
    for (const std::string& part : parts) toml += part;
    const auto found = sections(toml);
    return combined(SectionIndex(found).sections_for(std::array{"/data/a"}, 9)).willneed;
  };
  EXPECT_THAT(declared({format, person, recording, blocks}), ElementsAre(Extent{1, 1}));
  EXPECT_THAT(declared({person, recording, older, blocks}), ElementsAre(Extent{2, 1}));
  EXPECT_THAT(declared({older, recording, blocks}), ElementsAre(Extent{3, 1})) << "the last";
  EXPECT_THAT(declared({recording, older}), ElementsAre(Extent{4, 1}));
  EXPECT_THAT(declared({blocks}), IsEmpty());
  const auto wrong = sections("[[file]]\npath = '*'\nfrom = 'hearsay'\nwillneed = [[3, 1]]\n");
  ASSERT_THAT(wrong.at(0).problems, SizeIs(1));
  EXPECT_THAT(to_string(wrong[0].problems[0]),
              AllOf(HasSubstr("job.toml:3"), HasSubstr("format or recording")));
}

TEST(ReadIntent, CacheIsTheBudgetUnlessItIsTheTableOfTheWriteBehindCache) {
  EXPECT_EQ(sections("[[file]]\npath = '*'\ncache = '8MiB'\n").at(0).intent.budget, 8 * MiB);
  EXPECT_THAT(sections("[[file]]\npath = '*'\n[file.cache]\nmode = 'enable'\n"), IsEmpty());
  const auto both = sections(R"([[file]]
path = "*"
budget = "8MiB"
[file.cache]
mode = "enable"
)");
  ASSERT_THAT(both, SizeIs(1));
  EXPECT_THAT(both[0].problems, IsEmpty());
  EXPECT_EQ(both[0].intent.budget, 8 * MiB);
  EXPECT_THAT(read_sections("[[file]]\npath = '*'\ncache = '8MiB'\n[file.cache]\n", "job.toml")
                  .error()
                  .what,
              AllOf(HasSubstr("job.toml:4"), HasSubstr("memory for reading ahead is budget")));
}

TEST(ReadIntent, MistakesAreNamedWithTheirLineAndTheRestCounts) {
  const auto found = sections(R"([[file]]
path = "*"
willneed = [
  [0, 10],
  [5],
  [-1, 10],
  [1.5, 2],
  "all",
  [9223372036854775807, 9223372036854775807],
]
block = "much"
same_size = "any"
budget = 0
ahead = -2
policy = "best"
gap = "small"
)");
  ASSERT_THAT(found, SizeIs(1));
  constexpr Bytes most = std::numeric_limits<Bytes>::max();
  EXPECT_THAT(found[0].intent.willneed, ElementsAre(Extent{0, 10}, Extent{most, most}));
  EXPECT_EQ(found[0].intent.block, std::nullopt);
  EXPECT_EQ(found[0].intent.budget, std::nullopt);
  EXPECT_EQ(found[0].intent.ahead, std::nullopt);
  std::vector<std::string> told;
  for (const auto& problem : found[0].problems) told.push_back(to_string(problem));
  EXPECT_THAT(
      told, ElementsAre(HasSubstr("job.toml:5: willneed[1] = \"[5]\""),
                        HasSubstr("job.toml:6: willneed[2] = \"[-1, 10]\""),
                        HasSubstr("job.toml:7: willneed[3] = \"[(number with a fraction"),
                        HasSubstr("job.toml:8"), HasSubstr("job.toml:11"), HasSubstr("job.toml:12"),
                        HasSubstr("job.toml:13"), HasSubstr("job.toml:14"),
                        HasSubstr("job.toml:15"), HasSubstr("job.toml:16")));
}

TEST(ReadIntent, KeysThatNobodyKnowsAreNamedWithTheirLine) {
  const auto found = sections(R"([[file]]
path = "*"
willneed = [[0, 10]]
buget = "1MiB"
cb_nodes = 2
forebay_io_depth = 4
[file.cahce]
mode = "enable"
[file.cache]
mode = "enable"
)");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].problems, IsEmpty());
  ASSERT_THAT(found[0].unknown, SizeIs(2)) << "hints are not for reads";
  EXPECT_THAT(to_string(found[0].unknown[0]), AllOf(HasSubstr("job.toml:4"), HasSubstr("buget")));
  EXPECT_THAT(to_string(found[0].unknown[1]), AllOf(HasSubstr("job.toml:7"), HasSubstr("cahce")));
}

TEST(ReadIntent, WhoReadsHintsDoesNotComplainOfThem) {
  const auto hints =
      intent_for("[[file]]\npath = '*'\nwillneed = [[0, 0]]\nblock = 'x'\n", "job.toml", "/a", {});
  ASSERT_TRUE(hints.has_value());
  EXPECT_THAT(hints->problems, IsEmpty());
}

TEST(ReadIntent, AFileThatIsNoTomlOrOfAnotherVersionIsRefused) {
  EXPECT_THAT(read_sections("[[file", "job.toml").error().what, HasSubstr("job.toml:1"));
  EXPECT_THAT(read_sections("version = 2", "job.toml").error().what, HasSubstr("version 2"));
}

TEST(ReadIntent, AGapIsASizeOrLeftToMeasurement) {
  const auto gap = [](std::string_view value) {
    return sections("[[file]]\npath = '*'\ngap = " + std::string(value) + "\n").at(0).intent.gap;
  };
  EXPECT_EQ(gap("0")->bytes, 0);
  EXPECT_EQ(gap("65536")->bytes, 64 * KiB);
  EXPECT_EQ(gap("'auto'")->bytes, std::nullopt);
  EXPECT_FALSE(gap("-1").has_value());
  const auto found = sections("[[file]]\npath='*'\ngap=0\n[[file]]\npath='*'\ngap='auto'\n");
  const ReadSection* all[] = {&found.at(0), &found.at(1)};
  EXPECT_EQ(combined(all).gap->bytes, std::nullopt) << "the later section wins";
}

TEST(ReadIntent, ThePageCacheIsAPolicy) {
  const auto found = read_sections("[[file]]\npath = '*'\npolicy = 'page-cache'\n", "intent.toml");
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().intent.policy, ReadPolicy::page_cache);
}

TEST(ReadIntent, BytesThatAreNoTextAreWrittenAsNumbers) {
  const auto found = sections(R"(
[[file]]
path = '/data/\xff\xFE?\\xff\xf\x7f\é'
willneed = [[0, 1]]
)");
  const auto matches = [&](const char* path) { return !patterns_for(found, path, 9).empty(); };
  EXPECT_TRUE(matches("/data/\xff\xfe_\\xffxfx7f\xc3\xa9"));
  EXPECT_FALSE(matches("/data/\xff\xff_\\xffxfx7f\xc3\xa9"));
  EXPECT_FALSE(matches("/data/\xff\xfe_\\\xffxfx7f\xc3\xa9"));
  EXPECT_TRUE(
      patterns_for(sections("[[file]]\npath = '\\xff'\nwillneed = [[0, 1]]\n"), "/data/xff", 9)
          .empty());
}

}  // namespace
}  // namespace forebay
