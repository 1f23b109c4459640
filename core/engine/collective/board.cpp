#include "core/engine/collective/board.hpp"

#include <algorithm>

namespace forebay {

Result<std::shared_ptr<Board>> Board::make(Exchange& exchange, int aggregators,
                                           Bytes window_bytes) {
  const NodeMap& nodes = exchange.nodes();
  const auto my_node =
      static_cast<std::size_t>(nodes.node_of_rank[static_cast<std::size_t>(exchange.rank())]);
  const std::vector<int>& mates = nodes.ranks_of_node[my_node];
  // Regions are made collectively with one size, so take the fullest node's.
  std::size_t most_ranks = 0;
  for (const auto& ranks : nodes.ranks_of_node) most_ranks = std::max(most_ranks, ranks.size());

  constexpr Bytes page = 4096;
  const auto slots = static_cast<Bytes>(aggregators) * depth;
  const Bytes bells_bytes = static_cast<Bytes>(most_ranks * sizeof(Bell));
  const Bytes slots_bytes = slots * static_cast<Bytes>(sizeof(Slot));
  constexpr Bytes turn_bytes = 64;  // A cache line of its own.
  const Bytes head = (bells_bytes + slots_bytes + turn_bytes + page - 1) / page * page;
  const Bytes slot_bytes = header_room + (window_bytes + page - 1) / page * page;

  auto region = exchange.share(head + slots * slot_bytes);
  if (!region) return tl::unexpected(region.error());
  auto board = std::shared_ptr<Board>(new Board(aggregators, window_bytes));
  board->region_ = std::move(*region);
  // Zero-filled memory is a valid Bell, a valid Slot and a turn that nobody has: nothing to
  // initialise, nothing to race for.
  std::byte* base = board->region_->bytes().data();
  for (std::size_t place = 0; place < mates.size(); ++place) {
    Bell* bell = exchange.bell(mates[place]);
    board->bells_.push_back(bell != nullptr ? bell : reinterpret_cast<Bell*>(base) + place);
  }
  board->slots_ = reinterpret_cast<Slot*>(base + bells_bytes);
  board->writing_ = reinterpret_cast<std::atomic<std::uint32_t>*>(base + bells_bytes + slots_bytes);
  board->buffers_ = base + head;
  board->slot_bytes_ = slot_bytes;
  board->ranks_on_node_ = static_cast<int>(mates.size());
  board->local_rank_ = static_cast<int>(
      std::lower_bound(mates.begin(), mates.end(), exchange.rank()) - mates.begin());
  return board;
}

Board::Slot& Board::slot(int aggregator, std::uint64_t window) const {
  return slots_[static_cast<std::uint64_t>(aggregator) * depth + window % depth];
}

std::byte* Board::data(int aggregator, std::uint64_t window) const {
  const auto index = static_cast<std::uint64_t>(aggregator) * depth + window % depth;
  return buffers_ + index * static_cast<std::uint64_t>(slot_bytes_) + header_room;
}

void Board::fill(int aggregator, std::uint64_t window, int amount) {
  slot(aggregator, window).filled.fetch_add(static_cast<std::uint64_t>(amount));
}

void Board::release(int aggregator, std::uint64_t window, int amount) {
  slot(aggregator, window).released.fetch_add(static_cast<std::uint64_t>(amount));
}

bool Board::full(int aggregator, std::uint64_t window) const {
  const std::uint64_t uses = window / depth + 1;
  return slot(aggregator, window).filled.load() >=
         uses * static_cast<std::uint64_t>(ranks_on_node_);
}

bool Board::free(int aggregator, std::uint64_t window) const {
  const std::uint64_t uses = window / depth;
  return slot(aggregator, window).released.load() >=
         uses * static_cast<std::uint64_t>(ranks_on_node_);
}

bool Board::all_free(std::uint64_t window) const {
  for (int j = 0; j < aggregators_; ++j) {
    if (!free(j, window)) return false;
  }
  return true;
}

void Board::set_valid_until(int aggregator, std::uint64_t window, Bytes offset) {
  slot(aggregator, window).valid_until.store(offset);
}

Bytes Board::valid_until(int aggregator, std::uint64_t window) const {
  return slot(aggregator, window).valid_until.load();
}

void Board::ring_mates() const {
  for (int place = 0; place < ranks_on_node_; ++place) {
    if (place != local_rank_) bell(place).ring();
  }
}

}  // namespace forebay
