// Goal: every spelling of a hint ends in the right field or in a problem that says what to write,
// and the reference in docs/guide/hints.md tells the truth about the keys. Method: examples for
// each kind of value; properties for sizes and for the way there and back; the reference is read
// and compared with the table.

#include "core/model/hints.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <limits>
#include <string>

#include "core/model/hint_values.hpp"

namespace forebay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAreArray;

Hints applied(const HintPairs& pairs) {
  Hints hints;
  const auto problems = apply_hints(hints, pairs, "test");
  EXPECT_THAT(problems, IsEmpty()) << to_string(problems.front());
  return hints;
}

TEST(ParseSize, TakesBytesAndBinaryUnits) {
  EXPECT_EQ(parse_size("1"), 1);
  EXPECT_EQ(parse_size("4194304"), 4194304);
  EXPECT_EQ(parse_size("4MiB"), 4 * MiB);
  EXPECT_EQ(parse_size("4m"), 4 * MiB);
  EXPECT_EQ(parse_size("4M"), 4 * MiB);
  EXPECT_EQ(parse_size("64kib"), 64 * KiB);
  EXPECT_EQ(parse_size("2g"), 2 * GiB);
  EXPECT_EQ(parse_size("9223372036854775807"), std::numeric_limits<Bytes>::max());
  EXPECT_EQ(parse_size("8589934591GiB"), 8589934591 * GiB);
}

TEST(ParseSize, RefusesEverythingElse) {
  for (const char* wrong : {"",
                            "0",
                            "-1",
                            "+1",
                            " 1",
                            "1 ",
                            "1 MiB",
                            "banana",
                            "MiB",
                            "1.5MiB",
                            "1MB",
                            "1kb",
                            "1B",
                            "1t",
                            "0x10",
                            "1e6",
                            "4MiBs",
                            "9223372036854775808",
                            "8589934592GiB",
                            "99999999999999999999999"}) {
    EXPECT_EQ(parse_size(wrong), std::nullopt) << wrong;
  }
}

RC_GTEST_PROP(ParseSize, ReadsEveryPrintedNumberInEveryUnit, ()) {
  const auto number = *rc::gen::inRange<Bytes>(1, Bytes{1} << 33);
  const auto [suffix, unit] = *rc::gen::elementOf(std::vector<std::pair<std::string, Bytes>>{
      {"", 1}, {"k", KiB}, {"K", KiB}, {"KiB", KiB}, {"m", MiB}, {"MiB", MiB}, {"GIB", GiB}});
  const auto expected = number <= std::numeric_limits<Bytes>::max() / unit
                            ? std::optional(number * unit)
                            : std::nullopt;
  RC_ASSERT(parse_size(std::to_string(number) + suffix) == expected);
}

RC_GTEST_PROP(ParseSize, NeverGivesLessThanOneByte, (const std::string& text)) {
  const auto value = parse_size(text);
  RC_ASSERT(value.value_or(1) >= 1);
}

TEST(ParseCount, TakesWholeNumbersFromOne) {
  EXPECT_EQ(parse_count("1"), 1);
  EXPECT_EQ(parse_count("2147483647"), 2147483647);
  for (const char* wrong : {"", "0", "-1", "2147483648", "1k", "one", "1 "}) {
    EXPECT_EQ(parse_count(wrong), std::nullopt) << wrong;
  }
}

TEST(ParseIndex, TakesWholeNumbersFromZero) {
  EXPECT_EQ(parse_index("0"), 0);
  EXPECT_EQ(parse_index("2147483647"), 2147483647);
  for (const char* wrong : {"", "-0", "-1", "2147483648", "1k", "one", "1 "}) {
    EXPECT_EQ(parse_index(wrong), std::nullopt) << wrong;
  }
}

