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
/// have been made in any part; it is the last one before the crash.
class CrashModel {
 public:
  /// No byte of the file lies behind `room`.
  CrashModel(std::size_t room, bool lasting) : lasting_(lasting), now_(room), after_(room) {}

  Bytes size() const { return size_; }

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
      may_come(one);
      reaches(false, one.offset + one.length);
    }
  }

  void resize(bool acknowledged, Bytes size) {
    const auto from = static_cast<std::size_t>(size);
    after_.tried(acknowledged && lasting_, size, after_.size() - from, std::byte{0});
    if (acknowledged) now_.written(size, now_.size() - from, std::byte{0});
    most_ = std::max(most_, size);
    least_ = std::min(least_, size);
    if (acknowledged && lasting_) least_ = most_ = size;
    if (acknowledged) size_ = size;
  }

  void allocate(bool acknowledged, Bytes size) { reaches(acknowledged, size); }

  /// All that was acknowledged is durable.
  void synced() {
    after_ = now_;
    least_ = most_ = size_;
  }

  /// All of the file was read: who wrote last where several wrote at once is known now.
  void read_all(const std::vector<std::byte>& content) {
    for (std::size_t i = 0; i < content.size(); ++i) {
      if (now_.at(i) == PossibleContent::only(content[i])) continue;
      now_.at(i) = PossibleContent::only(content[i]);
      if (lasting_) after_.at(i) = now_.at(i);
    }
  }

  /// What is wrong with bytes that were read, `length` of them at `offset` or as many as there are.
  std::string wrong_now(Bytes offset, Bytes length, const std::vector<std::byte>& found) const {
    const Bytes there = std::clamp<Bytes>(size_ - offset, 0, length);
    if (static_cast<Bytes>(found.size()) != there) {
      return std::to_string(found.size()) + " bytes were read of " + std::to_string(there);
    }
    return now_.wrong_at(offset, found);
  }
  /// The same of the file after a crash.
  std::string wrong_after(const std::vector<std::byte>& content) const {
    const auto size = static_cast<Bytes>(content.size());
    if (size < least_ || size > most_) {
      return "the file has " + std::to_string(size) + " bytes and may have " +
             std::to_string(least_) + " to " + std::to_string(most_);
    }
    return after_.wrong_at(0, content);
  }

 private:
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
    most_ = std::max(most_, end);
    if (acknowledged && lasting_) least_ = std::max(least_, end);
    if (acknowledged) size_ = std::max(size_, end);
  }

  const bool lasting_;
  PossibleContent now_;
  PossibleContent after_;
  Bytes size_ = 0;
  Bytes least_ = 0;  ///< That the file has after a crash.
  Bytes most_ = 0;
};

}  // namespace forebay
