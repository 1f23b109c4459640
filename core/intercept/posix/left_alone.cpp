#include "core/intercept/posix/left_alone.hpp"

#include <utility>

#include "core/intercept/posix/prefetch_record.hpp"

namespace forebay::posix {

void LeftAlone::add(const Followed& followed) {
  if (!has_to_be_told(followed)) return;
  const bool has_room = by_path_.size() < most_files || by_path_.contains(followed.path);
  Followed& all =
      has_room ? by_path_.try_emplace(followed.path, Followed{.path = followed.path, .openings = 0})
                     .first->second
               : further_;
  all.openings += followed.openings;
  all.by_kernel += followed.by_kernel;
  if (all.left_alone.empty()) all.left_alone = followed.left_alone;  // The first of the reasons.
}

void LeftAlone::write_records() {
  for (const auto& [path, all] : std::exchange(by_path_, {})) write_record(all);
  const Followed further = std::exchange(further_, {.openings = 0});
  if (further.openings > 0) {
    write_left_alone_record(further.openings, further.by_kernel, why_left_alone(further));
  }
}

}  // namespace forebay::posix
