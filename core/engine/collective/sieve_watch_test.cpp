// Goal: the handles of one file know of each other, and those of others do not.

#include "core/engine/collective/sieve_watch.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace forebay {
namespace {

constexpr FileId file{.device = 7, .inode = 1001};
constexpr FileId other_file{.device = 7, .inode = 1002};

TEST(SieveWatch, HandlesOfOneFileSeeEachOther) {
  SieveWatch first(file);
  const SieveWatch second(file);
  EXPECT_FALSE(first.sieving() || second.sieving());
  first.announce(true);
  first.announce(true);
  EXPECT_TRUE(first.sieving() && second.sieving());
  EXPECT_TRUE(second.another_sieves());
  EXPECT_FALSE(first.another_sieves());
  first.announce(false);
  EXPECT_FALSE(first.sieving() || second.sieving() || second.another_sieves());
}

TEST(SieveWatch, AHandleThatIsClosedSievesNoMore) {
  const SieveWatch stays(file);
  std::optional<SieveWatch> goes(std::in_place, file);
  goes->announce(true);
  EXPECT_TRUE(stays.another_sieves());
  goes.reset();
  EXPECT_FALSE(stays.sieving());
}

TEST(SieveWatch, OtherFilesDoNotMatter) {
  SieveWatch one(file);
  const SieveWatch other(other_file);
  SieveWatch unknown(std::nullopt);
  const SieveWatch unknown_too(std::nullopt);
  one.announce(true);
  unknown.announce(true);
  EXPECT_FALSE(other.sieving());
  EXPECT_FALSE(unknown_too.sieving());
  EXPECT_TRUE(unknown.sieving());
}

}  // namespace
}  // namespace forebay
