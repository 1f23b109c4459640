#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/extent.hpp"
#include "core/plan/fetch_piece.hpp"
#include "core/plan/request_times.hpp"

namespace forebay {

/// What requests come to.
struct RequestLoad {
  double requests = 0;
  double bytes = 0;   ///< Transferred.
  double needed = 0;  ///< Of them, declared.

  double mean() const { return requests > 0 ? bytes / requests : 0; }
  double needed_share() const { return bytes > 0 ? needed / bytes : 1; }
};

/// For `extents`, in that order.
RequestLoad load_of(const std::vector<Extent>& extents, const RequestShape& shape);

/// How large requests should be: whether to fetch gaps along with what is needed. A storage that
/// carries out so many operations a second, however large they are, is the faster the fewer there
/// are; one that is limited by its bandwidth only loses by the gaps. Which one it is shows when
/// requests of two sizes are made, some of each: if with larger ones the bytes a second grow about
/// as much as the size does, it is operations that count. Then the gap is that with which what
/// comes next takes the least time, as measured; of gaps that were not tried, the least that is
/// possible after what was (RequestTimes). So each gap that could be the best is tried, and what
/// was measured decides. Where the reader is what is slow, larger requests gain nothing, and
/// nothing is joined. While gaps are fetched, what they gain goes on being measured; when nothing
/// is joined, it is tried again from time to time.
///
/// Storage may answer in bursts (Linux's throttling does: the requests of 0.1 s at once). So rates
/// are taken from the beginning of a burst to that of another.
class RequestTuner {
 public:
  /// Requests are of `usual` shape at first, and where nothing else is better; of up to
  /// `most_joined` bytes where extents are joined. `gap`: what is between two extents that are
  /// joined, by order of the user; nothing is measured then.
  RequestTuner(const RequestShape& usual, Bytes most_joined, std::optional<Bytes> gap);

  const RequestShape& shape() const { return shape_; }
  /// What a request that is made now is part of; handed back when it has ended.
  int trial() const { return trial_; }

  /// A request has ended, or was read. True: decide() knows enough. Time is nanoseconds of any one
  /// clock. `reader_ns`: how long the reader has waited for the storage until now, in all; where
  /// that is not known, the time.
  bool arrive(int trial, Bytes bytes, std::int64_t now_ns, std::int64_t reader_ns);

  /// After arrive() said so. `coming`: the extents that will be fetched next, at most
  /// extents_to_weigh. `left`: how many there are in all, until the end.
  void decide(const std::vector<Extent>& coming, std::size_t left);

  /// What is to be told others of that: nothing of a trial which is of smaller requests than they
  /// would make.
  std::optional<Bytes> gap_for_others() const {
    return shape_.most < most_joined_ ? std::nullopt : shape_.gap;
  }

  /// Another measures: what it says is between two extents that are joined; none: each has requests
  /// of its own. Nothing is measured here any more.
  void obey(std::optional<Bytes> gap);

  /// What was found out about a storage of which extents are joined.
  struct Found {
    RequestShape usual;
    RequestShape joined;  ///< That which is best.
    RequestTimes times;   ///< Of both, and of what else was tried.
  };
  /// None: it is not known yet, or joining gains nothing.
  std::optional<Found> found() const;
  /// Of what was found, what is between two extents that are joined; 0: none is.
  Bytes gap_found() const;
  /// What was found to be best gains nothing any more.
  bool is_refuted() const { return is_refuted_; }
  /// Begins with what was found where another file of the same storage was read, if `coming`, the
  /// extents that will be fetched first, makes requests of about those sizes; it goes on being
  /// measured. Of no effect after the first measurement, or where the user said what is joined.
  void begin_with(const Found& found, const std::vector<Extent>& coming);

  /// What is measured is not our own requests: nothing is joined any more, but by order.
  void stop();
  /// After stop(): it is again, and is measured anew.
  void go_on();

  static constexpr std::size_t extents_to_weigh = 128;

  /// The longest request that block devices of Linux take as one where nobody said otherwise
  /// (BLK_DEF_MAX_SECTORS_CAP); network and FUSE file systems take 1 MiB or more.
  static constexpr Bytes longest_request = 1280 * KiB;

  /// Of `memory` for what was fetched, what the largest request takes, and no less than `usual`:
  /// others are under way, and some are read.
  static Bytes most_joined_in(Bytes memory, Bytes usual);

 private:
  struct Arrival {
    std::int64_t time_ns;
    std::int64_t waited_ns;  ///< Since the one before, of whatever trial.
    std::int64_t reader_ns;
    Bytes bytes;
  };
  struct Rates {
    double requests;  ///< A second.
    double bytes;     ///< A second.
    double waiting;   ///< The reader, of the time.
    double mean() const { return bytes / requests; }
  };
  /// Of several measurements.
  struct MeanRates {
    Rates sum{};
    int times = 0;
    void add(const Rates& rates);
    Rates mean() const;
  };
  enum class Stage { usual, larger, joined, settled };

  bool has_found() const;
  std::optional<Rates> rates() const;
  void try_shape(const RequestShape& shape, Stage stage);
  void try_larger(const std::vector<Extent>& coming, std::size_t left);
  double bytes_lost(const RequestLoad& usual, const RequestLoad& larger) const;
  double rate_follows_size() const;
  void join(const std::vector<Extent>& coming);
  void follow(const std::vector<Extent>& coming, const Rates& rates);
  double seconds_for(const std::vector<Extent>& coming, const RequestShape& shape) const;
  void begin_anew();
  void forget_arrivals();
  void settle();

  const RequestShape usual_;
  const Bytes most_joined_;
  RequestShape shape_;
  Stage stage_ = Stage::usual;
  int trial_ = 0;
  std::vector<Arrival> arrivals_;
  std::optional<std::int64_t> last_arrival_ns_;
  std::int64_t longest_wait_ns_ = 0;  ///< Between two that were forgotten.
  RequestShape larger_;
  MeanRates usual_rates_;
  MeanRates larger_rates_;
  RequestTimes times_;      ///< Since it was found that operations count.
  bool is_taught_ = false;  ///< times_ are of another file, and were not put to the test yet.
  bool is_refuted_ = false;
  int until_next_ = 0;  ///< Requests, once settled; then it begins anew.
  int between_trials_;
  std::optional<int> between_trials_then_;  ///< Before it was stopped, if it is.
};

}  // namespace forebay
