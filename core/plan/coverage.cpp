#include "core/plan/coverage.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace forebay {
namespace {

/// The union of extents that come in ascending order of their starts.
class Union {
 public:
  explicit Union(std::size_t extents_max) : extents_max_(extents_max) {}

  void add(Bytes begin, Bytes end) {
    if (extents_.empty() || begin > end_) {
      if (extents_.size() == extents_max_) {
        too_many_ = true;
        return;
      }
      close();
      extents_.push_back({begin, 0});
      end_ = end;
    } else {
      end_ = std::max(end_, end);
    }
  }

  bool too_many() const { return too_many_; }
  bool covers_up_to(Bytes end) const { return !extents_.empty() && end <= end_; }

  std::vector<Extent> take() {
    close();
    return std::move(extents_);
  }

 private:
  void close() {
    if (!extents_.empty()) extents_.back().length = end_ - extents_.back().offset;
  }

  std::size_t extents_max_;
  bool too_many_ = false;
  Bytes end_ = 0;  ///< Of the last extent, whose length is still open.
  std::vector<Extent> extents_;
};

/// One part's pieces in the window, run by run.
struct Lane {
  TreeCursor cursor;
  Bytes data_end;
  Run run;

  bool next() { return cursor.next(data_end, run); }
  Bytes period_end() const { return run.offset + run.stride; }
  void skip(std::int64_t blocks) {
    run.offset += blocks * run.stride;
    run.count -= blocks;
  }
};

/// `parts` hold what lies in the window.
std::vector<Lane> lanes_of(const std::vector<TiledPart>& parts) {
  std::vector<Lane> lanes;
  lanes.reserve(parts.size());
  for (const TiledPart& part : parts) {
    lanes.push_back({TreeCursor(*part.tree), part.data_end, {}});
    lanes.back().cursor.seek_data(part.data_start);
  }
  return lanes;
}

/// Merges the lanes by offset. Where the lanes in front have one stride, whole periods are merged
/// at once.
class Sweep {
 public:
  Sweep(std::vector<Lane> lanes, std::size_t extents_max)
      : lanes_(std::move(lanes)), union_(extents_max) {
    for (Lane& lane : lanes_) {
      if (lane.next()) heap_.push_back(&lane);
    }
    std::make_heap(heap_.begin(), heap_.end(), later);
  }

  /// Merges on until all is done, too many extents are found or `steps_max` single blocks were
  /// merged. True unless it is the last that ended it.
  bool run(std::int64_t steps_max) {
    // After a failed try to merge periods, as many blocks are merged singly as there are lanes, so
    // that trying costs no more than merging.
    std::size_t singly = 0;
    while (!heap_.empty() && !union_.too_many()) {
      if (singly == 0) {
        if (merge_periods()) continue;
        singly = heap_.size();
      }
      --singly;
      if (steps_max-- == 0) return false;
      merge_block();
    }
    return true;
  }

  Union& result() { return union_; }

 private:
  static bool later(const Lane* a, const Lane* b) { return a->run.offset > b->run.offset; }

  void merge_block() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Lane& lane = *heap_.back();
    union_.add(lane.run.offset, lane.run.offset + lane.run.block);
    lane.skip(1);
    if (lane.run.count > 0 || lane.next()) {
      std::push_heap(heap_.begin(), heap_.end(), later);
    } else {
      heap_.pop_back();
    }
  }

  /// The lanes with a block in the period that starts at the first block of all, if they share its
  /// stride, go `periods` periods ahead. The last block of a run is left for merge_block, because
  /// the run behind it may start within the same period.
  bool merge_periods() {
    const Lane& first = *heap_.front();
    if (first.run.count < 3) return false;
    const Bytes begin = first.run.offset;
    const Bytes stride = first.run.stride;
    std::int64_t periods = first.run.count - 1;
    group_.clear();
    for (Lane* lane : heap_) {
      const Bytes ahead = lane->run.offset - begin;
      if (ahead >= stride) {
        periods = std::min(periods, ahead / stride);
      } else if (lane->run.stride == stride) {
        periods = std::min(periods, lane->run.count - 1);
        group_.push_back(lane);
      } else {
        return false;
      }
      if (periods < 2) return false;
    }
    std::sort(group_.begin(), group_.end(),
              [](const Lane* a, const Lane* b) { return a->run.offset < b->run.offset; });
    Union period(group_.size());
    for (const Lane* lane : group_) {
      period.add(lane->run.offset, lane->run.offset + lane->run.block);
    }
    add_periods(period.take(), stride, periods);
    for (Lane* lane : group_) lane->skip(periods);
    std::make_heap(heap_.begin(), heap_.end(), later);
    return true;
  }

  void add_periods(const std::vector<Extent>& extents, Bytes stride, std::int64_t periods) {
    const Bytes last = (periods - 1) * stride;
    if (union_.covers_up_to(last + extents.back().end())) return;
    if (extents.size() == 1 && extents[0].length >= stride) {
      union_.add(extents[0].offset, last + extents[0].end());
      return;
    }
    for (std::int64_t i = 0; i < periods && !union_.too_many(); ++i) {
      for (const Extent& extent : extents) {
        union_.add(i * stride + extent.offset, i * stride + extent.end());
      }
    }
  }

