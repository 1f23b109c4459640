#include "core/plan/extent_advice.hpp"

#include <algorithm>

namespace forebay {
namespace {

constexpr Bytes fewest_pieces = 4;

Bytes piece_for(Bytes budget) {
  return std::clamp(round_down(budget / fewest_pieces, direct_alignment), direct_alignment,
                    ExtentAdvice::most_piece);
}

bool overlap(Extent a, Extent b) { return !intersect(a, b).empty(); }

}  // namespace

ExtentAdvice::ExtentAdvice(const std::vector<Extent>& willneed, Bytes file_size, Bytes budget)
    : budget_(budget), plan_(willneed, file_size, piece_for(budget)) {}

std::vector<ReadAdvice::Item> ExtentAdvice::begin() {
  std::vector<Item> items;
  fill(items);
  return items;
}

std::vector<ReadAdvice::Item> ExtentAdvice::observe(Extent read) {
  if (is_given_up_ || read.empty()) return {};
  std::vector<Item> items;
  const bool again = was_taken(read);
  if (!again) pass_current();
  const bool was_ahead = take_ahead(read);
  const bool foreseen = take_upcoming(read) || was_ahead || again;
  if (!foreseen && !was_right_ && !plan_.covers(read.offset) && ++strays_ <= most_strays) return {};
  confidence_.observe(foreseen);
  if (foreseen) {
    misses_ = 0;
    was_right_ = true;
  } else if (confidence_.lost()) {
    is_given_up_ = true;
    return end();
  } else if (++misses_ >= misses_before_seeking && plan_.seek(read.offset)) {
    misses_ = 0;
    upcoming_.reset();
    behind_.insert(behind_.end(), ahead_.begin(), ahead_.end());
    ahead_.clear();
  }
  fill(items);
  return items;
}

std::vector<ReadAdvice::Item> ExtentAdvice::end() {
  pass_current();
  behind_.insert(behind_.end(), ahead_.begin(), ahead_.end());
  ahead_.clear();
  upcoming_.reset();
  plan_ = {};
  std::vector<Item> items;
  while (!behind_.empty()) drop_oldest(items);
  return items;
}

void ExtentAdvice::fill(std::vector<Item>& items) {
  while (const auto piece = next_piece()) {
    const Bytes length = transfer_of(*piece).length;
    while (held_ + length > budget_ && !behind_.empty()) drop_oldest(items);
    if (held_ + length > budget_) return;
    upcoming_.reset();
    held_ += length;
    ahead_.push_back(*piece);
    items.push_back({*piece, true});
  }
}

void ExtentAdvice::drop_oldest(std::vector<Item>& items) {
  held_ -= transfer_of(behind_.front()).length;
  items.push_back({behind_.front(), false});
  behind_.pop_front();
}

void ExtentAdvice::pass_current() {
  behind_.insert(behind_.end(), current_.begin(), current_.end());
  current_.clear();
}

/// The pieces up to the last one that `read` touches are not ahead any more.
bool ExtentAdvice::take_ahead(Extent read) {
  const auto last = std::find_if(ahead_.rbegin(), ahead_.rend(),
                                 [&](const Extent& piece) { return overlap(piece, read); });
  if (last == ahead_.rend()) return false;
  // The last one stays ahead until it is read to its end.
  const auto end = read.end() >= last->end() ? last.base() : last.base() - 1;
  for (auto piece = ahead_.begin(); piece != end; ++piece) {
    (overlap(*piece, read) ? current_ : behind_).push_back(*piece);
  }
  ahead_.erase(ahead_.begin(), end);
  return true;
}

/// The reader was faster than we.
bool ExtentAdvice::take_upcoming(Extent read) {
  bool taken = false;
  while (const auto piece = next_piece()) {
    if (!overlap(*piece, read)) break;
    taken = true;
    if (read.end() < piece->end()) break;
    upcoming_.reset();
  }
  return taken;
}

bool ExtentAdvice::was_taken(Extent read) const {
  const auto touched = [&](const Extent& piece) { return overlap(piece, read); };
  return std::ranges::any_of(current_, touched) || std::ranges::any_of(behind_, touched);
}

std::optional<Extent> ExtentAdvice::next_piece() {
  if (!upcoming_) upcoming_ = plan_.next();
  return upcoming_;
}

}  // namespace forebay