TEST(ApplyHints, KnowsRomio) {
  const Hints hints = applied({{"cb_nodes", "8"},
                               {"cb_buffer_size", "16777216"},
                               {"cb_config_list", "*:2"},
                               {"romio_cb_write", "enable"},
                               {"romio_cb_read", "DISABLE"},
                               {"romio_ds_write", "disable"},
                               {"romio_ds_read", "automatic"},
                               {"romio_no_indep_rw", "true"},
                               {"striping_unit", "1048576"},
                               {"striping_factor", "4"},
                               {"start_iodevice", "0"},
                               {"ind_rd_buffer_size", "4194304"},
                               {"ind_wr_buffer_size", "524288"}});
  EXPECT_EQ(hints.aggregators, 8);
  EXPECT_EQ(hints.buffer_size, 16 * MiB);
  EXPECT_EQ(hints.aggregators_per_node, 2);
  EXPECT_EQ(hints.collective_write, Toggle::enable);
  EXPECT_EQ(hints.collective_read, Toggle::disable);
  EXPECT_EQ(hints.sieve_write, Toggle::disable);
  EXPECT_EQ(hints.sieve_read, Toggle::automatic);
  EXPECT_TRUE(hints.no_independent);
  EXPECT_EQ(hints.stripe_size, MiB);
  EXPECT_EQ(hints.stripe_count, 4);
  EXPECT_EQ(hints.first_server, 0);
  EXPECT_EQ(hints.independent_read_buffer, 4 * MiB);
  EXPECT_EQ(hints.independent_write_buffer, 512 * KiB);
}

TEST(ApplyHints, KnowsOmpio) {
  const Hints hints =
      applied({{"collective_buffering", "false"}, {"stripe_size", "65536"}, {"stripe_width", "2"}});
  EXPECT_EQ(hints.collective_write, Toggle::disable);
  EXPECT_EQ(hints.collective_read, Toggle::disable);
  EXPECT_EQ(hints.stripe_size, 64 * KiB);
  EXPECT_EQ(hints.stripe_count, 2);
  EXPECT_EQ(applied({{"collective_buffering", "true"}}).collective_write, Toggle::automatic);
}

TEST(ApplyHints, KnowsItsOwn) {
  const Hints hints = applied({{"forebay", "disable"},
                               {"forebay_aggregators_per_node", "3"},
                               {"forebay_compress", "enable"},
                               {"forebay_io_depth", "4"}});
  EXPECT_TRUE(hints.passthrough);
  EXPECT_EQ(hints.aggregators_per_node, 3);
  EXPECT_EQ(hints.compress, Toggle::enable);
  EXPECT_EQ(hints.io_depth, 4);
  EXPECT_FALSE(applied({{"forebay", "disable"}, {"forebay", "enable"}}).passthrough);
}

TEST(ApplyHints, EveryRankOfANodeIsWithoutBound) {
  EXPECT_EQ(applied({{"cb_config_list", "*:*"}}).aggregators_per_node,
            std::numeric_limits<int>::max());
}

TEST(ApplyHints, LaterPairsWin) {
  EXPECT_EQ(applied({{"cb_nodes", "8"}, {"cb_nodes", "2"}}).aggregators, 2);
}

TEST(ApplyHints, KnowsTheCacheAsE10SpellsIt) {
  const Hints hints = applied({{"e10_cache", "coherent"},
                               {"e10_cache_path", "/scratch/local"},
                               {"e10_cache_flush_flag", "flush_onclose"},
                               {"e10_cache_discard_flag", "disable"},
                               {"e10_cache_threads", "3"}});
  EXPECT_EQ(hints.cache, true);
  EXPECT_EQ(hints.cache_path, "/scratch/local");
  EXPECT_EQ(hints.cache_flush, CacheFlush::onclose);
  EXPECT_EQ(hints.cache_discard, false);
  EXPECT_EQ(hints.cache_threads, 3);
  EXPECT_EQ(applied({{"e10_cache", "disable"}}).cache, false);
  Hints wrong;
  EXPECT_EQ(apply_hints(wrong, {{"e10_cache_path", "local"}}, "").size(), 1u);
}

