#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/engine/cache/possible_content.hpp"
#include "core/model/extent.hpp"

namespace forebay {

/// So many bytes of one value.
struct ByteWrite {
  Bytes offset = 0;
  Bytes length = 0;
  std::byte value{};
};

/// For tests: what a file holds for those who write and read it, and what it may hold after a crash
/// and the recovery. `lasting`: where all is there that was acknowledged, as after the death of
/// processes; else what was acknowledged before the last sync. A call that was not acknowledged may
/// have been made in any part, and be seen to be or not from one read to the next.
class CrashModel {
 public:
  /// No byte of the file lies behind `room`.
  CrashModel(std::size_t room, bool lasting) : lasting_(lasting), now_(room), after_(room) {}

  Bytes room() const { return static_cast<Bytes>(now_.size()); }
  /// As far as calls were acknowledged.
  Bytes size() const { return size_now_.least; }

  void write(const ByteWrite& write) {
    const std::vector<ByteWrite> writes{write};
    write_at_once({&writes, 1}, {});
  }

  /// Each of several writers made these, one after the other; and perhaps some that were not
  /// acknowledged.
  void write_at_once(std::span<const std::vector<ByteWrite>> writers,
                     std::span<const ByteWrite> unacknowledged) {
    const Extent touched = extent_of(writers);
    const auto first = static_cast<std::size_t>(touched.offset);
    std::vector<PossibleContent::Values> ends(static_cast<std::size_t>(touched.length));
    std::vector<int> last(ends.size());
    for (const std::vector<ByteWrite>& writes : writers) {
      std::ranges::fill(last, -1);
      for (const ByteWrite& write : writes) {
        std::fill_n(last.begin() + (write.offset - touched.offset), write.length,
                    std::to_integer<int>(write.value));
        reaches(true, write.offset + write.length);
        // And that over which the same writer wrote, if only the older one was durable.
        if (!lasting_) may_come(write);
      }
      for (std::size_t i = 0; i < last.size(); ++i) {
        if (last[i] >= 0) ends[i].set(static_cast<std::size_t>(last[i]));
      }
    }
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].none()) continue;
      now_.at(first + i) = ends[i];
      if (lasting_) after_.at(first + i) = ends[i];
    }
    for (const ByteWrite& one : unacknowledged) {
      now_.may_be_written(one.offset, static_cast<std::size_t>(one.length), one.value);
      may_come(one);
      reaches(false, one.offset + one.length);
      certain_ = false;
    }
  }

  void resize(bool acknowledged, Bytes size) {
    const auto from = static_cast<std::size_t>(size);
    after_.tried(acknowledged && lasting_, size, after_.size() - from, std::byte{0});
    now_.tried(acknowledged, size, now_.size() - from, std::byte{0});
    size_now_.becomes(acknowledged, size);
    size_after_.becomes(acknowledged && lasting_, size);
  }

  void allocate(bool acknowledged, Bytes size) { reaches(acknowledged, size); }

  /// All that was acknowledged is durable.
  void synced() {
    after_ = now_;
    size_after_ = size_now_;
  }

  /// All of the file was read: who wrote last where several wrote at once is known now, but for
  /// calls that were not acknowledged.
  void read_all(const std::vector<std::byte>& content) {
    if (!certain_) return;
    for (std::size_t i = 0; i < content.size(); ++i) {
      if (now_.at(i) == PossibleContent::only(content[i])) continue;
      now_.at(i) = PossibleContent::only(content[i]);
      if (lasting_) after_.at(i) = now_.at(i);
    }
  }

  /// What is wrong with bytes that were read, `length` of them at `offset` or as many as there are.
  std::string wrong_now(Bytes offset, Bytes length, const std::vector<std::byte>& found) const {
    const auto there = [&](Bytes size) { return std::clamp<Bytes>(size - offset, 0, length); };
    const Sizes expected{there(size_now_.least), there(size_now_.most)};
    const std::string wrong = expected.wrong(found, "what was read");
    return wrong.empty() ? now_.wrong_at(offset, found) : wrong;
  }
  /// The same of the file after a crash.
  std::string wrong_after(const std::vector<std::byte>& content) const {
    const std::string wrong = size_after_.wrong(content, "the file");
    return wrong.empty() ? after_.wrong_at(0, content) : wrong;
  }

 private:
  /// That the file may have.
  struct Sizes {
    Bytes least = 0;
    Bytes most = 0;

    void reaches(bool surely, Bytes end) {
      most = std::max(most, end);
      if (surely) least = std::max(least, end);
    }
    void becomes(bool surely, Bytes size) {
      most = surely ? size : std::max(most, size);
      least = surely ? size : std::min(least, size);
    }
    std::string wrong(const std::vector<std::byte>& content, const std::string& what) const {
      const auto size = static_cast<Bytes>(content.size());
      if (size >= least && size <= most) return "";
      return what + " has " + std::to_string(size) + " bytes and may have " +
             std::to_string(least) + " to " + std::to_string(most);
    }
  };

  static Extent extent_of(std::span<const std::vector<ByteWrite>> writers) {
    Bytes first = std::numeric_limits<Bytes>::max();
    Bytes end = 0;
    for (const std::vector<ByteWrite>& writes : writers) {
      for (const ByteWrite& write : writes) {
        first = std::min(first, write.offset);
        end = std::max(end, write.offset + write.length);
      }
    }
    return end == 0 ? Extent{} : Extent{first, end - first};
  }

  void may_come(const ByteWrite& write) {
    after_.may_be_written(write.offset, static_cast<std::size_t>(write.length), write.value);
  }

  void reaches(bool acknowledged, Bytes end) {
    size_now_.reaches(acknowledged, end);
    size_after_.reaches(acknowledged && lasting_, end);
  }

  const bool lasting_;
  PossibleContent now_;
  PossibleContent after_;
  Sizes size_now_;
  Sizes size_after_;
  bool certain_ = true;  ///< All calls were acknowledged.
};

}  // namespace forebay
