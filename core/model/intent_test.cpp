// Goal: an intent file gives each file its hints, and every mistake in it is named with its line.
// Method: small intent files, one point each. The format is docs/formats/intent.md.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/model/hints.hpp"

namespace forebay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

IntentHints intent(std::string_view toml, std::string_view file = "/scratch/run/ckpt_0001.h5") {
  auto result = intent_for(toml, "job.toml", file, {});
  if (!result) {
    ADD_FAILURE() << to_string(result.error());
    return {};
  }
  return *std::move(result);
}

Error refusal(std::string_view toml) {
  const auto result = intent_for(toml, "job.toml", "/scratch/a", {});
  if (result) {
    ADD_FAILURE() << "accepted: " << toml;
    return {};
  }
  return result.error();
}

std::vector<std::string> told(const IntentHints& result) {
  std::vector<std::string> lines;
  for (const HintProblem& problem : result.problems) lines.push_back(to_string(problem));
  return lines;
}

TEST(Intent, SectionsApplyInOrderToTheFilesTheyMatch) {
  const auto result = intent(R"(
version = 1

[[file]]
path = "*"
cb_nodes = 4
cb_buffer_size = "16MiB"
forebay_compress = false

[[file]]
path = "/scratch/*/ckpt_*.h5"
cb_nodes = 8
romio_no_indep_rw = true

[[file]]
path = "*.nc"
cb_nodes = 1
)");
  EXPECT_THAT(told(result), IsEmpty());
  EXPECT_EQ(result.hints.aggregators, 8);
  EXPECT_EQ(result.hints.buffer_size, 16 * MiB);
  EXPECT_EQ(result.hints.compress, Toggle::disable);
  EXPECT_TRUE(result.hints.no_independent);
}

TEST(Intent, ATableSpeaksOfTheCacheOfItsSection) {
  const auto result = intent(R"(
[[file]]
path = "ckpt_*.h5"
[file.cache]
mode = "enable"
path = "/local/nvme"
flush = "onclose"
capacity = "2GiB"
redundancy = "parity:4+2"
compress = false
colour = "red"
)");
  EXPECT_EQ(result.hints.cache, true);
  EXPECT_EQ(result.hints.cache_path, "/local/nvme");
  EXPECT_EQ(result.hints.cache_flush, CacheFlush::onclose);
  EXPECT_EQ(result.hints.cache_capacity, 2 * GiB);
  EXPECT_EQ(result.hints.cache_redundancy, (CacheRedundancy{4, 2}));
  EXPECT_EQ(result.hints.cache_compress, Toggle::disable);
  EXPECT_THAT(told(result), ElementsAre(HasSubstr("job.toml:11: colour = \"red\"")));
}

TEST(Intent, PatternsWithASlashAreForThePathOthersForTheName) {
  const auto matches = [](const std::string& pattern, const std::string& file) {
    return intent("[[file]]\npath = '" + pattern + "'\ncb_nodes = 2\n", file).hints.aggregators ==
           2;
  };
  EXPECT_TRUE(matches("a.dat", "/x/y/a.dat"));
  EXPECT_TRUE(matches("a.dat", "a.dat"));
  EXPECT_FALSE(matches("y", "/x/y/a.dat"));
  EXPECT_TRUE(matches("/x/*", "/x/y/a.dat")) << "a star goes through slashes";
  EXPECT_TRUE(matches("*/y/?.dat", "/x/y/a.dat"));
  EXPECT_FALSE(matches("/y/*", "/x/y/a.dat")) << "the whole path";
  EXPECT_TRUE(matches("[ab].dat", "/x/b.dat"));
  EXPECT_FALSE(matches("[!ab].dat", "/x/b.dat"));
}

TEST(Intent, GoesOnTopOfWhatIsThere) {
  Hints base;
  base.aggregators = 3;
  base.stripe_count = 7;
  const auto result = intent_for("[[file]]\npath = '*'\ncb_nodes = 5\n", "job.toml", "/a", base);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->hints.aggregators, 5);
  EXPECT_EQ(result->hints.stripe_count, 7);
}

TEST(Intent, NothingInItMeansNothing) {
  EXPECT_THAT(told(intent("")), IsEmpty());
  EXPECT_THAT(told(intent("# a comment\nversion = 1\n")), IsEmpty());
  EXPECT_EQ(to_pairs(intent("").hints), to_pairs(Hints{}));
}

TEST(Intent, KeysOfASectionApplyInTheOrderOfTheFile) {
  // Sorted by name, cb_config_list would come first both times.
  EXPECT_EQ(
      intent("[[file]]\npath = '*'\nforebay_aggregators_per_node = 2\ncb_config_list = '*:1'\n")
          .hints.aggregators_per_node,
      1);
  EXPECT_EQ(
      intent("[[file]]\npath = '*'\ncb_config_list = '*:1'\nforebay_aggregators_per_node = 2\n")
          .hints.aggregators_per_node,
      2);
}

