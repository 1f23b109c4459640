// Goal: who does not belong to a file's ranks gets nothing from the server of its claims and
// disturbs nobody; where a connection breaks, on either side, whoever waits hears of it; and a
// server stays as long as ranks need it.
// Method: connections of the test's own, which say what no rank says.

#include "core/engine/collective/claims_server.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "core/engine/collective/claims_rig.hpp"

namespace forebay {
namespace {

using Kind = ClaimsMessage::Kind;
constexpr std::chrono::seconds limit{20};

bool say(const Descriptor& socket, const ClaimsMessage& message) {
  const auto wire = encode_claims_message(message);
  return ::send(socket.get(), wire.data(), wire.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(wire.size());
}

/// The next message; none if the connection ended.
std::optional<ClaimsMessage> hear(const Descriptor& socket) {
  ClaimsMessageWire wire;
  for (std::size_t got = 0; got < wire.size();) {
    pollfd polled{socket.get(), POLLIN, 0};
    ::poll(&polled, 1, -1);
    const ssize_t more = ::recv(socket.get(), wire.data() + got, wire.size() - got, 0);
    if (more <= 0) return std::nullopt;
    got += static_cast<std::size_t>(more);
  }
  const auto message = decode_claims_message(wire);
  return message ? std::optional(*message) : std::nullopt;
}

/// Rank `rank`, as the server knows it.
Descriptor enter(const ClaimsServer& server, int rank) {
  auto socket = knock(server.door(), rank, limit);
  EXPECT_TRUE(socket) << to_string(socket.error());
  EXPECT_TRUE(hear(*socket)) << "the greeting is answered";
  return std::move(*socket);
}

TEST(ClaimsServer, LetsNobodyInWhoDoesNotKnowTheToken) {
  const ClaimsRig rig(2, {1});
  ClaimsDoor door = rig.server->door();
  door.token[5] ^= std::byte{1};
  EXPECT_FALSE(knock(door, 1, limit));
  EXPECT_FALSE(knock(rig.server->door(), 0, limit)) << "a rank that is not expected";
  EXPECT_FALSE(knock(rig.server->door(), 7, limit));
  const auto one = rig.rank(1);
  EXPECT_FALSE(knock(rig.server->door(), 1, limit)) << "it is there already";
  EXPECT_EQ(one->end().value_or(-1), 0);
}

TEST(ClaimsServer, HangsUpOnWhatIsNoMessage) {
  const ClaimsRig rig(3, {1, 2});
  const auto two = rig.rank(2);
  const Descriptor socket = enter(*rig.server, 1);
  auto wire = encode_claims_message({.kind = Kind::claim, .extent = {0, 100}});
  wire[40] ^= std::byte{1};
  ASSERT_EQ(::send(socket.get(), wire.data(), wire.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(wire.size()));
  EXPECT_FALSE(hear(socket));
  const auto free = two->foreign({0, 100});
  ASSERT_TRUE(free);
  EXPECT_FALSE(*free);
}

TEST(ClaimsServer, HangsUpOnRanksThatThereAreNot) {
  for (const Kind kind : {Kind::ask, Kind::answer}) {
    const ClaimsRig rig(2, {1});
    const Descriptor socket = enter(*rig.server, 1);
    ASSERT_TRUE(say(socket, {.kind = kind, .rank = 2}));
    EXPECT_FALSE(hear(socket));
  }
}

TEST(ClaimsServer, AnAnswerToNoQuestionChangesNothing) {
  const ClaimsRig rig(2, {1});
  const Descriptor socket = enter(*rig.server, 1);
  ASSERT_TRUE(say(socket, {.kind = Kind::answer, .number = 3, .rank = 0}));
  ASSERT_TRUE(say(socket, {.kind = Kind::end, .number = 9}));
  const auto reply = hear(socket);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->number, 9U);
}

TEST(ClaimsServer, ARankWhoseConnectionBreaksIsGone) {
  const ClaimsRig rig(3, {1, 2});
  const auto zero = rig.rank(0), two = rig.rank(2);
  {
    const Descriptor socket = enter(*rig.server, 1);
    ASSERT_TRUE(say(socket, {.kind = Kind::open, .number = 1}));
    ASSERT_TRUE(hear(socket));
    ASSERT_TRUE(say(socket, {.kind = Kind::claim, .number = 2, .extent = {0, 100}}));
    ASSERT_TRUE(hear(socket));
    // It is asked, and does not answer any more.
    std::thread asker([&] {
      const auto answer = zero->ask(1, {Claims::Wish::read, {0, 100}});
      ASSERT_FALSE(answer.status);
      EXPECT_EQ(answer.status.error().kind, ErrorKind::io);
    });
    const auto question = hear(socket);
    ASSERT_TRUE(question);
    EXPECT_EQ(question->kind, Kind::question);
    EXPECT_EQ(question->rank, 0);
    ::shutdown(socket.get(), SHUT_RDWR);
    asker.join();
  }
  const auto foreign = two->foreign({0, 100});
  ASSERT_TRUE(foreign && *foreign) << "nobody knows what it holds";
  const auto answer = two->ask(1, {Claims::Wish::write, {0, 100}});
  ASSERT_FALSE(answer.status);
  EXPECT_EQ(answer.status.error().kind, ErrorKind::io);
}

TEST(ClaimsServer, WithoutItEveryCallIsAnError) {
  ClaimsRig rig(2, {1});
  const auto one = rig.rank(1);
  one->open(::getpid());
  std::thread answering([&] { one->answer([](const auto&) { return Claims::Answer{}; }); });
  ASSERT_TRUE(one->claim({0, 100}));
  rig.server.reset();
  answering.join();
  EXPECT_FALSE(one->claim({100, 100}));
  EXPECT_FALSE(one->claim({0, 100})) << "also of what was its own";
  EXPECT_FALSE(one->foreign({100, 100}));
  EXPECT_FALSE(one->end());
  EXPECT_FALSE(one->next_open(0));
  EXPECT_FALSE(one->ask(0, {Claims::Wish::read, {0, 1}}).status);
  one->release_all();
  one->close();
}

TEST(ClaimsServer, StaysAsLongAsARankNeedsIt) {
  ClaimsRig rig(3, {1, 2});
  auto one = rig.rank(1), two = rig.rank(2);
  ClaimsServer::retire(std::move(rig.server));
  one.reset();
  const auto claimed = two->claim({0, 100});
  ASSERT_TRUE(claimed);
  EXPECT_FALSE(*claimed);
  two.reset();
  ClaimsServer::await_retired();
}

TEST(ClaimsServer, WhoNeverSaysWhoHeIsHoldsNothingUp) {
  ClaimsRig rig(2, {1});
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(rig.server->door().port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const Descriptor stranger(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(stranger.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  auto one = rig.rank(1);
  EXPECT_FALSE(hear(stranger)) << "all who may come have come";
  ClaimsServer::retire(std::move(rig.server));
  one.reset();
  ClaimsServer::await_retired();
}

TEST(ClaimsServer, TakesFewOfTheProgramsDescriptors) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max < 4096) GTEST_SKIP() << "descriptors are few here";
  const rlimit tight{400, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  {
    constexpr int ranks = 250;  // Both ends of their connections would be 500.
    std::vector<int> remote(ranks - 1);
    std::iota(remote.begin(), remote.end(), 1);
    const ClaimsRig rig(ranks, remote);
    std::vector<std::unique_ptr<Claims>> all;
    for (const int rank : remote) all.push_back(rig.rank(rank));
    for (const auto& claims : all) {
      const auto held = claims->claim({0, claims_granule});
      ASSERT_TRUE(held);
      EXPECT_EQ(held->has_value(), claims != all.front());
    }
  }
  rlimit after{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, tight.rlim_cur);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(ClaimsServer, AnAddressOfThisHostOnAnotherNetworkIsNotTried) {
  const ClaimsRig rig(2, {1});
  ClaimsDoor door = rig.server->door();
  ++door.network;
  const auto socket = knock(door, 1, limit);
  ASSERT_FALSE(socket);
  EXPECT_NE(socket.error().what.find("rank 1 cannot reach rank 0"), std::string::npos)
      << socket.error().what;
}

}  // namespace
}  // namespace forebay
