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

}  // namespace

std::optional<Followed> ParkedFiles::park(Followed followed) {
  if (!has_more(followed)) return followed;
  Closed* before = closed(followed.version.id);
  if (before == nullptr) {
    closed_.push_back({followed.version.id});
    if (closed_.size() > most_remembered) closed_.pop_front();
    return followed;
  }
  const std::int64_t reads = followed.file != nullptr ? followed.file->figures().reads_served
                                                      : followed.advised->figures().reads;
  const std::int64_t news = reads - std::exchange(followed.reads_credited, reads);
  before->credit = std::min(before->credit + news, most_credit);
  parked_.push_back(std::move(followed));
  if (parked_.size() <= most) return std::nullopt;
  Followed oldest = std::move(parked_.front());
  parked_.pop_front();
  return oldest;
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
