#include "core/intercept/posix/left_alone.hpp"

#include <utility>

namespace forebay::posix {

void LeftAlone::add(const Followed& followed) {
  if (!has_to_be_told(followed)) return;
  File& file = by_path_[followed.path];
  file.by_kernel += followed.by_kernel;
  if (file.why.empty()) file.why = followed.left_alone;
}

void LeftAlone::write_records() {
  for (auto& [path, file] : std::exchange(by_path_, {})) {
    write_record({.path = path, .by_kernel = file.by_kernel, .left_alone = std::move(file.why)});
  }
}

}  // namespace forebay::posix
