#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "core/engine/cache/bell.hpp"
#include "core/engine/collective/claims.hpp"

namespace forebay {

class SignOfLife;

/// Claims in memory that the ranks of a host share: a claim is an atomic exchange, a question a
/// slot of the one who asks and a bell of the one who is asked. Nothing of it fails.
///
/// Ranks of other hosts have no such memory. A process of this one acts for them, with a
/// SharedClaims for each (claims_server.hpp): their bells are one and the same, the relay's.
class SharedClaims final : public Claims {
 public:
  /// What the shared memory takes, for so many ranks.
  static Bytes bytes(int ranks);

  /// In `memory`: zero-filled before the first rank came, and outliving this.
  SharedClaims(std::span<std::byte> memory, int ranks, int rank, Bytes granule);

  Result<std::optional<Foreign>> foreign(Extent extent) override;
  Result<std::optional<Foreign>> claim(Extent extent) override;
  void release(Extent extent) override;
  void release_all() override;
  Answer ask(int rank, const Question& question) override;
  Result<std::optional<int>> next_open(int from) override;
  void open(std::int64_t process) override;
  void answer(const Answering& answering) override;
  void close() override;
  Result<Bytes> end() override;
  void set_end(Bytes end) override;
  std::uint32_t flags() const override;
  void set_flag(std::uint32_t flag) override;
  void clear_flag(std::uint32_t flag) override;
  std::uint32_t count_conflict() override;

  // For who acts for this rank. All of it by one thread.

  /// Before any rank asks anything: what is rung for this rank is rung for the relay.
  void relay();
  /// Rung for all ranks that are relayed.
  Bell& relay_bell() const;
  /// That of the relay's thread.
  SignOfLife& relay_life() const;
  /// The first half of ask(). False: the rank answers nobody.
  bool begin_asking(int rank, const Question& question);
  /// The second half: the answer, once there is one.
  std::optional<Answer> look_for_answer();
  /// A question to a rank, and whose it is.
  struct Asked {
    int owner = 0;
    int asker = 0;
    std::uint32_t number = 0;  ///< Of the asker's questions.
    Question question;
  };
  /// The next question to any rank that is relayed; no one else is to answer it then.
  std::optional<Asked> take_relayed();
  /// Answers one of this rank's. Nothing happens if it waits for no answer any more.
  void reply(int asker, std::uint32_t number, const Answer& answer);
  /// Who asks from now on hears that there is nobody.
  void shut();
  /// This rank is gone: what it holds nobody can bring to the file.
  void set_gone();

 private:
  struct Header;
  struct Place;
  struct Slot;

  Header& header() const;
  Place& place(int rank) const;
  Slot& slot(int asker) const;
  Bell& asked_bell(int rank) const;
  Bell& answered_bell(int rank) const;
  std::atomic<std::uint32_t>& owner_of(std::int64_t granule) const;
  std::optional<Foreign> first_foreign(Extent extent) const;
  bool is_gone(Place& owner) const;

  const std::span<std::byte> memory_;
  const int ranks_;
  const int rank_;
  /// Granules that this rank ever claimed lie from one to the other. The first one negative, so
  /// that both only grow.
  std::atomic<std::int64_t> minus_first_{std::numeric_limits<std::int64_t>::min()};
  std::atomic<std::int64_t> end_{0};
};

}  // namespace forebay