  std::vector<Lane> lanes_;
  std::vector<Lane*>
      heap_;  ///< Lanes that have blocks left, the one with the first block in front.
  std::vector<Lane*> group_;  ///< Scratch of merge_periods.
  Union union_;
};

/// One bit a granule of the window.
class Bitmap {
 public:
  explicit Bitmap(std::int64_t bits) : words_(static_cast<std::size_t>(bits / 64 + 1)) {}

  void set(std::int64_t begin, std::int64_t end) {
    const auto first = static_cast<std::size_t>(begin / 64);
    const auto last = static_cast<std::size_t>((end - 1) / 64);
    const std::uint64_t from = ~std::uint64_t{0} << (begin % 64);
    const std::uint64_t to = ~std::uint64_t{0} >> (63 - (end - 1) % 64);
    if (first == last) {
      words_[first] |= from & to;
      return;
    }
    words_[first] |= from;
    std::fill(words_.begin() + first + 1, words_.begin() + last, ~std::uint64_t{0});
    words_[last] |= to;
  }

  /// The first bit at or behind `from` that is `value`; behind the last bit all are 0.
  std::int64_t find(std::int64_t from, bool value) const {
    auto word = static_cast<std::size_t>(from / 64);
    std::uint64_t mask = ~std::uint64_t{0} << (from % 64);
    for (; word < words_.size(); ++word, mask = ~std::uint64_t{0}) {
      const std::uint64_t bits = (value ? words_[word] : ~words_[word]) & mask;
      if (bits != 0) return static_cast<std::int64_t>(word) * 64 + std::countr_zero(bits);
    }
    return static_cast<std::int64_t>(words_.size()) * 64;
  }

 private:
  std::vector<std::uint64_t> words_;
};

/// The largest power of two of which all blocks and their distances from `origin` are multiples.
Bytes granule_of(std::vector<Lane> lanes, Bytes origin) {
  Bytes bits = 0;
  for (Lane& lane : lanes) {
    while ((bits & 1) == 0 && lane.next()) {
      bits |= (lane.run.offset - origin) | lane.run.block;
      if (lane.run.count > 1) bits |= lane.run.stride;
    }
  }
  return bits & -bits;
}

void fill(Bitmap& bitmap, std::vector<Lane> lanes, Bytes origin, Bytes granule) {
  for (Lane& lane : lanes) {
    while (lane.next()) {
      const std::int64_t length = lane.run.block / granule;
      const std::int64_t step = lane.run.count > 1 ? lane.run.stride / granule : 0;
      std::int64_t at = (lane.run.offset - origin) / granule;
      for (std::int64_t i = 0; i < lane.run.count; ++i, at += step) bitmap.set(at, at + length);
    }
  }
}

/// For pieces without regularity: every piece sets its bits.
Union cover_by_bitmap(const std::vector<TiledPart>& parts, Extent window, std::size_t extents_max,
                      Bytes granule) {
  const std::int64_t bits = (window.length + granule - 1) / granule;
  Bitmap bitmap(bits);
  fill(bitmap, lanes_of(parts), window.offset, granule);
  Union covered(extents_max);
  for (std::int64_t begin = bitmap.find(0, true); begin < bits && !covered.too_many();) {
    const std::int64_t end = bitmap.find(begin, false);
    covered.add(window.offset + begin * granule, window.offset + end * granule);
    begin = bitmap.find(end, true);
  }
  return covered;
}

}  // namespace

Coverage coverage(std::span<const TiledPart> parts, Extent window, std::size_t extents_max) {
  Coverage result;
  std::vector<TiledPart> inside;
  Bytes total = 0;
  for (const TiledPart& part : parts) {
    const Bytes begin = std::max(part.data_start, data_before(*part.tree, window.offset));
    const Bytes end = std::min(part.data_end, data_before(*part.tree, window.end()));
    if (begin < end) inside.push_back({part.tree, begin, end});
    total += std::max<Bytes>(0, end - begin);
  }
  if (inside.empty()) {
    result.dense = window.empty();
    return result;
  }

  constexpr Bytes bitmap_bits_max = 64 * MiB;  // 8 MiB of memory.
  const std::int64_t steps_max = 1024 + 16 * static_cast<std::int64_t>(inside.size());
  Sweep sweep(lanes_of(inside), extents_max);
  Union* covered = &sweep.result();
  Union from_bitmap(extents_max);
  if (!sweep.run(steps_max)) {
    const Bytes granule = granule_of(lanes_of(inside), window.offset);
    if (window.length / granule <= bitmap_bits_max) {
      from_bitmap = cover_by_bitmap(inside, window, extents_max, granule);
      covered = &from_bitmap;
    } else {
      while (!sweep.run(steps_max)) {
      }
    }
  }
  if (covered->too_many()) {
    result.too_many = true;
    return result;
  }
  result.extents = covered->take();
  for (const Extent& extent : result.extents) result.covered += extent.length;
  result.dense = result.covered == window.length;
  result.overlapping = total > result.covered;
  return result;
}

}  // namespace forebay
