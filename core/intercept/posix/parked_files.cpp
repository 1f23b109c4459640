#include "core/intercept/posix/parked_files.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace forebay::posix {
namespace {

bool has_more(const Followed& followed) {
  if (followed.advised != nullptr) return !followed.advised->is_done();
  return followed.file != nullptr && !followed.file->intent().willneed.empty() &&
         !followed.file->is_done();
}

/// Bytes that were read of it, less those fetched in vain: until it has ended, the program may come
/// for what is held.
Bytes use_of(const Followed& followed, bool has_ended) {
  if (followed.file == nullptr) {
    const auto figures = followed.advised->figures();
    if (figures.has_unseen_reads) return 0;  // It is not known what was read.
    const Bytes read = figures.bytes_asked_declared;
    return read - std::max<Bytes>(figures.bytes_fetched - read, 0);
  }
  const auto figures = followed.file->figures();
  return figures.bytes_served - figures.bytes_unused + (has_ended ? 0 : figures.bytes_held);
}

}  // namespace

std::optional<Followed> ParkedFiles::park(Followed followed) {
  if (!has_more(followed)) {
    if (followed.file != nullptr) credit(followed, true);
    return followed;
  }
  Closed* before = closed(followed.version.id);
  if (before == nullptr) {
    closed_.push_back({followed.version.id});
    if (closed_.size() > most_remembered) closed_.pop_front();
    return followed;
  }
  credit(followed, false);
  if (followed.credited < 0 && !may_begin(followed.version.id)) {
    credit(followed, true);
    return followed;
  }
  parked_.push_back(std::move(followed));
  if (parked_.size() <= most) return std::nullopt;
  Followed oldest = std::move(parked_.front());
  parked_.pop_front();
  credit(oldest, true);
  return oldest;
}

void ParkedFiles::credit(Followed& followed, bool has_ended) {
  Closed* before = closed(followed.version.id);
  if (before == nullptr) return;
  const Bytes use = use_of(followed, has_ended);
  const Bytes news = use - std::exchange(followed.credited, use);
  before->credit = std::min(before->credit + news, most_credit);
}

ParkedFiles::Closed* ParkedFiles::closed(FileId id) {
  const auto found = std::ranges::find(closed_, id, &Closed::id);
  return found == closed_.end() ? nullptr : &*found;
}

bool ParkedFiles::holds(FileId id) const { return has(id, has_more); }

bool ParkedFiles::has(FileId id, const std::function<bool(const Followed&)>& is_wanted) const {
  return std::ranges::any_of(parked_, [&](const Followed& parked) {
    return parked.version.id == id && is_wanted(parked);
  });
}

bool ParkedFiles::may_begin(FileId id) {
  const Closed* before = closed(id);
  return before == nullptr || before->credit >= price;
}

void ParkedFiles::begins(FileId id) {
  if (Closed* before = closed(id)) before->credit -= price;
}

void ParkedFiles::for_each(FileId id, const std::function<void(const Followed&)>& act) const {
  for (const Followed& parked : parked_) {
    if (parked.version.id == id) act(parked);
  }
}

std::optional<Followed> ParkedFiles::take(FileId id,
                                          const std::function<bool(const Followed&)>& is_wanted) {
  const auto found = std::find_if(parked_.rbegin(), parked_.rend(), [&](const Followed& parked) {
    return parked.version.id == id && is_wanted(parked);
  });
  if (found == parked_.rend()) return std::nullopt;
  Followed followed = std::move(*found);
  parked_.erase(std::next(found).base());
  return followed;
}

std::vector<Followed> ParkedFiles::take_all() {
  std::vector<Followed> all(std::make_move_iterator(parked_.begin()),
                            std::make_move_iterator(parked_.end()));
  parked_.clear();
  return all;
}

}  // namespace forebay::posix
