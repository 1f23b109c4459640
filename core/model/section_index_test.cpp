// Goal: the sections for a file are those that asking each section finds, in that order. Method: a
// case by hand, and random sections of few names, with and without wildcards, against the plain
// way.

#include "core/model/section_index.hpp"

#include <fnmatch.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace forebay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ReadSection section(std::string pattern, std::optional<Bytes> same_size = {}, bool reads = true) {
  ReadSection made{std::move(pattern), {}, {}, same_size, {}};
  if (reads) made.intent.willneed = {{0, 1}};
  return made;
}

std::vector<std::string> patterns(const std::vector<const ReadSection*>& found) {
  std::vector<std::string> result;
  for (const ReadSection* one : found) result.push_back(one->pattern);
  return result;
}

TEST(SectionIndex, KeepsTheOrderOfPatternsWithAndWithoutWildcards) {
  const std::vector<ReadSection> sections = {
      section("/data/b"), section("*"),         section("b"),       section("/data/a"),
      section("/data/*"), section("/data/b"),   section("/data/?"), section("data/b"),
      section("[b]"),     section("/data/\\b"), section("")};
  const SectionIndex index(sections);
  EXPECT_THAT(
      patterns(index.sections_for(std::array{"/data/b"}, 9)),
      ElementsAre("/data/b", "*", "b", "/data/*", "/data/b", "/data/?", "[b]", "/data/\\b"));
  EXPECT_THAT(patterns(index.sections_for(std::array{"/link/b", "/data/a"}, 9)),
              ElementsAre("*", "b", "/data/a", "/data/*", "/data/?", "[b]"));
  EXPECT_THAT(patterns(index.sections_for(std::array{"/data/b", "/data/b"}, 9)),
              testing::SizeIs(8));
  EXPECT_THAT(SectionIndex({}).sections_for(std::array{"/data/b"}, 9), IsEmpty());
}

std::size_t likeness(std::string a, std::string b) {
  a = a.substr(a.rfind('/') + 1);
  b = b.substr(b.rfind('/') + 1);
  const auto common = [&] {
    std::size_t count = 0;
    while (count < std::min(a.size(), b.size()) && a[count] == b[count]) ++count;
    return count;
  };
  const std::size_t front = common();
  std::ranges::reverse(a);
  std::ranges::reverse(b);
  return front + common();
}

/// Each section is asked.
std::vector<const ReadSection*> plainly(const std::vector<ReadSection>& sections,
                                        const std::vector<const char*>& paths, Bytes size) {
  std::vector<const ReadSection*> result;
  const ReadSection* like = nullptr;
  bool is_declared = false;
  for (const ReadSection& one : sections) {
    const bool is_path = one.pattern.find('/') != std::string::npos;
    const bool is_named = std::ranges::any_of(paths, [&](const char* path) {
      const char* name = is_path ? path : std::strrchr(path, '/') + 1;
      return ::fnmatch(one.pattern.c_str(), name, 0) == 0;
    });
    const bool reads = !one.intent.willneed.empty();
    if (is_named) result.push_back(&one);
    is_declared = is_declared || (is_named && reads);
    if (one.same_size != size || !reads) continue;
    const auto like_it = [&](const ReadSection& it) { return likeness(it.pattern, paths.front()); };
    if (like == nullptr || like_it(one) > like_it(*like)) like = &one;
  }
  if (like == nullptr || is_declared) return result;
  result.insert(std::ranges::upper_bound(result, like), like);
  return result;
}

RC_GTEST_PROP(SectionIndexProperty, finds_what_asking_each_section_finds, ()) {
  const auto name_of = [](const std::string& characters) {
    return *rc::gen::resize(3, rc::gen::container<std::string>(rc::gen::elementOf(characters)));
  };
  std::vector<ReadSection> sections;
  for (int left = *rc::gen::inRange(0, 20); left > 0; --left) {
    const bool is_wild = *rc::gen::inRange(0, 3) == 0;
    const std::string name = name_of(is_wild ? "ab/*?[]\\\xff" : "ab/\xff");
    const auto size = *rc::gen::inRange<Bytes>(0, 3);
    sections.push_back(section(*rc::gen::arbitrary<bool>() ? "/" + name : name,
                               size == 0 ? std::nullopt : std::optional(size),
                               *rc::gen::arbitrary<bool>()));
  }
  const SectionIndex index(sections);
  const std::string named = "/" + name_of("ab/\xff");
  const std::string real = "/" + name_of("ab/\xff");
  const std::vector<const char*> paths = {named.c_str(), real.c_str()};
  for (const Bytes size : {1, 2, 3}) {
    RC_ASSERT(index.sections_for(paths, size) == plainly(sections, paths, size));
  }
}

}  // namespace
}  // namespace forebay
