#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "core/engine/prefetch/named_memory.hpp"
#include "core/model/extent.hpp"
#include "core/plan/catch_up_wait.hpp"
#include "core/plan/read_advice.hpp"
#include "core/storage/file_version.hpp"

namespace forebay {

/// The readers of one file on this node, in all processes: which parts each of them still wants.
/// What one has brought into the page cache stays there until the last has passed it. There is no
/// lock that a reader waits for, and what a reader that died wanted is forgotten.
///
/// The file is seen in at most 65536 units of equal size. The state lies in POSIX shared memory,
/// zero-filled at first, and goes with its last reader.
class NodeReaders {
 public:
  static constexpr Bytes smallest_unit = 64 * KiB;

  /// A reader that wants `extents`, all inside the file. Where there is no shared memory to be had,
  /// or too many readers, it is alone. `kept_most`: bytes for each reader that they together may
  /// have brought, as many units as hold them of its extents (more where gaps, or what others want,
  /// are brought to the same units); beyond, what this one passes is given up all the same: of what
  /// others want, that is what they want last.
  static std::unique_ptr<NodeReaders> join(const FileVersion& version,
                                           const std::vector<Extent>& extents, Bytes kept_most);
  ~NodeReaders();
  NodeReaders(const NodeReaders&) = delete;
  NodeReaders& operator=(const NodeReaders&) = delete;

  /// One of them at a time looks at what is in the page cache and asks for the rest: else two would
  /// ask for the same. Who dies or is stopped then is waited for 5 ms, once.
  class Turn {
   public:
    explicit Turn(NodeReaders* readers);  ///< Null: there are no others.
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    NodeReaders* const readers_;
  };

  /// What lies in `extent` counts as brought: it is given up when the last has passed it.
  void brought(Extent extent);

  /// One asked for `extent`: so much of it is in the page cache, and so much is missing.
  void looked_at(Extent extent, Bytes resident, Bytes missing);
  /// Whether less was there that none of them had brought than was missing. Else the file is in the
  /// page cache from before, and stays there.
  bool is_cold() const;

  /// This reader does not want `extent` any more. What to take out of the page cache: what was
  /// brought there and nobody wants.
  std::vector<Extent> passed(Extent extent);
  /// The same of what it brought and never wanted.
  std::vector<Extent> passed_between(Extent extent);

  /// It wants nothing any more. As for passed().
  std::vector<Extent> left();

  /// How much this one should bring ahead of itself now: half of what it may in company, so that
  /// something can stay for those behind, and nothing more while others are about to reach it.
  /// Other openings of this process are company like those of others.
  Ahead ahead(std::int64_t now_ns);

  /// Which gaps are worth fetching, one of them measures for all: each would measure what the
  /// others fetch, too. Whether it is this one: whoever asks first, and when that one has left,
  /// whoever asks next.
  bool measures();
  /// What it found out, as RequestShape has it.
  void tell_gap(std::optional<Bytes> gap);
  std::optional<Bytes> told_gap() const;

  /// Readers that are alive, this one included.
  int readers();
  /// Whether another process reads the file, too; it may have died since it was last looked at.
  bool has_company() const;

 private:
  struct Segment;
  struct Slot;

  NodeReaders(const FileVersion& version, Bytes kept_most);

  bool enter_shared(const FileVersion& version);
  void enter_alone();
  void keep_account();
  void want(const std::vector<Extent>& extents, Bytes kept_most);
  template <typename PerUnit>
  void for_units(Extent extent, PerUnit per_unit) const;
  bool others_want(std::size_t index);
  Bytes most_brought() const;
  int slots_taken() const;
  void forget_the_dead();
  void pass(std::size_t index, std::vector<Extent>& result);
  void give_up_what_is_too_much(std::vector<Extent>& result);
  bool is_soon_wanted(Bytes age) const;
  void give_up(std::size_t index, std::vector<Extent>& result);
  std::int32_t number() const;

  const Bytes file_size_;
  const Bytes unit_;
  Bytes kept_most_;           ///< Units, for each reader.
  NamedMemory::Name name_{};  ///< Of the shared memory; empty: it is our own.
  std::uint64_t inode_ = 0;
  Segment* segment_ = nullptr;
  Slot* slot_ = nullptr;               ///< This reader's.
  std::vector<Bytes> wanted_bytes_;    ///< Of each unit, not passed.
  std::vector<std::uint64_t> passed_;  ///< A bit for each unit that was wanted and is not any more.
  Bytes units_passed_ = 0;             ///< Bits set there.
  struct Kept {
    std::size_t index;
    Bytes passed;  ///< Units that this one had passed then.
  };
  std::deque<Kept> kept_;      ///< Units passed that others want.
  std::vector<Bytes> behind_;  ///< Units, of each slot: passed here and wanted there.
  const std::int64_t joined_ns_;
  CatchUpWait wait_;
  std::int64_t answered_ns_ = 0;  ///< When ahead() last looked,
  Ahead answer_ = Ahead::all;     ///< and what it said.
  std::int64_t looked_ns_ = 0;    ///< When it was last looked for the dead.
};

}  // namespace forebay
