#include "core/plan/extent_advice.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace forebay {
namespace {

constexpr Bytes fewest_pieces = 4;

Bytes piece_for(Bytes budget) {
  return std::clamp(round_down(budget / fewest_pieces, direct_alignment), direct_alignment,
                    ExtentAdvice::most_piece);
}

/// So many pieces in a row that were there already say that it is not our requests what the reader
/// waits for; as many that were not, that it is.
constexpr int enough_alike = 8;

/// Budgets that a reader who jumps may leave unread, where he has read less.
constexpr Bytes most_in_vain = 2;

/// What is declared of its hull; none: all of it.
std::vector<Extent> declared_in(const FetchPiece& piece) {
  std::vector<Extent> result;
  if (piece.parts().size() == 1) return result;
  std::ranges::transform(piece.parts(), std::back_inserter(result), &FetchPiece::Part::extent);
  return result;
}

}  // namespace

ExtentAdvice::ExtentAdvice(const std::vector<Extent>& willneed, Bytes file_size, Bytes budget,
                           std::optional<Bytes> gap)
    : budget_(budget),
      is_ordered_(gap.has_value()),
      plan_(willneed, file_size),
      tuner_({piece_for(budget), std::nullopt},
             RequestTuner::most_joined_in(budget, piece_for(budget)), gap) {}

std::vector<ReadAdvice::Item> ExtentAdvice::begin() {
  std::vector<Item> items;
  fill(items);
  return items;
}

std::vector<ReadAdvice::Item> ExtentAdvice::observe(Extent read) {
  // An index may lie between neighbours that are brought as one, and is read at any time.
  if (plan_.lies_between(read)) return {};
  return follow(read, false);
}

std::vector<ReadAdvice::Item> ExtentAdvice::glimpse(Extent read) { return follow(read, true); }

std::vector<ReadAdvice::Item> ExtentAdvice::follow(Extent read, bool is_glimpse) {
  if (is_given_up_ || read.empty()) return {};
  std::vector<Item> items;
  const bool again = was_taken(read);
  if (!again) pass_current(items);
  advance(read, is_glimpse);
  const bool was_ahead = take_ahead(read);
  // Where nothing is told, reads may be seen but here and there.
  const bool foreseen = take_upcoming(read) || was_ahead || again ||
                        (ahead_most_ == Ahead::nothing && go_to(read, Kind::read));
  if (!foreseen && !was_right_ && !plan_.covers(read) && ++strays_ <= most_strays) return items;
  confidence_.observe(foreseen);
  if (foreseen) {
    misses_ = 0;
    was_right_ = true;
  } else if (confidence_.lost()) {
    give_up(items);
    return items;
  } else if (++misses_ >= misses_before_seeking && find(read)) {
    misses_ = 0;
    for (const Told& told : ahead_) in_vain_ += transfer_of(told.piece.hull()).length;
    pass_ahead();
    // Right extents in a wrong order: a few reads of each are foreseen, so that confidence stays.
    if (in_vain_ > most_in_vain * budget_ && in_vain_ > taken_) {
      give_up(items);
      return items;
    }
  }
  fill(items);
  return items;
}

void ExtentAdvice::give_up(std::vector<Item>& items) {
  is_given_up_ = true;
  std::ranges::move(end(), std::back_inserter(items));
}

std::vector<ReadAdvice::Item> ExtentAdvice::end() {
  std::vector<Item> items;
  pass_current(items);
  pass_ahead();
  upcoming_.reset();
  plan_ = {};
  while (!behind_.empty()) drop_oldest(items);
  return items;
}

bool ExtentAdvice::foresaw(Extent extent) const { return plan_.covers(extent); }

std::vector<Extent> ExtentAdvice::expected() const {
  std::vector<FetchPiece::Part> parts;
  for (const Told& told : ahead_) {
    parts.insert(parts.end(), told.piece.parts().begin(), told.piece.parts().end());
  }
  std::ranges::sort(parts, {}, &FetchPiece::Part::place);
  std::vector<Extent> result;
  std::ranges::transform(parts, std::back_inserter(result), &FetchPiece::Part::extent);
  return result;
}

bool ExtentAdvice::is_done() { return !is_given_up_ && ahead_.empty() && !next_piece(); }

void ExtentAdvice::was_there(bool already) {
  alike_ = already == was_there_ ? alike_ + 1 : 1;
  was_there_ = already;
  if (alike_ != enough_alike) return;
  if (already) {
    tuner_.stop();
  } else {
    tuner_.go_on();
  }
}

void ExtentAdvice::take_gap(std::optional<Bytes> gap) {
  if (!is_ordered_) tuner_.obey(gap);
}

Bytes ExtentAdvice::most_held() const {
  if (ahead_most_ == Ahead::nothing) return 0;
  if (ahead_most_ == Ahead::all) return budget_;
  // Half of a budget of a few KiB may hold no piece.
  return std::max(budget_ / 2, std::min(budget_, 2 * piece_for(budget_)));
}

