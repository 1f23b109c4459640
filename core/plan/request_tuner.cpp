#include "core/plan/request_tuner.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "core/plan/fetch_plan.hpp"

namespace forebay {
namespace {

/// Gaps that are considered; the largest costs as much as a request to a device of 1 GB/s and 1000
/// operations a second.
constexpr std::array<Bytes, 14> gaps = {0,         8 * KiB,   16 * KiB,  32 * KiB,  64 * KiB,
                                        96 * KiB,  128 * KiB, 160 * KiB, 192 * KiB, 256 * KiB,
                                        320 * KiB, 384 * KiB, 512 * KiB, MiB};

constexpr std::size_t fewest_arrivals = 16;
constexpr std::int64_t shortest_ns = 60'000'000;
/// So many times the longest wait between two arrivals are waited for where no second burst comes.
constexpr int longest_waits = 4;

/// Sizes must differ by that much for the rates to tell anything.
constexpr double fewest_times_larger = 1.4;
/// Of the growth of the requests' size, the part (as an exponent) that the rate has to follow; and
/// what of it tells that it does not, once that was measured again.
constexpr double share_followed = 0.75;
constexpr double share_ignored = 0.25;
/// Measurements of both sizes, by turns, for what lies between.
constexpr int most_measured = 6;

/// How many times faster a storage is at first if that is not noise.
constexpr double for_a_while = 1.5;

/// What a larger gap has to win over a smaller one, and joining at all over not joining.
constexpr double least_gain = 1.03;
constexpr double least_gain_in_all = 1.1;

/// Of the time, what the reader waits for the storage if that is what holds it up.
constexpr double least_waiting = 0.2;

/// By how much requests of other files may be larger or smaller, on the mean, for what was measured
/// there to say anything here.
constexpr double most_unlike = 1.5;

/// Too few to be worth a trial.
constexpr std::size_t fewest_coming = 32;

/// Of the time that fetching the rest takes with usual requests, what a trial may lose.
constexpr double most_lost = 0.1;

constexpr int first_between_trials = 128;
constexpr int most_between_trials = 1 << 20;
constexpr int times_longer = 2;  ///< Each time.

/// So many of the largest requests have room in the memory.
constexpr Bytes largest_requests = 6;

/// By a trial, where `coming` make `usual`.
double most_bytes_lost(const RequestLoad& usual, const std::vector<Extent>& coming,
                       std::size_t left) {
  return most_lost * usual.bytes * static_cast<double>(left) / static_cast<double>(coming.size());
}

}  // namespace

RequestLoad load_of(const std::vector<Extent>& extents, const RequestShape& shape) {
  Bytes end = 0;
  for (const Extent& extent : extents) end = std::max(end, extent.end());
  FetchPlan plan(extents, end);
  RequestLoad load;
  load.needed = static_cast<double>(plan.bytes());
  while (const auto piece = plan.next(shape)) {
    load.requests += 1;
    load.bytes += static_cast<double>(transfer_of(piece->hull()).length);
  }
  return load;
}

Bytes RequestTuner::most_joined_in(Bytes memory, Bytes usual) {
  const Bytes share = round_down(memory / largest_requests, direct_alignment);
  return std::max(usual, std::min(share, longest_request));
}

RequestTuner::RequestTuner(const RequestShape& usual, Bytes most_joined, std::optional<Bytes> gap)
    : usual_(usual),
      most_joined_(most_joined),
      shape_(usual),
      between_trials_(first_between_trials) {
  if (!gap) return;
  if (*gap > 0) shape_ = {most_joined, std::min(*gap, most_joined)};
  stage_ = Stage::settled;
  between_trials_ = 0;
}

bool RequestTuner::arrive(int trial, Bytes bytes, std::int64_t now_ns, std::int64_t reader_ns) {
  // Also of what does not count any more: it may be the end of a burst.
  const std::int64_t waited = last_arrival_ns_ ? now_ns - *last_arrival_ns_ : 0;
  last_arrival_ns_ = now_ns;
  if (trial != trial_) return false;
  if (stage_ == Stage::settled) {
    if (between_trials_ > 0 && --until_next_ <= 0) begin_anew();
    return false;
  }
  arrivals_.push_back({now_ns, waited, reader_ns, bytes});
  return rates().has_value();
}

std::optional<RequestTuner::Rates> RequestTuner::rates() const {
  const std::size_t fewest = stage_ == Stage::joined ? 2 * fewest_arrivals : fewest_arrivals;
  if (arrivals_.size() <= fewest) return std::nullopt;
  std::int64_t longest = longest_wait_ns_;
  for (const Arrival& arrival : arrivals_) longest = std::max(longest, arrival.waited_ns);
  const auto rate = [&](std::size_t first, std::size_t last) -> std::optional<Rates> {
    const std::int64_t took = arrivals_[last].time_ns - arrivals_[first].time_ns;
    if (last - first < fewest || took < shortest_ns) return std::nullopt;
    double bytes = 0;
    for (std::size_t i = first; i < last; ++i) bytes += static_cast<double>(arrivals_[i].bytes);
    const double per_s = 1e9 / static_cast<double>(took);
    const std::int64_t reader = arrivals_[last].reader_ns - arrivals_[first].reader_ns;
    return Rates{static_cast<double>(last - first) * per_s, bytes * per_s,
                 static_cast<double>(reader) / static_cast<double>(took)};
  };
  const auto begins_burst = [&](const Arrival& arrival) {
    return 2 * arrival.waited_ns >= longest;
  };
  const auto begin = std::ranges::find_if(arrivals_, begins_burst);
  const auto first = static_cast<std::size_t>(begin - arrivals_.begin());
  std::size_t last = arrivals_.size() - 1;
  while (last > first && !begins_burst(arrivals_[last])) --last;
  if (const auto found = last > first ? rate(first, last) : std::nullopt) return found;
  const std::int64_t took = arrivals_.back().time_ns - arrivals_.front().time_ns;
  if (took < longest_waits * longest) return std::nullopt;
  return rate(0, arrivals_.size() - 1);
}

void RequestTuner::MeanRates::add(const Rates& rates) {
  sum.requests += rates.requests;
  sum.bytes += rates.bytes;
  sum.waiting += rates.waiting;
  ++times;
}

RequestTuner::Rates RequestTuner::MeanRates::mean() const {
  if (times == 0) return {};
  return {sum.requests / times, sum.bytes / times, sum.waiting / times};
}

void RequestTuner::decide(const std::vector<Extent>& coming, std::size_t left) {
  const auto found = rates();
  if (!found || stage_ == Stage::settled) return;
  if (stage_ == Stage::joined) return follow(coming, *found);
  if (coming.size() < fewest_coming || found->waiting < least_waiting) return settle();
  if (stage_ == Stage::larger) {
    larger_rates_.add(*found);
  } else {
    // A storage may be fast at first, when nobody has used it for a while.
    if (usual_rates_.mean().bytes > for_a_while * found->bytes) usual_rates_ = {};
    usual_rates_.add(*found);
    if (larger_rates_.times == 0) return try_larger(coming, left);
  }
  const double followed = rate_follows_size();
  if (followed >= share_followed) return join(coming);
  // Once more with the usual ones is enough: those were not faster only because nobody had used the
  // storage for a while, and larger ones may bring bytes that nobody needs.
  const int measured = usual_rates_.times + larger_rates_.times;
  const bool is_sure = measured > 2 && followed < share_ignored;
  if (is_sure || measured >= most_measured) return settle();
  if (stage_ == Stage::larger) return try_shape(usual_, Stage::usual);
  const RequestLoad usual = load_of(coming, usual_);
  if (bytes_lost(usual, load_of(coming, larger_)) > most_bytes_lost(usual, coming, left)) {
    return settle();
  }
  try_shape(larger_, Stage::larger);
}

/// The exponent of the requests' size to which the bytes a second grew.
double RequestTuner::rate_follows_size() const {
  const Rates usual = usual_rates_.mean();
  const Rates larger = larger_rates_.mean();
  if (larger.mean() <= usual.mean()) return 0;
  return std::log(larger.bytes / usual.bytes) / std::log(larger.mean() / usual.mean());
}

void RequestTuner::join(const std::vector<Extent>& coming) {
  const Rates usual = usual_rates_.mean();
  is_refuted_ = false;
  times_.clear();
  times_.add(usual_, usual.mean(), 1 / usual.requests);
  shape_ = larger_;
  follow(coming, larger_rates_.mean());
}

void RequestTuner::try_larger(const std::vector<Extent>& coming, std::size_t left) {
  const RequestLoad usual = load_of(coming, usual_);
  const double most_bytes = most_bytes_lost(usual, coming, left);
  for (const Bytes gap : gaps) {
    // Of two where more would cost too much.
    const Bytes pair = round_up(2 * (static_cast<Bytes>(usual.mean()) + gap), direct_alignment);
    for (const Bytes most : {most_joined_, std::min(pair, most_joined_)}) {
      const RequestShape shape{most, gap};
      const RequestLoad load = load_of(coming, shape);
      if (load.mean() < fewest_times_larger * usual.mean()) break;
      if (bytes_lost(usual, load) > most_bytes) continue;
      larger_ = shape;
      return try_shape(shape, Stage::larger);
    }
  }
  settle();
}

/// By a trial of requests that make `larger` of what is `usual` if the storage brings no more bytes
/// a second with them.
double RequestTuner::bytes_lost(const RequestLoad& usual, const RequestLoad& larger) const {
  const double least = usual_rates_.mean().bytes * static_cast<double>(shortest_ns) / 1e9;
  const double bytes = std::max(least, static_cast<double>(fewest_arrivals) * larger.mean());
  return bytes * std::max(0.0, 1 - larger.needed_share() / usual.needed_share());
}

/// With a shape that joins, for as long as it gains anything.
void RequestTuner::follow(const std::vector<Extent>& coming, const Rates& rates) {
  const double as_taught = times_.least(shape_, rates.mean()) * rates.requests;
  if (std::exchange(is_taught_, false) && std::max(as_taught, 1 / as_taught) > most_unlike) {
    // The storage is another than it was: what usual requests took there says nothing, either.
    is_refuted_ = true;
    return begin_anew();
  }
  times_.add(shape_, rates.mean(), 1 / rates.requests);
  if (coming.size() < fewest_coming) return forget_arrivals();
  RequestShape best = shape_;
  double shortest = seconds_for(coming, shape_);
  for (const Bytes gap : gaps) {
    const RequestShape shape{most_joined_, gap};
    const double seconds = seconds_for(coming, shape);
    if (seconds * least_gain > shortest) continue;
    shortest = seconds;
    best = shape;
  }
  if (shortest * least_gain_in_all > seconds_for(coming, usual_)) {
    is_refuted_ = true;
    return settle();
  }
  if (best == shape_ && stage_ == Stage::joined) {
    forget_arrivals();
  } else {
    try_shape(best, Stage::joined);
  }
}

/// What it would take at least, after all that was measured.
double RequestTuner::seconds_for(const std::vector<Extent>& coming,
                                 const RequestShape& shape) const {
  const RequestLoad load = load_of(coming, shape);
  return load.requests * times_.least(shape, load.mean());
}

std::optional<RequestTuner::Found> RequestTuner::found() const {
  if (!has_found()) return std::nullopt;
  return Found{usual_, shape_, times_};
}

bool RequestTuner::has_found() const {
  return stage_ == Stage::joined && times_.mean_of(shape_).has_value();
}

Bytes RequestTuner::gap_found() const { return has_found() ? shape_.gap.value_or(0) : 0; }

void RequestTuner::begin_with(const Found& found, const std::vector<Extent>& coming) {
  const bool is_new = stage_ == Stage::usual && trial_ == 0 && arrivals_.empty();
  const bool is_for_these = found.usual == usual_ && found.joined.most <= most_joined_;
  if (!is_new || !is_for_these || coming.size() < fewest_coming) return;
  for (const RequestShape& shape : {found.usual, found.joined}) {
    const auto mean = found.times.mean_of(shape);
    if (!mean) return;
    const double times_larger = load_of(coming, shape).mean() / *mean;
    if (std::max(times_larger, 1 / times_larger) > most_unlike) return;
  }
  times_ = found.times;
  is_taught_ = true;
  try_shape(found.joined, Stage::joined);
}

void RequestTuner::begin_anew() {
  usual_rates_ = larger_rates_ = {};
  try_shape(usual_, Stage::usual);
}

void RequestTuner::try_shape(const RequestShape& shape, Stage stage) {
  shape_ = shape;
  stage_ = stage;
  ++trial_;
  forget_arrivals();
  if (stage == Stage::usual) longest_wait_ns_ = 0;
}

void RequestTuner::forget_arrivals() {
  for (std::size_t i = 1; i < arrivals_.size(); ++i) {
    longest_wait_ns_ = std::max(longest_wait_ns_, arrivals_[i].time_ns - arrivals_[i - 1].time_ns);
  }
  arrivals_.clear();
}

void RequestTuner::obey(std::optional<Bytes> gap) {
  const RequestShape said = gap ? RequestShape{most_joined_, gap} : usual_;
  between_trials_ = 0;
  between_trials_then_.reset();
  if (stage_ != Stage::settled || shape_ != said) try_shape(said, Stage::settled);
}

void RequestTuner::stop() {
  if (stage_ == Stage::settled && between_trials_ == 0) return;
  between_trials_then_ = between_trials_;
  settle();
  between_trials_ = 0;
}

void RequestTuner::go_on() {
  if (!between_trials_then_) return;
  between_trials_ = *between_trials_then_;
  between_trials_then_.reset();
  begin_anew();
}

void RequestTuner::settle() {
  try_shape(usual_, Stage::settled);
  until_next_ = between_trials_;
  between_trials_ = std::min(times_longer * between_trials_, most_between_trials);
}

}  // namespace forebay
