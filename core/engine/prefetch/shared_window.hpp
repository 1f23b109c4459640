#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/engine/prefetch/window_memory.hpp"
#include "core/engine/prefetch/window_state.hpp"
#include "core/model/extent.hpp"
#include "core/plan/shared_reading.hpp"

namespace forebay {

/// Memory that all readers of a file on this node have in common which read it by the same plan:
/// pieces of the file, in the order of reading. One of the readers fetches for all at a time; a
/// piece makes room when all have passed it (core/plan/shared_reading.hpp). Places are those of
/// PlanPlaces, times those of steady_ns().
///
/// Processes die and stop between any two steps. So no lock is held over a step: each piece, each
/// part of the memory, each reader and the right to fetch is one word that changes at once.
/// - A part of the memory is taken by whoever sets its bit, and given back by whoever ends its
///   piece: two never write to it. What is on its way for one who is lost stays taken until he
///   comes back to end it, since the kernel may write to it yet; of one who died, for ever.
/// - Who copies out of a piece looks afterwards whether it is still the same.
///
/// One SharedWindow is one reader. It lies in POSIX shared memory, in large pages where the kernel
/// makes such, and goes with its last reader. Thread-safe where nothing else is said.
class SharedWindow {
 public:
  static constexpr std::size_t most_readers = WindowState::most_readers;
  static constexpr std::size_t most_pieces = WindowState::most_pieces;

  /// Null: no shared memory is to be had, what lies there is none of this kind, or too many share
  /// it.
  static std::unique_ptr<SharedWindow> join(const WindowKind& kind);
  /// This one goes. What is still on its way for it may land: nobody else gets that memory.
  ~SharedWindow() { depart(); }
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;

  /// The same before its end: only bytes(), is_maker() and unused_bytes() may be asked then.
  void depart();

  Bytes bytes() const { return memory_.bytes(); }
  /// This reader found nothing there: what the memory takes counts as taken by it.
  bool is_maker() const { return memory_.is_maker(); }

  // As a reader. Not for two threads at a time.

  /// What a reader has read before it enters.
  struct Before {
    std::int64_t began_ns = 0;
    Bytes passed = 0;
    std::optional<Bytes> offset = std::nullopt;  ///< What it reads next, in the midst of it.
  };
  /// Reads from `place` on, if it is near enough to the others. What it needs is fetched from there
  /// on.
  bool enter(Bytes place, const Before& before, std::int64_t now_ns);
  /// Has entered, and was not left behind since by the others.
  bool is_in() const;
  /// All before `front` is passed. False: it was left behind.
  bool pass(Bytes front, std::int64_t now_ns);
  /// Still waits.
  void give_sign(std::int64_t now_ns);
  /// Reads here no more, and fetches nothing more.
  void leave();

  /// A part of the file that is there, or on its way.
  struct Piece {
    Extent held;
    Bytes begin = 0;  ///< Places, as HeldPiece has them.
    Bytes end = 0;
    bool is_ready = false;
    int owner = 0;          ///< The reader that fetches it.
    std::size_t index = 0;  ///< The rest is the window's own.
    std::uint64_t word = 0;
    std::uint64_t units = 0;
  };
  std::optional<Piece> holding(Bytes offset) const;
  std::vector<Piece> pieces() const;
  /// Of a piece that is ready, from `offset` of the file on. False: it made room meanwhile, and
  /// `into` may hold anything.
  bool copy(const Piece& piece, Bytes offset, std::span<std::byte> into);
  /// What is read before this place and is not held will not be fetched.
  Bytes cursor() const;
  /// Nothing came for a while: looks whether those who fetch, or have something on its way, are
  /// dead or stopped. It asks them, and looks at what they answered when they were asked before.
  /// What was on its way by one who is lost will be fetched anew, and if it was the one to fetch,
  /// nobody is any more. Returns whether anything is on its way.
  bool look_after(std::int64_t now_ns);
  /// What comes before nobody wants.
  Bytes tail() const;

