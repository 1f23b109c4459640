#pragma once

#include <cstdint>

#include "core/model/extent.hpp"

namespace forebay {

/// Reads in a row that hit nothing before it is looked for whether the program went elsewhere in
/// the plan. One or two may be an index that is read in between.
constexpr int misses_before_seeking = 3;

/// A program reads the index of its file before the data that was declared (HDF5, ROOT): so many
/// reads of other places do not speak against a plan of which nothing was read yet.
constexpr int most_strays = 64;

/// Whether what is fetched is what is read: a running share of hits among the reads.
class Confidence {
 public:
  void observe(bool hit) { share_ += weight * ((hit ? 1.0 : 0.0) - share_); }
  /// Nine misses in a row from the best on (0.875 to the 9th is 0.30).
  bool lost() const { return share_ < 0.301; }

 private:
  static constexpr double weight = 1.0 / 8;
  double share_ = 1;
};

/// How far to fetch ahead: latency x bandwidth keeps the storage busy, some times that lets a
/// reader take one part while others arrive. Latency is the shortest seen and bandwidth the
/// highest, since both are spoilt by our own requests waiting behind each other. Time is
/// nanoseconds of any one clock. [Cardwell et al., BBR, 2016: the same two for a network path]
class FetchWindow {
 public:
  FetchWindow(Bytes block, Bytes budget);

  /// State at the start of a transfer, to be handed back at its end.
  struct Departure {
    std::int64_t time_ns = 0;
    Bytes delivered = 0;
  };
  Departure depart(std::int64_t now_ns) const { return {now_ns, delivered_}; }
  void arrive(const Departure& departure, Bytes bytes, std::int64_t now_ns);

  /// Something fetched was read: the window opens, from first_blocks, by a block each time.
  void confirm();
  /// Back to the beginning: what was foreseen did not come.
  void close();

  /// Bytes that may be fetched or held ahead now: whole blocks, within the budget.
  Bytes bytes() const;
  /// The same where it is operations that the storage is short of, so that latency x bandwidth says
  /// nothing: all that has been confirmed.
  Bytes confirmed_bytes() const { return opened_; }
  /// Whether more confirmation would change nothing.
  bool is_open() const { return opened_ >= wanted(); }

  std::int64_t latency_ns() const { return latency_ns_; }
  double bytes_per_second() const { return bytes_per_second_; }

 private:
  static constexpr Bytes first_blocks = 4;
  static constexpr double windows_ahead = 4;

  Bytes wanted() const;

  Bytes block_;
  Bytes budget_;
  Bytes opened_;
  Bytes delivered_ = 0;
  std::int64_t latency_ns_ = 0;  ///< 0: none measured.
  double bytes_per_second_ = 0;
};

}  // namespace forebay
