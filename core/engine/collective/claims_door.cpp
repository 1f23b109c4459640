#include "core/engine/collective/claims_door.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/collective/hardware.hpp"

namespace forebay {
namespace {

using Address = ClaimsDoor::Address;
using Clock = std::chrono::steady_clock;

/// Who was greeted and says nothing for so long is taken for somebody else, if there are others.
constexpr std::chrono::milliseconds silence_limit{2000};

constexpr Address mapped(std::array<std::uint8_t, 4> v4) {
  Address address{};
  address[10] = address[11] = std::byte{0xff};
  for (std::size_t i = 0; i < v4.size(); ++i) address[12 + i] = std::byte{v4[i]};
  return address;
}
constexpr Address loopback = mapped({127, 0, 0, 1});

bool is_mapped(const Address& address) {
  constexpr Address start = mapped({});
  return std::equal(start.begin(), start.begin() + 12, address.begin());
}

std::string shown(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool v4 = is_mapped(address);
  ::inet_ntop(v4 ? AF_INET : AF_INET6, address.data() + (v4 ? 12 : 0), text.data(), text.size());
  return text.data();
}

/// The running kernel and the network stack of it that this process sees.
std::uint64_t network_id() {
  std::string description = running_kernel();
  struct stat space = {};
  if (::stat("/proc/self/ns/net", &space) == 0) description += ' ' + std::to_string(space.st_ino);
  return std::hash<std::string>{}(description);
}

/// Of interfaces that are up, IPv4 first; without those that lead back to this host, and those that
/// mean something on one link only.
std::vector<Address> own_addresses() {
  std::vector<Address> v4, v6;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, &::freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    if (one->ifa_addr->sa_family == AF_INET) {
      sockaddr_in in{};
      std::memcpy(&in, one->ifa_addr, sizeof in);
      Address address = mapped({});
      std::memcpy(address.data() + 12, &in.sin_addr, sizeof in.sin_addr);
      v4.push_back(address);
    } else if (one->ifa_addr->sa_family == AF_INET6) {
      sockaddr_in6 in{};
      std::memcpy(&in, one->ifa_addr, sizeof in);
      if (IN6_IS_ADDR_LINKLOCAL(&in.sin6_addr)) continue;
      Address address{};
      std::memcpy(address.data(), &in.sin6_addr, sizeof in.sin6_addr);
      v6.push_back(address);
    }
  }
  v4.insert(v4.end(), v6.begin(), v6.end());
  return v4;
}

/// Bound to a free port of all addresses of a family.
Result<Descriptor> bound(int family, std::uint16_t& port) {
  Descriptor made(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.valid()) return fail(errno, "make a socket");
  sockaddr_in6 in6{};  // The larger one: room for both.
  in6.sin6_family = static_cast<sa_family_t>(family);
  socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof in6;
  constexpr int off = 0;
  if (family == AF_INET6) {
    ::setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  auto* const address = reinterpret_cast<sockaddr*>(&in6);
  if (::bind(made.get(), address, size) != 0 || ::listen(made.get(), SOMAXCONN) != 0 ||
      ::getsockname(made.get(), address, &size) != 0) {
    return fail(errno, "listen on a socket");
  }
  port = ntohs(in6.sin6_port);  // Where sockaddr_in has its own.
  return made;
}

/// A connection that is being made.
struct Attempt {
  Address address;
  Descriptor socket;
  int failure = 0;
  bool greeted = false;
};

Attempt begin_attempt(const Address& address, std::uint16_t port) {
  const bool v4 = is_mapped(address);
  Attempt attempt{address, Descriptor(::socket(v4 ? AF_INET : AF_INET6,
                                               SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))};
  if (!attempt.socket.valid()) {
    attempt.failure = errno;
    return attempt;
  }
  sockaddr_in in4{};
  in4.sin_family = AF_INET;
  in4.sin_port = htons(port);
  std::memcpy(&in4.sin_addr, address.data() + 12, sizeof in4.sin_addr);
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(port);
  std::memcpy(&in6.sin6_addr, address.data(), sizeof in6.sin6_addr);
  const auto* const to =
      v4 ? reinterpret_cast<const sockaddr*>(&in4) : reinterpret_cast<const sockaddr*>(&in6);
  const socklen_t size = v4 ? sizeof in4 : sizeof in6;
  if (::connect(attempt.socket.get(), to, size) != 0 && errno != EINPROGRESS) {
    attempt.failure = errno;
  }
  return attempt;
}

/// Goes on with an attempt whose socket has something to tell. True: it is answered.
bool advance(Attempt& attempt, const ClaimsMessageWire& greeting) {
  if (attempt.greeted) {
    std::byte first{};
    const ssize_t got = ::recv(attempt.socket.get(), &first, 1, MSG_PEEK);
    if (got == 1) return true;
    if (got == 0) attempt.failure = ECONNREFUSED;
    if (got < 0 && errno != EAGAIN && errno != EINTR) attempt.failure = errno;
    return false;
  }
  int failure = 0;
  socklen_t size = sizeof failure;
  ::getsockopt(attempt.socket.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
  if (failure == 0) {
    tune_connection(attempt.socket.get());
    const ssize_t sent =
        ::send(attempt.socket.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL);
    // It goes whole into a buffer that has had nothing yet.
    if (sent != static_cast<ssize_t>(greeting.size())) failure = sent < 0 ? errno : EIO;
  }
  attempt.failure = failure;
  attempt.greeted = failure == 0;
  return false;
}

/// Where `door` may lead from here. An address of this host's own leads to it only where the one
/// behind the door sees the same network: the greeting is for nobody else.
std::vector<Address> ways_to(const ClaimsDoor& door) {
  std::vector<Address> ways;
  const bool same = door.network == network_id();
  if (same) ways.push_back(loopback);
  const auto own = own_addresses();
  for (std::size_t i = 0; i < std::min<std::size_t>(door.count, door.addresses.size()); ++i) {
    const Address& address = door.addresses[i];
    if (same || std::ranges::find(own, address) == own.end()) ways.push_back(address);
  }
  return ways;
}

}  // namespace

void tune_connection(int socket) {
  constexpr int on = 1;
  constexpr int idle_s = 10;
  constexpr int interval_s = 5;
  constexpr int probes = 4;
  constexpr unsigned unanswered_ms = 30'000;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof unanswered_ms);
}

Result<ClaimsListener> listen_for_claims() {
  ClaimsListener listener;
  ClaimsDoor& door = listener.door;
  const auto wanted = static_cast<ssize_t>(door.token.size());
  if (::getrandom(door.token.data(), door.token.size(), 0) != wanted) {
    return fail(errno, "draw a random number");
  }
  door.network = network_id();
  auto socket = bound(AF_INET6, door.port);  // Serves IPv4, too.
  if (!socket) socket = bound(AF_INET, door.port);
  if (!socket) return tl::unexpected(socket.error());
  listener.socket = std::move(*socket);
  const auto own = own_addresses();
  door.count = static_cast<std::uint16_t>(std::min(own.size(), door.addresses.size()));
  std::copy_n(own.begin(), door.count, door.addresses.begin());
  return listener;
}

Result<Descriptor> knock(const ClaimsDoor& door, int rank, std::chrono::milliseconds limit) {
  const ClaimsMessageWire greeting = encode_claims_message(
      {.kind = ClaimsMessage::Kind::greeting, .rank = rank, .token = door.token});
  std::vector<Attempt> attempts;
  for (const Address& address : ways_to(door))
    attempts.push_back(begin_attempt(address, door.port));
  std::string tried;
  const auto deadline = Clock::now() + limit;
  for (;;) {
    // One is greeted at a time: behind the door, a rank comes once.
    const bool waiting = std::ranges::any_of(
        attempts, [](const Attempt& one) { return one.greeted && one.failure == 0; });
    std::vector<pollfd> polled;
    std::vector<Attempt*> meant;
    for (Attempt& attempt : attempts) {
      if (attempt.failure != 0 || (waiting && !attempt.greeted)) continue;
      const short events = attempt.greeted ? POLLIN : POLLOUT;
      polled.push_back({attempt.socket.get(), events, 0});
      meant.push_back(&attempt);
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (polled.empty() || left.count() <= 0) break;
    const auto wait = waiting ? std::min(left, silence_limit) : left;
    const int found = ::poll(polled.data(), polled.size(), static_cast<int>(wait.count()));
    if (found < 0 && errno != EINTR) break;
    if (found == 0 && waiting && polled.size() < attempts.size()) {
      for (Attempt* const silent : meant) silent->failure = ETIMEDOUT;
    }
    for (std::size_t i = 0; found > 0 && i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      const bool was_greeted = meant[i]->greeted;
      if (advance(*meant[i], greeting)) return std::move(meant[i]->socket);
      if (!was_greeted && meant[i]->greeted) break;
    }
  }
  for (const Attempt& attempt : attempts) {
    tried += fmt::format("{}{}: {}", tried.empty() ? "" : ", ", shown(attempt.address),
                         std::strerror(attempt.failure != 0 ? attempt.failure : ETIMEDOUT));
  }
  return tl::unexpected(
      Error{ErrorKind::io, 0,
            fmt::format("rank {} cannot reach rank 0 at port {} ({})", rank, door.port,
                        tried.empty() ? "its host has no address that leads there" : tried)});
}

}  // namespace forebay
