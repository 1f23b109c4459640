#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "core/engine/collective/claims_door.hpp"
#include "core/engine/collective/exchange.hpp"
#include "core/engine/collective/shared_claims.hpp"
#include "core/storage/descriptor.hpp"

namespace forebay {

/// Acts for the ranks that do not share the memory with the claims of a file: each has a connection
/// (remote_claims.hpp), and what it says there is done by a SharedClaims of that rank. Questions go
/// both ways.
///
/// One thread serves all connections and never waits for a single one; another one waits for what
/// ranks of this host ring, which no poll can. A rank whose connection breaks before it has said
/// that it is done is gone: what it holds nobody gets, and who asks for it hears so.
///
/// It outlives its maker as long as there are connections: ranks close a file one by one.
class ClaimsServer {
 public:
  /// `memory` is that of claims of `ranks` ranks; those of `remote` are let in, each once. Errors:
  /// those of sockets; unsupported, if the process may not have so many.
  static Result<std::unique_ptr<ClaimsServer>> start(std::shared_ptr<SharedRegion> memory,
                                                     int ranks, Bytes granule,
                                                     const std::vector<int>& remote);
  /// Breaks what connections there are.
  ~ClaimsServer();
  ClaimsServer(const ClaimsServer&) = delete;
  ClaimsServer& operator=(const ClaimsServer&) = delete;

  const ClaimsDoor& door() const { return door_; }
  /// Ranks that are still to come.
  std::size_t expected() const { return expected_; }

  /// It goes on until the last rank has gone.
  static void retire(std::unique_ptr<ClaimsServer> server);
  /// Waits until no server that was retired has anybody to serve.
  static void await_retired();

 private:
  struct Connection;
  using Kind = ClaimsMessage::Kind;

  ClaimsServer(std::shared_ptr<SharedRegion> memory, int ranks, Bytes granule,
               const std::vector<int>& remote, ClaimsListener listener);

  Status set_up();
  bool watch(int descriptor, std::uint32_t events, void* who, bool change = false);
  void serve();
  void await_bells();
  void wake();
  void end();
  void let_in();
  bool read_from(Connection& connection);
  bool write_to(Connection& connection);
  void send(Connection& connection, ClaimsMessage message);
  bool handle(Connection& connection, const ClaimsMessage& message);
  bool greet(Connection& connection, const ClaimsMessage& message);
  void pass_on();
  void tell_answer(Connection& connection);
  void look_after(Connection& connection, bool alive);
  void remove(Connection& connection);
  bool done() const;

  const std::shared_ptr<SharedRegion> memory_;
  const int ranks_;
  const Bytes granule_;
  const ClaimsDoor door_;
  SharedClaims table_;  ///< Of no rank: for what concerns all that are relayed.

  Descriptor listener_;
  Descriptor waker_;  ///< An eventfd: a bell was rung, or the end has come.
  Descriptor poll_;
  const bool many_;                                      ///< Connections.
  std::atomic<std::size_t> expected_;                    ///< Ranks that were not let in yet.
  std::map<int, std::unique_ptr<SharedClaims>> claims_;  ///< Of those that may come, by rank.
  std::map<int, Connection*> by_rank_;
  std::map<Connection*, std::unique_ptr<Connection>> connections_;

  std::atomic<bool> retired_{false};
  std::atomic<bool> ending_{false};
  std::atomic<bool> served_{false};  ///< The thread that serves has ended, or is about to.
  std::thread serving_;
  std::thread ringing_;
};

}  // namespace forebay
