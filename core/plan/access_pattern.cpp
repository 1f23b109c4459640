#include "core/plan/access_pattern.hpp"

#include <algorithm>

namespace forebay {
namespace {

/// More steps than any program is asked for; keeps the doubling within an int.
constexpr int most_steps = 1 << 20;

}  // namespace

void AccessPattern::observe(Extent read) {
  if (!last_) {
    last_ = read;
    return;
  }
  const Bytes stride = read.offset - last_->offset;
  if (read.offset == last_->end()) {
    steps_ = kind_ == Kind::sequential ? steps_ + 1 : 1;
    kind_ = Kind::sequential;
  } else if (kind_ == Kind::strided && stride == stride_ && read.length == last_->length) {
    ++steps_;
  } else {
    kind_ = stride != 0 ? Kind::strided : Kind::none;
    steps_ = 1;
  }
  steps_ = std::min(steps_, most_steps);
  stride_ = stride;
  last_ = read;
}

std::vector<Extent> AccessPattern::expected(Bytes file_size, std::size_t limit) const {
  if (!last_ || kind_ == Kind::none || steps_ < needed_) return {};
  std::vector<Extent> result;
  if (kind_ == Kind::sequential) {
    const Bytes from = last_->end();
    if (from < file_size) result.push_back({from, file_size - from});
    return result;
  }
  Bytes offset = last_->offset + stride_;
  while (result.size() < limit && offset >= 0 && offset < file_size) {
    result.push_back({offset, std::min(last_->length, file_size - offset)});
    offset += stride_;
  }
  return result;
}

void AccessPattern::disappoint() {
  needed_ = std::min(2 * needed_, most_steps);
  steps_ = 0;
  kind_ = Kind::none;
}

}  // namespace forebay