TEST(ApplyHints, RedundancyIsACopyOrParity) {
  const auto redundancy = [](const std::string& text) {
    return applied({{"forebay_cache_redundancy", text}}).cache_redundancy;
  };
  EXPECT_EQ(redundancy("none"), (CacheRedundancy{0, 0}));
  EXPECT_EQ(redundancy("partner"), (CacheRedundancy{1, 1}));
  EXPECT_EQ(redundancy("parity"), (CacheRedundancy{4, 1}));
  EXPECT_EQ(redundancy("parity:8+2"), (CacheRedundancy{8, 2}));
  EXPECT_EQ(redundancy("parity:255+1"), (CacheRedundancy{255, 1}));
  for (const char* text :
       {"", "parity:", "parity:8", "parity:+", "parity:8+", "parity:+2", "parity:0+1", "parity:8+0",
        "parity:8+2+1", "parity:255+2", "parity:2147483647+2147483647", "parity8+2", "raid5"}) {
    Hints hints;
    EXPECT_EQ(apply_hints(hints, {{"forebay_cache_redundancy", text}}, "").size(), 1U) << text;
    EXPECT_FALSE(hints.cache_redundancy) << text;
  }
}

TEST(ApplyHints, ADelayHasABeginAndAnEnd) {
  EXPECT_EQ(applied({{"forebay_delayed", "begin"}}).delayed, true);
  EXPECT_EQ(applied({{"forebay_delayed", "begin"}, {"forebay_delayed", "end"}}).delayed, false);
  Hints hints;
  EXPECT_EQ(apply_hints(hints, {{"forebay_delayed", "enable"}}, "").size(), 1U);
  EXPECT_FALSE(hints.delayed);
}

TEST(ApplyHints, AWrongValueIsReportedAndChangesNothing) {
  Hints hints = applied({{"cb_buffer_size", "1MiB"}});
  const auto problems = apply_hints(hints, {{"cb_buffer_size", "banana"}}, "MPI_Info");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(
      to_string(problems[0]),
      "MPI_Info: cb_buffer_size = \"banana\" is not understood and has no effect; accepted: a "
      "size in bytes such as 4194304 or 4MiB");
  EXPECT_EQ(hints.buffer_size, MiB);
}

TEST(ApplyHints, EveryKeyRefusesNonsense) {
  for (const HintKey& key : known_hints()) {
    for (const char* nonsense : {"", "banana", "-3", "enable;", "*:0", "host1:2"}) {
      Hints hints;
      const auto problems = apply_hints(hints, {{std::string(key.key), nonsense}}, "test");
      ASSERT_EQ(problems.size(), 1u) << key.key << "=" << nonsense;
      EXPECT_EQ(problems[0].accepted, key.accepted);
      EXPECT_EQ(to_pairs(hints), to_pairs(Hints{})) << key.key << "=" << nonsense;
    }
  }
}

TEST(ApplyHints, UnknownKeysAreOthersBusinessUnlessTheyAreOurs) {
  Hints hints;
  const auto problems = apply_hints(
      hints,
      {{"romio_lustre_co_ratio", "1"}, {"access_style", "write_once"}, {"forebay_agregators", "2"}},
      "MPI_Info");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].key, "forebay_agregators");
  EXPECT_THAT(problems[0].accepted, HasSubstr("forebay_aggregators_per_node, forebay_compress"));
}

TEST(ParseHintList, SplitsAndTrims) {
  const auto pairs = parse_hint_list(" cb_nodes = 8 ;;cb_config_list=*:1; romio_x=a=b;");
  ASSERT_TRUE(pairs) << to_string(pairs.error());
  EXPECT_THAT(*pairs, ElementsAre(Pair("cb_nodes", "8"), Pair("cb_config_list", "*:1"),
                                  Pair("romio_x", "a=b")));
  EXPECT_THAT(parse_hint_list("").value(), IsEmpty());
  EXPECT_THAT(parse_hint_list("key=").value(), ElementsAre(Pair("key", "")));
}

