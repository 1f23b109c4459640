// What a SharedFile does when it is the one that fetches.

#include <algorithm>
#include <utility>

#include "core/engine/prefetch/shared_file.hpp"
#include "core/engine/prefetch/steady_time.hpp"
#include "core/storage/background_thread.hpp"

namespace forebay {
namespace {

/// Pieces in a row: then the page cache has the file, and nothing needs to be fetched.
constexpr int most_resident_pieces = 64;

/// With less than this part of the memory in one piece it is given up.
constexpr Bytes part_left = 2;

}  // namespace

std::optional<ReadRequest> SharedFile::next_request() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::reading) return std::nullopt;
  if (!window_->fetches() && !begin_fetching()) return std::nullopt;
  for (;;) {
    follow_cursor();
    auto& next = next_piece();
    if (window_->longest_transfer() < window_->bytes() / part_left) window_->retire();
    if (window_->is_retired()) {
      leave("the memory that was shared is lost");
      return std::nullopt;
    }
    if (!next) {
      if (is_over_for_this_one()) window_->hand_over();
      return std::nullopt;
    }
    take_out_what_is_held(*next);
    const Extent held =
        next->empty() ? Extent{} : intersect(transfer_of(next->hull()), {0, version_.size});
    if (next->empty() || leave_to_page_cache(*next, held)) {
      go_past();
      if (resident_ < most_resident_pieces || figures_.requests > 0) continue;
      halt("the page cache had it");
      return std::nullopt;
    }
    resident_ = 0;
    const auto& parts = next->parts();
    Bytes begin = places_.of(parts.front().place);
    for (const auto& part : parts) begin = std::min(begin, places_.of(part.place));
    if (!has_room_for(*next, begin)) return std::nullopt;
    return fetch(*next, begin);
  }
}

/// Whether it is this one now that fetches.
bool SharedFile::begin_fetching() {
  if (!lacks_fetching()) return false;
  if (!answering_.joinable()) {
    auto thread = try_background_thread([this] { answer_others(); });
    if (!thread) return false;
    answering_ = std::move(*thread);
  }
  if (!window_->begin_fetching()) return false;
  cursor_ = -1;
  if (const auto told = window_->told_gap()) {
    tuner_.obey(*told);
  } else {
    memory_->teach(version_.id.device, tuner_, plan_);
  }
  return true;
}

/// All of its plan has come, or somebody is past that.
bool SharedFile::is_over_for_this_one() const {
  if (window_->cursor() < places_.end()) return false;
  return under_way_.empty() || std::ranges::any_of(window_->others(), [&](const auto& other) {
           return other.fellow.front >= places_.end();
         });
}

/// To where somebody came who needs what lies behind, or where another has fetched until now; past
/// what nobody wants.
void SharedFile::follow_cursor() {
  // The cursor first: who comes says where it is before it sets the cursor back.
  Bytes cursor = window_->cursor();
  const Bytes tail = std::min(window_->tail(), places_.end());
  if (cursor < tail && window_->advance(cursor, tail)) cursor = tail;
  if (cursor_ == cursor) return;
  upcoming_.reset();
  cursor_ = cursor;
  plan_.go_to(places_.at(std::clamp<Bytes>(cursor, 0, places_.end())));
}

std::optional<FetchPiece>& SharedFile::next_piece() {
  if (!upcoming_) {
    RequestShape shape = tuner_.shape();
    shape.most = std::min(shape.most, round_down(window_->longest_transfer(), direct_alignment));
    if (shape.most > 0) upcoming_ = plan_.next(shape);
    trial_.next_piece();
  }
  return upcoming_;
}

