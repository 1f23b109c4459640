#include "core/intercept/posix/earlier_reads.hpp"

#include <algorithm>

namespace forebay::posix {
namespace {

/// Less is not worth a change: as much as is fetched ahead of one opening anyway.
constexpr Bytes least_again = 8 * MiB;
/// It is so large a part of what is read.
constexpr Bytes part_again = 8;

}  // namespace

bool EarlierReads::add(Extent read, Bytes wanted) {
  const State before = state_.load();
  if (before != State::once || wanted <= 0) return before == State::repeated;
  const std::lock_guard lock(mutex_);
  const Bytes before_it = std::min(wanted, read_.add(read));
  bytes_read_ += wanted;
  bytes_repeated_ += before_it;
  // A header that is read with each piece is no reason to keep the pieces.
  if (before_it > 0) declared_again_ += std::min(before_it, read.length - again_.add(read));
  if (declared_again_ < least_again || bytes_repeated_ * part_again < bytes_read_) return false;
  State once = State::once;
  return state_.compare_exchange_strong(once, State::repeated);
}

std::shared_ptr<EarlierReads> FilesReadEarlier::find(const FileVersion& version) const {
  const auto found =
      std::ranges::find_if(files_, [&](const auto& known) { return known.first == version; });
  return found == files_.end() ? nullptr : found->second;
}

std::shared_ptr<EarlierReads> FilesReadEarlier::of(const FileVersion& version) {
  if (auto known = find(version)) return known;
  if (files_.size() >= most) {
    const auto is_unused = [](const auto& known) { return known.second.use_count() == 1; };
    const auto unused = std::ranges::find_if(files_, is_unused);
    files_.erase(unused == files_.end() ? files_.begin() : unused);
  }
  return files_.emplace_back(version, std::make_shared<EarlierReads>()).second;
}

bool FilesReadEarlier::are_repeated(const FileVersion& version) const {
  const auto known = find(version);
  return known != nullptr && known->are_repeated();
}

}  // namespace forebay::posix
