#include "core/engine/collective/meeting_point.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <utility>

namespace forebay {
namespace {

/// A rank that is waited for may itself wait for a message of the program that only moves while its
/// sender is inside MPI: that costs it no more than this at a time.
constexpr std::chrono::microseconds before_helping(500);

}  // namespace

struct MeetingPoint::Head {
  Bell done;                           ///< Rings once a gather; all ranks wait for it.
  std::atomic<std::uint32_t> arrived;  ///< At the gather under way.
};

Bytes MeetingPoint::region_bytes(int ranks) {
  return static_cast<Bytes>(sizeof(Head) +
                            static_cast<std::size_t>(ranks) * (sizeof(Bell) + 2 * most_bytes));
}

MeetingPoint::MeetingPoint(std::unique_ptr<SharedRegion> region, int rank, int ranks,
                           std::function<void()> keep_going)
    : region_(std::move(region)), rank_(rank), ranks_(ranks), keep_going_(std::move(keep_going)) {
  assert(static_cast<Bytes>(region_->bytes().size()) >= region_bytes(ranks));
}

MeetingPoint::Head& MeetingPoint::head() const {
  return *reinterpret_cast<Head*>(region_->bytes().data());
}

Bell& MeetingPoint::bell(int rank) const {
  return reinterpret_cast<Bell*>(region_->bytes().data() + sizeof(Head))[rank];
}

std::span<std::byte> MeetingPoint::part(int rank) const {
  const auto ranks = static_cast<std::size_t>(ranks_);
  const std::size_t place = gathers_ % 2 * ranks + static_cast<std::size_t>(rank);
  return region_->bytes().subspan(sizeof(Head) + ranks * sizeof(Bell) + place * most_bytes,
                                  most_bytes);
}

void MeetingPoint::gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  assert(mine.size() <= most_bytes);
  std::ranges::copy(mine, part(rank_).begin());
  Bell& done = head().done;
  if (head().arrived.fetch_add(1) + 1 == static_cast<std::uint32_t>(ranks_)) {
    head().arrived.store(0);  // Before anybody can begin the next one.
    done.ring();
  }
  while (done.rings.load() == gathers_) {
    done.wait(gathers_, before_helping);
    if (done.rings.load() == gathers_) keep_going_();
  }
  for (int rank = 0; rank < ranks_; ++rank) {
    std::ranges::copy(part(rank).first(mine.size()),
                      all.subspan(static_cast<std::size_t>(rank) * mine.size()).begin());
  }
  ++gathers_;
}

}  // namespace forebay
