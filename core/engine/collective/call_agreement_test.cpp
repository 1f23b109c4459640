// Goal: what a rank says of its call is checked before anything is made of it: a damaged or foreign
// record or view ends the call with an error, alike on every rank, and the next call works.
// Method: ranks are threads; an exchange in between damages what a gather brings.

#include "core/engine/collective/call_agreement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "core/engine/collective/forwarding_exchange.hpp"
#include "core/engine/collective/thread_exchange.hpp"
#include "core/storage/memory_file.hpp"

namespace forebay {
namespace {

using testing::HasSubstr;

/// An exchange whose gathers bring what `damage_records` and `damage_trees` make of the truth; the
/// same on every rank, as a sender's mistake would be.
class DamagedExchange final : public ForwardingExchange {
 public:
  explicit DamagedExchange(std::shared_ptr<Exchange> inner)
      : ForwardingExchange(std::move(inner)) {}

  std::function<void(std::span<std::byte>)> damage_records = [](std::span<std::byte>) {};
  std::function<void(std::vector<std::vector<std::byte>>&)> damage_trees = [](auto&) {};

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    ForwardingExchange::all_gather(mine, all);
    damage_records(all);
  }
  std::vector<std::vector<std::byte>> all_gather_varying(std::span<const std::byte> mine) override {
    auto all = ForwardingExchange::all_gather_varying(mine);
    damage_trees(all);
    return all;
  }
};

/// Runs one agreement of two ranks under `prepare`, and one without it. Expects the first to fail
/// on both with `reason`, and the second to succeed.
void expect_refusal(const std::function<void(DamagedExchange&)>& prepare, const char* reason) {
  run_ranks(2, 1, [&](const std::shared_ptr<Exchange>& exchange) {
    Counters counters;
    DamagedExchange damaged(exchange);
    TimedFile storage(open_memory_file(std::make_shared<MemoryInode>(), counters),
                      steady_nanoseconds());
    AgreedCost cost({}, storage, 2, {});
    CallAgreement agreement(damaged, cost, counters);
    const FileDomains domains{.unit = 4096, .aggregators = 1, .units_per_window = 1};
    const CallAgreement::Setting setting{true, {}, Toggle::automatic, domains};
    const Access access{{StridedTree::contiguous(8), exchange->rank() * 8, 16}, 0, {}, 800};
    prepare(damaged);
    const auto refused = agreement.agree(access, setting);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::internal);
    EXPECT_THAT(refused.error().what, HasSubstr(reason));
    damaged.damage_records = [](std::span<std::byte>) {};
    damaged.damage_trees = [](auto&) {};
    const auto agreed = agreement.agree(access, setting);
    ASSERT_TRUE(agreed) << to_string(agreed.error());
    EXPECT_EQ((*agreed)->total, 1600);
  });
}

TEST(CallAgreement, ARecordOfAnotherVersionEndsTheCallEverywhere) {
  expect_refusal(
      [](DamagedExchange& exchange) {
        exchange.damage_records = [](std::span<std::byte> all) {
          all[call_record_bytes + 2] = std::byte{77};
        };
      },
      "rank 1: it is of version 77");
}

TEST(CallAgreement, ADamagedViewEndsTheCallEverywhere) {
  expect_refusal(
      [](DamagedExchange& exchange) {
        exchange.damage_trees = [](auto& all) { all[1].back() ^= std::byte{1}; };
      },
      "rank 1: description of a file view: its checksum does not fit");
}

TEST(CallAgreement, AViewThatNobodySentEndsTheCallEverywhere) {
  expect_refusal(
      [](DamagedExchange& exchange) {
        exchange.damage_trees = [](auto& all) { all[0].clear(), all[1].clear(); };
      },
      "rank 0: it sent another file view than it announced");
}

}  // namespace
}  // namespace forebay