TEST(ParseHintList, SaysWhatToWrite) {
  for (const char* wrong : {"cb_nodes", "cb_nodes=1;banana", "=5", " = "}) {
    const auto pairs = parse_hint_list(wrong);
    ASSERT_FALSE(pairs) << wrong;
    EXPECT_EQ(pairs.error().kind, ErrorKind::invalid_argument);
    EXPECT_THAT(pairs.error().what, HasSubstr("write key=value;key=value"));
  }
}

TEST(ToPairs, LeavesOutWhatIsLeftToForebay) {
  EXPECT_THAT(to_pairs(Hints{}),
              ElementsAre(Pair("romio_cb_write", "automatic"), Pair("romio_cb_read", "automatic"),
                          Pair("romio_ds_write", "automatic"), Pair("romio_ds_read", "automatic"),
                          Pair("romio_no_indep_rw", "false"), Pair("forebay", "enable"),
                          Pair("forebay_compress", "automatic")));
}

TEST(CreationPairs, SayWhatWasDeclaredAsAnMpiReadsIt) {
  EXPECT_THAT(creation_pairs(Hints{}), IsEmpty());
  const Hints hints = applied({{"striping_unit", "1MiB"},
                               {"stripe_width", "4"},
                               {"start_iodevice", "2"},
                               {"collective_buffering", "false"},
                               {"forebay_io_depth", "3"},
                               {"forebay", "disable"}});
  EXPECT_THAT(
      creation_pairs(hints),
      testing::UnorderedElementsAre(
          Pair("striping_unit", "1048576"), Pair("stripe_size", "1048576"),
          Pair("striping_factor", "4"), Pair("stripe_width", "4"), Pair("start_iodevice", "2"),
          Pair("romio_cb_write", "disable"), Pair("romio_cb_read", "disable")));
}