TEST(Intent, MistakesAreReportedWithTheirLineAndTheRestCounts) {
  const auto result = intent(R"(version = 1
colour = "blue"
[[file]]
path = "*"
cb_nodes = "many"
cb_buffer_size = -1
striping_unit = 1.5
cb_nodess = 3
striping_factor = 4
[file.later]
size = "1GiB"
[other]
)");
  EXPECT_EQ(result.hints.stripe_count, 4);
  EXPECT_EQ(result.hints.aggregators, std::nullopt);
  EXPECT_THAT(
      told(result),
      ElementsAre(
          HasSubstr("job.toml:2: colour = \"blue\" is not understood and has no effect; accepted: "
                    "[[file]] sections"),
          HasSubstr("job.toml:5: cb_nodes = \"many\""),
          HasSubstr("job.toml:6: cb_buffer_size = \"-1\""),
          HasSubstr("job.toml:7: striping_unit = \"(number with a fraction, date or time)\" is not "
                    "understood and has no effect; accepted: a size in bytes"),
          HasSubstr(
              "job.toml:8: cb_nodess = \"3\" is not understood and has no effect; accepted: a "
              "key of the hints reference"),
          HasSubstr("job.toml:10: later = \"(table)\""),
          HasSubstr("job.toml:12: other = \"(table)\"")));
}

TEST(Intent, MistakesOfSectionsForOtherFilesAreNotThisFilesBusiness) {
  EXPECT_THAT(told(intent("[[file]]\npath = '*.nc'\ncb_nodes = 'many'\n")), IsEmpty());
}

TEST(Intent, ASectionNeedsAPattern) {
  const auto result = intent("[[file]]\ncb_nodes = 3\n[[file]]\npath = 7\ncb_nodes = 4\n");
  EXPECT_THAT(told(result), ElementsAre(HasSubstr("job.toml:1: path = \"\""),
                                        HasSubstr("job.toml:4: path = \"7\"")));
  EXPECT_EQ(result.hints.aggregators, std::nullopt);
  EXPECT_THAT(told(intent("[[file]]\npath = \"a\\u0000b\"\n")),
              ElementsAre(HasSubstr("without NUL characters")));
}

TEST(Intent, FileMustBeASectionOfItsOwnKind) {
  EXPECT_THAT(told(intent("[file]\npath = '*'\n")),
              ElementsAre(HasSubstr("job.toml:1: file = \"(table)\"")));
  EXPECT_THAT(told(intent("file = [1, 2]\n")), ElementsAre(HasSubstr("accepted: [[file]]")));
  EXPECT_THAT(told(intent("file = []\n")), ElementsAre(HasSubstr("accepted: [[file]]")));
}

TEST(Intent, OtherVersionsAreRefused) {
  for (const char* version : {"2", "0", "-1", "\"1\"", "1.0", "[1]"}) {
    const Error error = refusal("\nversion = " + std::string(version) + "\n");
    EXPECT_EQ(error.kind, ErrorKind::invalid_argument);
    EXPECT_THAT(error.what, HasSubstr("job.toml:2: version "));
    EXPECT_THAT(error.what, HasSubstr("write version = 1"));
  }
}

TEST(Intent, SyntaxErrorsSayWhere) {
  const Error error = refusal("version = 1\n[[file]]\npath = \"*\"\ncb_nodes = = 3\n");
  EXPECT_EQ(error.kind, ErrorKind::invalid_argument);
  EXPECT_THAT(error.what, HasSubstr("job.toml:4, column 12: "));
  EXPECT_THAT(error.what, HasSubstr("; correct the line"));
  EXPECT_THAT(refusal("a = 1\na = 2\n").what, HasSubstr("job.toml:2"));
}

TEST(Intent, MistakesThatTomlPlusPlusDoesNotTakeWell) {
  EXPECT_THAT(refusal("[[\nfile]]\n").what, HasSubstr("job.toml:1"));
  EXPECT_THAT(refusal("a = 1\nclé = 2\n").what, HasSubstr("job.toml:2"));
  EXPECT_THAT(refusal("a = \uFE7F 2\n").what, HasSubstr("job.toml:1"));
  EXPECT_THAT(told(intent("# clé\n[[file]]\npath = '/données/*'\n")), IsEmpty());
  EXPECT_EQ(refusal("\xff\xfe").kind, ErrorKind::invalid_argument);
}

}  // namespace
}  // namespace forebay
