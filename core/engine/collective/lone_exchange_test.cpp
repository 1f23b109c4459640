// Goal: the exchange of one rank does what core/engine/collective/exchange.hpp says of all ranks.
// Method: each call, and the same calls to the in-process twin with one rank.
#include "core/engine/collective/lone_exchange.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "core/engine/collective/thread_exchange.hpp"

namespace forebay {
namespace {

class OneRank : public testing::TestWithParam<std::shared_ptr<Exchange>> {};

TEST_P(OneRank, HearsItselfAlone) {
  Exchange& exchange = *GetParam();
  EXPECT_EQ(exchange.rank(), 0);
  EXPECT_EQ(exchange.size(), 1);
  EXPECT_EQ(exchange.nodes().nodes(), 1);
  EXPECT_EQ(exchange.nodes().node_of_rank, std::vector<int>{0});
  EXPECT_EQ(exchange.nodes().ranks_of_node, std::vector<std::vector<int>>{{0}});
  EXPECT_EQ(exchange.ranks_on_host(), 1);
  EXPECT_FALSE(exchange.cores_are_shared());

  exchange.barrier();
  for (const Reduce op : {Reduce::min, Reduce::max, Reduce::sum}) {
    std::array<std::int64_t, 2> values{7, -3};
    exchange.all_reduce(values, op);
    EXPECT_EQ(values, (std::array<std::int64_t, 2>{7, -3}));
  }
  EXPECT_EQ(exchange.exclusive_sum(5), 0);

  const std::vector<std::byte> mine{std::byte{1}, std::byte{2}};
  std::vector<std::byte> all(mine.size());
  exchange.all_gather(mine, all);
  EXPECT_EQ(all, mine);
  EXPECT_EQ(exchange.all_gather_varying(mine), std::vector<std::vector<std::byte>>(1, mine));
  EXPECT_EQ(exchange.all_gather_varying({}), std::vector<std::vector<std::byte>>(1));
}

TEST_P(OneRank, SharesZeroedMemory) {
  auto region = GetParam()->share(5000);
  ASSERT_TRUE(region);
  ASSERT_EQ((*region)->bytes().size(), 5000U);
  for (std::byte& byte : (*region)->bytes()) {
    EXPECT_EQ(byte, std::byte{0});
    byte = std::byte{9};
  }
}

INSTANTIATE_TEST_SUITE_P(Exchanges, OneRank,
                         testing::Values(make_lone_exchange(), make_thread_exchanges(1, 1)[0]));

}  // namespace
}  // namespace forebay