Hints any_hints() {
  const auto count = [] { return *rc::gen::maybe(rc::gen::inRange(1, 100'000)); };
  const auto size = [] { return *rc::gen::maybe(rc::gen::inRange<Bytes>(1, 100 * GiB)); };
  const auto toggle = [] {
    return *rc::gen::element(Toggle::automatic, Toggle::enable, Toggle::disable);
  };
  const auto as_optional = [](const auto& maybe) {
    using Value = std::decay_t<decltype(*maybe)>;
    return maybe ? std::optional<Value>(*maybe) : std::nullopt;
  };
  Hints hints;
  hints.aggregators = as_optional(count());
  hints.aggregators_per_node = *rc::gen::arbitrary<bool>()
                                   ? as_optional(count())
                                   : std::optional<int>(std::numeric_limits<int>::max());
  hints.buffer_size = as_optional(size());
  hints.stripe_size = as_optional(size());
  hints.stripe_count = as_optional(count());
  hints.first_server = as_optional(count());
  hints.independent_read_buffer = as_optional(size());
  hints.independent_write_buffer = as_optional(size());
  hints.collective_write = toggle();
  hints.collective_read = toggle();
  hints.sieve_write = toggle();
  hints.sieve_read = toggle();
  hints.no_independent = *rc::gen::arbitrary<bool>();
  hints.compress = toggle();
  hints.io_depth = as_optional(count());
  hints.passthrough = *rc::gen::arbitrary<bool>();
  const auto maybe_bool = [] { return *rc::gen::maybe(rc::gen::arbitrary<bool>()); };
  hints.cache = as_optional(maybe_bool());
  if (*rc::gen::arbitrary<bool>()) hints.cache_path = "/scratch/local";
  if (*rc::gen::arbitrary<bool>()) {
    hints.cache_flush =
        *rc::gen::element(CacheFlush::immediate, CacheFlush::onsync, CacheFlush::onclose,
                          CacheFlush::deferred, CacheFlush::none);
  }
  hints.cache_capacity = as_optional(size());
  hints.cache_sync_to_node = as_optional(maybe_bool());
  hints.cache_discard = as_optional(maybe_bool());
  hints.cache_threads = as_optional(count());
  hints.cache_compress = toggle();
  if (*rc::gen::arbitrary<bool>()) {
    const int members = *rc::gen::inRange(1, CacheRedundancy::most_pieces);
    const int parities = *rc::gen::inRange(1, CacheRedundancy::most_pieces - members + 1);
    hints.cache_redundancy =
        *rc::gen::element(CacheRedundancy{}, CacheRedundancy{members, parities});
  }
  hints.delayed = as_optional(maybe_bool());
  return hints;
}

RC_GTEST_PROP(ToPairs, ComesBackThroughApplyHints, ()) {
  const Hints hints = any_hints();
  Hints back;
  RC_ASSERT(apply_hints(back, to_pairs(hints), "test").empty());
  RC_ASSERT(to_pairs(back) == to_pairs(hints));
  RC_ASSERT(back.aggregators == hints.aggregators);
  RC_ASSERT(back.aggregators_per_node == hints.aggregators_per_node);
  RC_ASSERT(back.buffer_size == hints.buffer_size);
  RC_ASSERT(back.stripe_size == hints.stripe_size);
  RC_ASSERT(back.stripe_count == hints.stripe_count);
  RC_ASSERT(back.first_server == hints.first_server);
  RC_ASSERT(back.independent_read_buffer == hints.independent_read_buffer);
  RC_ASSERT(back.independent_write_buffer == hints.independent_write_buffer);
  RC_ASSERT(back.collective_write == hints.collective_write);
  RC_ASSERT(back.collective_read == hints.collective_read);
  RC_ASSERT(back.sieve_write == hints.sieve_write);
  RC_ASSERT(back.sieve_read == hints.sieve_read);
  RC_ASSERT(back.no_independent == hints.no_independent);
  RC_ASSERT(back.compress == hints.compress);
  RC_ASSERT(back.io_depth == hints.io_depth);
  RC_ASSERT(back.passthrough == hints.passthrough);
  RC_ASSERT(back.cache == hints.cache);
  RC_ASSERT(back.cache_path == hints.cache_path);
  RC_ASSERT(back.cache_flush == hints.cache_flush);
  RC_ASSERT(back.cache_capacity == hints.cache_capacity);
  RC_ASSERT(back.cache_sync_to_node == hints.cache_sync_to_node);
  RC_ASSERT(back.cache_discard == hints.cache_discard);
  RC_ASSERT(back.cache_threads == hints.cache_threads);
  RC_ASSERT(back.cache_compress == hints.cache_compress);
  RC_ASSERT(back.cache_redundancy == hints.cache_redundancy);
  RC_ASSERT(back.delayed == hints.delayed);
}

// The rows of docs/guide/hints.md look like "| `key` | accepted | ...".
TEST(HintsReference, NamesEveryKeyWithItsAcceptedForm) {
  std::ifstream file(FOREBAY_SOURCE_DIR "/docs/guide/hints.md");
  ASSERT_TRUE(file) << "docs/guide/hints.md";
  std::vector<std::string> documented;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    std::erase(line, '`');
    const std::size_t end_of_accepted = line.find(" |", line.find(" | ") + 3);
    ASSERT_NE(end_of_accepted, std::string::npos) << line;
    documented.push_back(line.substr(2, end_of_accepted - 2));
  }
  std::vector<std::string> known;
  for (const HintKey& key : known_hints()) {
    known.push_back(std::string(key.key) + " | " + std::string(key.accepted));
  }
  EXPECT_THAT(documented, UnorderedElementsAreArray(known));
}

}  // namespace
}  // namespace forebay
