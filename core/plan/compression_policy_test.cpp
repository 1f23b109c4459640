// Goal: compression is switched on exactly where it pays, and costs next to nothing where not.
// Method: the policy is told of links and data with known speeds.

#include "core/plan/compression_policy.hpp"

#include <gtest/gtest.h>

namespace forebay {
namespace {

using Choice = CompressionPolicy::Choice;
constexpr Bytes message = 1 * MiB;

/// Plays `messages` messages over a link; returns how many were compressed and how many sampled.
struct Played {
  int compressed = 0;
  int sampled = 0;
};
Played play(CompressionPolicy& policy, int messages, double link_bytes_per_ns, double ratio,
            double lz4_ns_per_byte) {
  Played played;
  for (int i = 0; i < messages; ++i) {
    Choice choice = policy.next(message);
    if (choice == Choice::sample) {
      ++played.sampled;
      const Bytes part = 64 * KiB;
      policy.compressed(part, static_cast<Bytes>(static_cast<double>(part) * ratio),
                        static_cast<std::int64_t>(static_cast<double>(part) * lz4_ns_per_byte));
      choice = policy.next(message);
    }
    Bytes wire = message;
    if (choice == Choice::compress) {
      ++played.compressed;
      wire = static_cast<Bytes>(static_cast<double>(message) * ratio);
      policy.compressed(message, wire,
                        static_cast<std::int64_t>(static_cast<double>(message) * lz4_ns_per_byte));
    }
    policy.sent(wire, static_cast<std::int64_t>(static_cast<double>(wire) / link_bytes_per_ns));
  }
  return played;
}

TEST(CompressionPolicy, ASlowLinkAndDataThatShrinksSwitchItOn) {
  CompressionPolicy policy(Toggle::automatic);
  EXPECT_EQ(play(policy, 100, 0.1, 0.5, 2.0).compressed, 99);
}

TEST(CompressionPolicy, AFastLinkLeavesItOff) {
  CompressionPolicy policy(Toggle::automatic);
  EXPECT_EQ(play(policy, 1000, 5.0, 0.5, 2.0).compressed, 0);
}

TEST(CompressionPolicy, DataThatDoesNotShrinkIsSampledEverMoreRarely) {
  CompressionPolicy policy(Toggle::automatic);
  const Played played = play(policy, 10'000, 0.1, 1.0, 1.0);
  EXPECT_EQ(played.compressed, 0);
  EXPECT_LE(played.sampled, 20);
  EXPECT_GE(played.sampled, 5);
}

TEST(CompressionPolicy, ItRecoversWhenTheDataChanges) {
  CompressionPolicy policy(Toggle::automatic);
  play(policy, 100, 0.1, 1.0, 2.0);
  EXPECT_FALSE(policy.on());
  play(policy, 2'000, 0.1, 0.3, 2.0);
  EXPECT_TRUE(policy.on());
  play(policy, 3, 0.1, 1.0, 2.0);
  EXPECT_FALSE(policy.on());
}

TEST(CompressionPolicy, TheUsersWordIsLaw) {
  CompressionPolicy always(Toggle::enable);
  EXPECT_EQ(always.next(message), Choice::compress);
  EXPECT_EQ(always.next(100), Choice::plain) << "not worth it for a few bytes";
  CompressionPolicy never(Toggle::disable);
  EXPECT_EQ(play(never, 50, 0.001, 0.1, 1.0).compressed, 0);
}

}  // namespace
}  // namespace forebay
