#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/engine/collective/claims.hpp"
#include "core/engine/collective/claims_door.hpp"
#include "core/engine/collective/claims_message.hpp"
#include "core/storage/descriptor.hpp"

namespace forebay {

/// Claims of a rank that does not share the memory in which they are: a connection to the process
/// that acts for it there (claims_server.hpp). Bytes of the file never go over it.
///
/// What it costs, in round trips: a claim of what is this rank's already, and a look at it, none;
/// any other call one; a question that one and what the rank takes that is asked. flags() none.
///
/// A thread waits for what comes; so a call need not wait for another thread's question.
class RemoteClaims final : public Claims {
 public:
  /// Connects, as `rank`. Errors: those of the door.
  static Result<std::unique_ptr<RemoteClaims>> connect(const ClaimsDoor& door, int rank,
                                                       Bytes granule);
  /// Says that this rank is done. What it holds by then, nobody can ask for.
  ~RemoteClaims() override;

  Result<std::optional<Foreign>> foreign(Extent extent) override;
  Result<std::optional<Foreign>> claim(Extent extent) override;
  void release(Extent extent) override;
  void release_all() override;
  Answer ask(int rank, const Question& question) override;
  Result<std::optional<int>> next_open(int from) override;
  void open(std::int64_t process) override;
  void answer(const Answering& answering) override;
  void close() override;
  void leave() override;
  Result<Bytes> end() override;
  void set_end(Bytes end) override;
  std::uint32_t flags() const override { return flags_; }
  void set_flag(std::uint32_t flag) override;
  void clear_flag(std::uint32_t flag) override;
  std::uint32_t count_conflict() override;

 private:
  using Kind = ClaimsMessage::Kind;

  RemoteClaims(Descriptor socket, Bytes granule);

  Result<ClaimsMessage> call(ClaimsMessage message);
  bool send(const ClaimsMessage& message);
  void receive();
  bool dispatch(const ClaimsMessage& message);
  void lose();
  bool is_mine(Extent extent);
  void set_mine(Extent extent, bool mine);

  const Descriptor socket_;
  std::atomic<std::uint32_t> flags_{0};
  std::mutex sending_;

  std::mutex mutex_;  ///< Of all that follows.
  std::condition_variable changed_;
  bool lost_ = false;  ///< The connection.
  bool left_ = false;
  bool closing_ = false;
  std::uint64_t last_call_ = 0;
  std::map<std::uint64_t, std::optional<ClaimsMessage>> calls_;  ///< Under way, with the reply.
  std::deque<ClaimsMessage> questions_;
  std::vector<bool> mine_;  ///< By place. Only this rank changes what is its own.
  Bytes told_end_ = 0;      ///< Of this rank, as it is told.

  std::thread receiving_;
};

}  // namespace forebay
