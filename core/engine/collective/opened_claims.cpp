#include "core/engine/collective/opened_claims.hpp"

#include <array>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/engine/collective/cache_place.hpp"
#include "core/engine/collective/remote_claims.hpp"

namespace forebay {
namespace {

/// What rank 0 tells of what it made for all.
struct Told {
  std::array<char, 64> memory{};
  std::array<char, 192> name{};
  ClaimsDoor door{};
};

/// What kept a rank of another host from connecting to this process, once that has happened: then
/// no later file waits for it again.
struct Unreachable {
  std::mutex mutex;
  std::string why;
};

Unreachable& unreachable() {
  static Unreachable instance;
  return instance;
}

/// On rank 0.
Status make_for_all(const Exchange& exchange, Bytes granule, OpenedClaims& opened, Told& told) {
  auto made = SharedMemory::create(SharedClaims::bytes(exchange.size()));
  if (!made) return tl::unexpected(made.error());
  opened.memory = std::move(*made);
  std::vector<int> remote;
  for (int rank = 0; rank < exchange.size(); ++rank) {
    if (!exchange.shares_host(rank)) remote.push_back(rank);
  }
  if (!remote.empty()) {
    {
      const std::scoped_lock lock(unreachable().mutex);
      if (const std::string& why = unreachable().why; !why.empty()) {
        return tl::unexpected(Error{ErrorKind::unsupported, 0, why + ", at an earlier file"});
      }
    }
    auto server = ClaimsServer::start(opened.memory, exchange.size(), granule, remote);
    if (!server) return tl::unexpected(server.error());
    opened.server = std::move(*server);
    told.door = opened.server->door();
  }
  opened.memory->name().copy(told.memory.data(), told.memory.size() - 1);
  return {};
}

/// On the others.
Status join(const Exchange& exchange, Bytes granule, const Told& told, OpenedClaims& opened) {
  if (exchange.shares_host(0)) {
    auto attached = SharedMemory::attach(told.memory.data(), SharedClaims::bytes(exchange.size()));
    if (!attached) return tl::unexpected(attached.error());
    opened.memory = std::move(*attached);
    return {};
  }
  auto connected = RemoteClaims::connect(told.door, exchange.rank(), granule);
  if (!connected) return tl::unexpected(connected.error());
  opened.claims = std::move(*connected);
  return {};
}

/// The error of the lowest rank that has one, on all of them.
Error first_of_all(Exchange& exchange, const Error& mine) {
  std::int64_t failed = mine.kind != ErrorKind::none;
  exchange.all_reduce({&failed, 1}, Reduce::max);
  if (failed == 0) return {};
  const std::string text = mine.kind == ErrorKind::none ? std::string() : to_string(mine);
  for (const auto& theirs : exchange.all_gather_varying(std::as_bytes(std::span(text)))) {
    if (theirs.empty()) continue;
    return {ErrorKind::unsupported, 0,
            std::string(reinterpret_cast<const char*>(theirs.data()), theirs.size())};
  }
  return {ErrorKind::unsupported, 0, "another rank has no place for its log"};
}

}  // namespace

Result<OpenedClaims> open_claims(Exchange& exchange, Bytes granule, Error failure) {
  OpenedClaims opened;
  Told told;
  const auto keep = [&failure](const Status& status) {
    if (!status && failure.kind == ErrorKind::none) failure = status.error();
  };
  if (exchange.rank() == 0) {
    keep(make_for_all(exchange, granule, opened, told));
    new_log_name().copy(told.name.data(), told.name.size() - 1);
  }
  const std::span<const std::byte> word = std::as_bytes(std::span(&told, 1));
  const auto all = exchange.all_gather_varying(exchange.rank() == 0 ? word : word.first(0));
  std::memcpy(&told, all.front().data(), sizeof told);
  if (exchange.rank() != 0 && told.memory[0] != '\0') keep(join(exchange, granule, told, opened));
  const Error worst = first_of_all(exchange, failure);
  if (exchange.rank() == 0 && opened.memory != nullptr) opened.memory->unlink();
  if (worst.kind != ErrorKind::none) {
    if (opened.server != nullptr && opened.server->expected() > 0) {
      const std::scoped_lock lock(unreachable().mutex);
      unreachable().why = worst.what;
    }
    return tl::unexpected(worst);
  }
  if (opened.claims == nullptr) {
    opened.claims = std::make_unique<SharedClaims>(opened.memory->bytes(), exchange.size(),
                                                   exchange.rank(), granule);
  }
  opened.name = told.name.data();
  return opened;
}

}  // namespace forebay