void ExtentAdvice::fill(std::vector<Item>& items) {
  const Bytes most = most_held();
  while (held_ > most && !behind_.empty()) drop_oldest(items);
  if (most == 0) return;
  while (auto& next = next_piece()) {
    const Extent whole = next->hull();
    const Bytes length = transfer_of(whole).length;
    while (held_ + length > most && !behind_.empty()) drop_oldest(items);
    if (held_ + length > most) return;
    held_ += length;
    items.push_back({whole, true, Kind::read, declared_in(*next)});
    ahead_.push_back({*std::move(next), tuner_.trial()});
    next.reset();
  }
}

void ExtentAdvice::drop_oldest(std::vector<Item>& items) {
  const FetchPiece& oldest = behind_.front();
  held_ -= transfer_of(oldest.hull()).length;
  for (const auto& part : oldest.parts()) items.push_back({part.extent, false});
  for (const Extent& gap : oldest.between()) items.push_back({gap, false, Kind::between});
  behind_.pop_front();
}

void ExtentAdvice::pass_current(std::vector<Item>& items) {
  behind_.insert(behind_.end(), current_.begin(), current_.end());
  current_.clear();
  items.insert(items.end(), untold_.begin(), untold_.end());
  untold_.clear();
}

void ExtentAdvice::pass_ahead() {
  for (const Told& told : ahead_) behind_.push_back(told.piece);
  ahead_.clear();
}

/// How far the reader is by this read of what is ahead.
void ExtentAdvice::advance(Extent read, bool is_glimpse) {
  std::optional<FetchPiece::Places> places;
  const auto look_at = [&](const FetchPiece& piece) {
    const auto found = piece.places_of(read);
    if (!found) return;
    if (!places) places = found;
    places = {std::min(places->first, found->first), std::max(places->end, found->end)};
  };
  for (const Told& told : ahead_) look_at(told.piece);
  const auto& next = next_piece();
  // The kernel may touch more than the program reads, and is seen there.
  if (next && !is_glimpse) look_at(*next);
  if (!places) return;
  // Nothing comes that could show it.
  const bool is_end =
      plan_.at_end() && (next ? next->end() : ahead_.back().piece.end()) <= places->end;
  if (is_glimpse || is_end) {
    front_ = ReadingFront(places->end);
  } else {
    front_.read_to(places->end, front_.begin_read(places->first));
  }
}

/// The pieces that the reader has passed or read are not ahead any more.
bool ExtentAdvice::take_ahead(Extent read) {
  bool taken = false;
  std::deque<Told> rest;
  for (Told& told : ahead_) {
    const auto places = told.piece.places_of(read);
    taken |= places.has_value();
    const ReadingPlace come_to = places ? places->end : ReadingPlace{};
    const bool is_over = told.piece.end() <= std::max(come_to, front_.passed());
    if (!is_over) {
      rest.push_back(std::move(told));
      continue;
    }
    measure(told);
    (places ? current_ : behind_).push_back(std::move(told.piece));
  }
  ahead_ = std::move(rest);
  return taken;
}

void ExtentAdvice::measure(const Told& told) {
  const Bytes bytes = transfer_of(told.piece.hull()).length;
  taken_ += bytes;
  if (!tuner_.arrive(told.trial, bytes, now_ns_, now_ns_)) return;
  tuner_.decide(plan_.coming(RequestTuner::extents_to_weigh), plan_.left());
}

/// The reader was faster than we.
bool ExtentAdvice::take_upcoming(Extent read) {
  bool taken = false;
  for (;;) {
    auto& next = next_piece();
    if (!next || !next->touches(read)) return taken;
    taken = true;
    for (const Extent& part : next->take_out(read)) untold_.push_back({part, false});
    if (!next->empty()) return taken;
    next.reset();
  }
}

/// Anywhere in the plan.
bool ExtentAdvice::find(Extent read) {
  if (go_to(read, Kind::skipped)) return true;
  if (!plan_.seek(read)) return false;
  upcoming_.reset();
  take_upcoming(read);
  return true;
}

/// Forward in the plan, and past what lies between, which is given up as `past`.
bool ExtentAdvice::go_to(Extent read, Kind past) {
  if (!plan_.lies_ahead(read)) return false;
  while (auto& next = next_piece()) {
    if (next->touches(read)) return take_upcoming(read);
    for (const auto& part : next->parts()) untold_.push_back({part.extent, false, past});
    next.reset();
  }
  return false;
}

bool ExtentAdvice::was_taken(Extent read) const {
  const auto touched = [&](const FetchPiece& piece) { return piece.touches(read); };
  return std::ranges::any_of(current_, touched) || std::ranges::any_of(behind_, touched) ||
         std::ranges::any_of(
             untold_, [&](const Item& item) { return !intersect(item.extent, read).empty(); });
}

std::optional<FetchPiece>& ExtentAdvice::next_piece() {
  if (!upcoming_) upcoming_ = plan_.next(tuner_.shape());
  return upcoming_;
}

}  // namespace forebay