/// Parts that are there, or on their way, for as long as they are needed, and beginnings of parts.
void SharedFile::take_out_what_is_held(FetchPiece& piece) const {
  const auto pieces = window_->pieces();
  const auto held_of = [&](const FetchPiece::Part& part) -> Extent {
    for (const auto& held : pieces) {
      const Extent found = intersect(part.extent, held.held);
      const bool is_beginning = !found.empty() && found.offset == part.extent.offset;
      if (is_beginning && places_.of(part.place) + found.length <= held.end) return found;
    }
    return {};
  };
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    const auto parts = piece.parts();
    for (const auto& part : parts) {
      const Extent held = held_of(part);
      if (held.empty()) continue;
      piece.take_out(held);
      is_changed = true;
    }
  }
}

/// What was upcoming is under way, or not to be fetched. False: somebody behind needs something.
bool SharedFile::go_past() {
  upcoming_.reset();
  const Bytes to = places_.of(plan_.position());
  if (!window_->advance(cursor_, to)) return false;
  cursor_ = to;
  return true;
}

/// Whether the page cache has all parts of a piece, or it is to show that. Who waits for it reads
/// for itself.
bool SharedFile::leave_to_page_cache(const FetchPiece& piece, Extent held) {
  if (!trial_.leaves(*source_, piece, held, *memory_, version_.id.device, figures_)) return false;
  figures_.bytes_resident += piece.needed();
  ++resident_;
  window_->tell_all();
  return true;
}

bool SharedFile::has_room_for(const FetchPiece& piece, Bytes begin) {
  const Bytes length = transfer_of(piece.hull()).length;
  const Bytes ahead = window_->bytes_ahead(begin);
  const Bytes opened = window_->opened_bytes(block_);
  const bool is_open = ahead == 0 || opened >= window_->bytes() || ahead + length <= opened;
  return is_open && window_->make_room(length, begin);
}

std::optional<ReadRequest> SharedFile::fetch(const FetchPiece& piece, Bytes begin) {
  const Extent transfer = transfer_of(piece.hull());
  const Extent held = intersect(transfer, {0, version_.size});
  Bytes end = begin;
  for (const auto& part : piece.parts()) {
    end = std::max(end, places_.of(part.place) + part.extent.length);
  }
  const auto begun = window_->begin_piece(held, transfer.length, begin, end, piece.between());
  if (!begun) return std::nullopt;
  under_way_.push_back({begun->number, piece, held, tuner_.trial(), measured_.depart(steady_ns())});
  go_past();
  ++figures_.requests;
  return ReadRequest{begun->number, source_.get(), begun->memory, transfer.offset};
}

void SharedFile::ended(const ReadOutcome& outcome) {
  const auto version = source_->version();
  const std::lock_guard lock(mutex_);
  const auto piece = std::ranges::find(under_way_, outcome.tag, &UnderWay::number);
  if (piece == under_way_.end()) return;
  const UnderWay done = std::move(*piece);
  under_way_.erase(piece);
  figures_.bytes_fetched += outcome.moved;
  figures_.bytes_refetched += fetched_.add({done.held.offset, outcome.moved});
  const bool is_there = outcome.os_errno == 0 && outcome.moved >= done.held.length;
  // The others may use it, whatever has become of this one.
  if (!window_->end_piece(done.number, is_there && version == version_)) {
    figures_.bytes_unused += outcome.moved;
  }
  if (!is_there) {
    ++figures_.requests_failed;
    return;
  }
  figures_.bytes_between += done.wanted.hull().length - done.wanted.needed();
  const std::int64_t now_ns = steady_ns();
  measured_.arrive(done.departure, outcome.moved, now_ns);
  // Before that it is ourselves who hold the storage up.
  const bool is_open = window_->opened_bytes(block_) >= window_->bytes();
  if (window_->fetches() && is_open &&
      tuner_.arrive(done.trial, outcome.moved, now_ns, figures_.waited_ns)) {
    tuner_.decide(plan_.coming(RequestTuner::extents_to_weigh), plan_.left());
    window_->tell_gap(tuner_.gap_for_others());
    memory_->learn(version_.id.device, tuner_);
  }
  if (version != version_) halt("the file was changed");
}

}  // namespace forebay