  /// Others know what they have to wait for when they have seen this number before they looked.
  std::uint32_t arrivals() const;
  /// Until something has come or gone since then, or for `limit`.
  void wait(std::uint32_t seen_arrivals, std::chrono::nanoseconds limit);
  void tell_all();

  /// Of the others that have entered: the reader's number, and how it gets on.
  struct Other {
    int number;
    Fellow fellow;
  };
  std::vector<Other> others() const;
  /// They go on without it.
  void leave_behind(const Other& other);

  // As the one who fetches. By one thread.

  /// Whether it is this one.
  bool fetches() const;
  bool is_fetched_by_nobody() const { return fetcher() < 0; }
  int fetcher() const;
  /// Whether it is this one now: if nobody else was.
  bool begin_fetching();
  /// It is this one no more, if it was.
  void hand_over();

  /// So much may be fetched ahead of the one in front: what is read of it proves the plan.
  Bytes opened_bytes(Bytes block) const;
  /// Something that was fetched was read.
  void confirm(Bytes block);
  /// What is held ahead of the one in front, if `place` lies there; else nothing.
  Bytes bytes_ahead(Bytes place) const;

  /// Whether there is room for a transfer of so many bytes, which begins at the place `wanted`, now
  /// that what is not needed has gone. If not, ring() comes when there may be.
  bool make_room(Bytes transfer, Bytes wanted);
  /// Before all have come to this place there is no room; 0: that is not what it is for want of.
  Bytes awaited() const;
  struct Fetch {
    std::uint64_t number = 0;
    std::span<std::byte> memory;  ///< As long as the transfer.
  };
  /// `held`: of the file, what the memory will hold; `between`: of that, what nobody is to read.
  /// After make_room().
  std::optional<Fetch> begin_piece(Extent held, Bytes transfer, Bytes begin, Bytes end,
                                   std::span<const Extent> between = {});
  /// It is there, or, where that failed or it is not to be read, not. By whoever began it. Whether
  /// it can be read now.
  bool end_piece(std::uint64_t number, bool is_there);

  /// The cursor moves from `seen` to `to`; false: it was set back meanwhile.
  bool advance(Bytes seen, Bytes to);

  /// Which gaps are worth fetching, as NodeReaders has it: for whoever fetches after this one.
  void tell_gap(std::optional<Bytes> gap);
  std::optional<std::optional<Bytes>> told_gap() const;

  /// No transfer is longer: what the lost had on its way lies in between.
  Bytes longest_transfer() const;
  /// Too little of the memory is left. Who comes from now on makes another one, as may those who
  /// are in this one.
  void retire();
  bool is_retired() const;
  /// Bytes that nobody has read, in 64ths of each piece: of what made room by this one, and, when
  /// it is the last one, of what is there.
  Bytes unused_bytes() const { return unused_bytes_ + left_over(); }

  // For the thread that answers for this reader's process.

  std::uint32_t rings() const;
  /// Answers, and waits for the next ring, if that was not since `seen`.
  void answer(std::uint32_t seen);
  /// Somebody made room, or wants to know whether this process goes on.
  void ring(int number);
  int number() const { return number_; }

 private:
  explicit SharedWindow(const WindowKind& kind) : memory_(kind) {}
  bool take_number();
  WindowReader& reader(int number) const;
  bool bury_the_dead();
  void free_from(int number);
  std::optional<Piece> piece_at(std::size_t index) const;
  std::optional<std::uint64_t> units_for(Bytes transfer, std::uint64_t taken) const;
  bool has_room(Bytes transfer) const;
  void give_up(const Piece& piece);
  Bytes left_over() const;
  void look_after(int number, std::int64_t now_ns);
  void set_back(Bytes place);
  std::vector<Fellow> fellows() const;

  WindowMemory memory_;
  WindowState* state_ = nullptr;  ///< Its.
  int number_ = -1;
  Bytes front_ = -1;             ///< Where this reader believes to be; -1: not in.
  std::uint64_t own_lease_ = 0;  ///< When it fetches.
  Bytes unused_bytes_ = 0;
  std::array<std::uint64_t, most_pieces>
      own_{};  ///< Numbers of the pieces that it fetches; 0: none.
};

}  // namespace forebay
