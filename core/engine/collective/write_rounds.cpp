#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "core/engine/collective/rounds.hpp"
#include "core/plan/coverage.hpp"

namespace forebay {

/// This rank's work as courier: the messages of its node to one aggregator elsewhere, in order.
struct WriteRounds::Errand {
  int aggregator = 0;
  std::size_t next = 0;  ///< The round whose message goes next.
  bool sending = false;
  Exchange::Ticket ticket = 0;
  Bytes wire_bytes = 0;
  std::chrono::steady_clock::time_point sent_at = {};
  std::vector<std::byte> compressed = {};
};

/// A message on its way to this aggregator.
struct WriteRounds::Incoming {
  std::size_t round = 0;
  int node = 0;
  std::vector<std::byte> message;
  Exchange::Ticket ticket = 0;
  bool arrived = false;
};

/// A window on its way to storage.
struct WriteRounds::Storing {
  std::size_t round = 0;
  std::atomic<int> outstanding{0};
  std::mutex mutex;
  Error error;  ///< Guarded by mutex.

  void finish(const Status& status) {
    if (!status) {
      const std::scoped_lock lock(mutex);
      if (error.kind == ErrorKind::none) error = status.error();
    }
    outstanding.fetch_sub(1);
  }
};

WriteRounds::WriteRounds(const RoundsContext& context)
    : Rounds(context), in_turn_(context.pool == nullptr && context.storage.layout().one_writer) {
  for (const int j : errands()) errand_states_.push_back(Errand{.aggregator = j});
}

WriteRounds::~WriteRounds() = default;

void WriteRounds::run(const TiledTree& memory) {
  TreeCursor cursor(memory);
  const int my_node = node_of(my_rank());
  for (std::size_t round = 0; round < rounds(); ++round) {
    const std::uint64_t number = window_number(round);
    wait_until([&] { return context_.board.all_free(number); });
    move_pieces(cursor, round, Direction::gather);
    for (int j = 0; j < aggregators(); ++j) {
      context_.board.fill(j, number, 1);
      if (!context_.board.full(j, number)) continue;
      // The last one to fill tells whoever empties the slot.
      const auto& mates = ranks_of(my_node);
      const int emptier = is_local(j) ? aggregator_rank(j) : Cast::courier(mates, j);
      const auto place = std::lower_bound(mates.begin(), mates.end(), emptier) - mates.begin();
      context_.board.bell(static_cast<int>(place)).ring();
    }
    progress();
  }
  // All slots of this node are free again when the last windows were stored or sent; messages from
  // other nodes may keep this aggregator longer.
  wait_until([&] {
    if (my_domain() >= 0 && (next_collected_ < rounds() || !storing_.empty() || discarding())) {
      return false;
    }
    for (const Errand& errand : errand_states_) {
      if (errand.next < rounds()) return false;
    }
    const std::uint64_t after = window_number(rounds());
    for (std::uint64_t d = 0; d < Board::depth; ++d) {
      if (!context_.board.all_free(after + d)) return false;
    }
    return true;
  });
}

bool WriteRounds::progress() {
  bool moved = false;
  for (Errand& errand : errand_states_) moved |= progress_errand(errand);
  if (my_domain() >= 0) {
    moved |= finish_storing();
    moved |= post_receives();
    moved |= collect();
  }
  return moved;
}

bool WriteRounds::messages_pending() const {
  return !incoming_.empty() || discarding_ ||
         std::any_of(errand_states_.begin(), errand_states_.end(),
                     [](const Errand& errand) { return errand.sending; });
}

bool WriteRounds::progress_errand(Errand& errand) {
  bool moved = false;
  while (errand.next < rounds()) {
    const std::uint64_t number = window_number(errand.next);
    if (!errand.sending) {
      if (!context_.board.full(errand.aggregator, number)) break;
      const Bytes bytes = message_bytes(node_of(my_rank()), errand.aggregator, errand.next);
      if (bytes > 0) {
        const int peer = aggregator_rank(errand.aggregator);
        const auto wire = context_.codec.encode(
            peer, {context_.board.data(errand.aggregator, number), static_cast<std::size_t>(bytes)},
            errand.compressed);
        errand.wire_bytes = static_cast<Bytes>(wire.size());
        errand.sent_at = std::chrono::steady_clock::now();
        errand.ticket = context_.exchange.send(peer, errand.aggregator, wire);
        errand.sending = true;
        count_message(bytes, errand.wire_bytes);
      }
    }
    if (errand.sending) {
      if (!context_.exchange.done(errand.ticket)) break;
      errand.sending = false;
      context_.codec.delivered(aggregator_rank(errand.aggregator), errand.wire_bytes,
                               std::chrono::steady_clock::now() - errand.sent_at);
    }
    release(errand.aggregator, number);
    ++errand.next;
    moved = true;
  }
  return moved;
}

void WriteRounds::release(int aggregator, std::uint64_t number) {
  context_.board.release(aggregator, number, context_.board.ranks_on_node());
  // Mates wait for all slots of a window, so the last one to come free is worth waking them.
  if (context_.board.all_free(number + Board::depth)) context_.board.ring_mates();
}

bool WriteRounds::post_receives() {
  const int nodes = context_.exchange.nodes().nodes();
  bool moved = false;
  while (next_posted_ < rounds() && next_posted_ < next_collected_ + Board::depth) {
    for (; next_node_ < nodes; ++next_node_) {
      if (next_node_ == node_of(my_rank())) continue;
      const Bytes bytes = message_bytes(next_node_, my_domain(), next_posted_);
      if (bytes == 0) continue;
      if (!post_receive(next_node_, bytes)) return moved;
      moved = true;
    }
    next_node_ = 0;
    ++next_posted_;
    moved = true;
  }
  return moved;
}

bool WriteRounds::post_receive(int node, Bytes bytes) {
  const int courier = Cast::courier(ranks_of(node), my_domain());
  auto message = allocate(bytes);
  if (!message) {
    // Its sender waits all the same until somebody takes it.
    if (discarding()) return false;
    discarding_ = context_.exchange.receive(
        courier, my_domain(), context_.reserve.first(static_cast<std::size_t>(bytes)));
    return true;
  }
  Incoming& incoming = incoming_.emplace_back();
  incoming.round = next_posted_;
  incoming.node = node;
  incoming.message = std::move(*message);
  incoming.ticket = context_.exchange.receive(courier, my_domain(), incoming.message);
  return true;
}

bool WriteRounds::discarding() {
  if (discarding_ && context_.exchange.done(*discarding_)) discarding_.reset();
  return discarding_.has_value();
}

bool WriteRounds::collect() {
  bool moved = false;
  while (next_collected_ < next_posted_) {
    const std::uint64_t number = window_number(next_collected_);
    bool complete = context_.board.full(my_domain(), number);
    for (Incoming& incoming : incoming_) {
      if (incoming.round != next_collected_) break;
      if (Bytes received = 0;
          !incoming.arrived && context_.exchange.done(incoming.ticket, &received)) {
        incoming.arrived = true;
        if (auto status = MessageCodec::decode(incoming.message, received); !status) {
          fail(status.error());
        }
      }
      complete &= incoming.arrived;
    }
    if (!complete) break;
    {
      std::optional<Board::WritingTurn> turn;
      if (in_turn_ && !turn.emplace(context_.board)) break;
      std::byte* image = context_.board.data(my_domain(), number);
      while (!incoming_.empty() && incoming_.front().round == next_collected_) {
        move_message(incoming_.front().node, next_collected_, image,
                     incoming_.front().message.data(), Direction::gather);
        incoming_.pop_front();
      }
      store(next_collected_);
    }
    ++next_collected_;
    finish_storing();
    moved = true;
    if (in_turn_) break;  // The others' windows wait for this rank's pieces.
  }
  return moved;
}

void WriteRounds::store(std::size_t round) {
  Storing& storing = *storing_.emplace_back(std::make_unique<Storing>());
  storing.round = round;
  if (error().kind != ErrorKind::none) return;  // One failure is enough; keep the others moving.
  write_window(round, storing);
}

void WriteRounds::write_window(std::size_t round, Storing& storing) {
  std::byte* image = context_.board.data(my_domain(), window_number(round));
  std::vector<TiledPart> parts;
  for (const RankPart& part : context_.schedule.parts) {
    if (part.length > 0) parts.push_back({&part.view, part.start, part.end()});
  }
  const auto write = [this, &storing](std::byte* from, Extent extent) {
    storing.outstanding.fetch_add(1);
    // The job may still be ringing when this object is gone: it holds what outlives it.
    run_storage([&storing, from, extent, &storage = context_.storage,
                 &bell = context_.board.bell(context_.board.local_rank())] {
      storing.finish(
          storage.write_at({from, static_cast<std::size_t>(extent.length)}, extent.offset));
      bell.ring();
    });
  };
  for (const Extent& extent : window(my_domain(), round)) {
    std::byte* origin = image + context_.cast.domains.window_position(extent.offset);
    // What is read of gaps that others write meanwhile must not be put back.
    const bool by_list = context_.schedule.gaps_are_written;
    const Coverage covered = by_list
                                 ? coverage(parts, extent, std::numeric_limits<std::size_t>::max())
                                 : coverage(parts, extent);
    if (covered.covered == 0 && !covered.too_many) continue;
    const double calls = static_cast<double>(covered.extents.size());
    const double span = static_cast<double>(extent.length);
    // List writes cost a call each; read-modify-write costs the span twice and two calls.
    const bool rewrite =
        covered.too_many || calls * context_.cost.call_ns +
                                    static_cast<double>(covered.covered) * context_.cost.byte_ns >
                                2 * (context_.cost.call_ns + span * context_.cost.byte_ns);
    if (rewrite && !by_list) {
      const Status status = rewrite_with_holes(extent, origin);
      if (!status) fail(status.error());
      continue;
    }
    for (const Extent& piece : covered.extents) {
      // Several calls under way keep several servers busy.
      const Bytes step = context_.pool == nullptr ? piece.length : context_.cast.domains.unit;
      for (Bytes at = piece.offset; at < piece.end(); at += step) {
        write(origin + (at - extent.offset), {at, std::min(step, piece.end() - at)});
      }
    }
  }
}

Status WriteRounds::rewrite_with_holes(Extent extent, const std::byte* origin) {
  // What the ranks put into the image is laid over what the file holds now; only from the first to
  // the last byte that they wrote, so that the file does not grow beyond.
  Extent span;
  for (const RankPart& part : context_.schedule.parts) {
    const Bytes first = std::max(part.start, data_before(part.view, extent.offset));
    const Bytes last = std::min(part.end(), data_before(part.view, extent.end()));
    if (part.length > 0 && first < last) {
      span = hull(span, RankPart{part.view, first, last - first}.hull());
    }
  }
  auto memory = allocate(span.length);
  if (!memory) return {};  // The call has failed already.
  std::vector<std::byte>& fresh = *memory;
  const auto read = context_.storage.read_at(fresh, span.offset);
  if (!read) return tl::unexpected(read.error());
  Counters::add(context_.counters.hole_reads, 1);
  for (const RankPart& part : context_.schedule.parts) {
    const Bytes first = std::max(part.start, data_before(part.view, span.offset));
    if (part.length == 0 || first >= part.end()) continue;
    TreeCursor file(part.view);
    file.seek_data(first);
    for (Run run; file.next(part.end(), span.end(), run);) {
      for (std::int64_t i = 0; i < run.count; ++i) {
        const Bytes at = run.offset + i * run.stride;
        std::memcpy(fresh.data() + (at - span.offset), origin + (at - extent.offset),
                    static_cast<std::size_t>(run.block));
      }
      Counters::add(context_.counters.bytes_copied, run.bytes());
    }
  }
  return context_.storage.write_at(fresh, span.offset);
}

bool WriteRounds::finish_storing() {
  bool moved = false;
  for (auto storing = storing_.begin(); storing != storing_.end();) {
    if ((*storing)->outstanding.load() != 0) {
      ++storing;
      continue;
    }
    if ((*storing)->error.kind != ErrorKind::none) fail((*storing)->error);
    release(my_domain(), window_number((*storing)->round));
    storing = storing_.erase(storing);
    moved = true;
  }
  return moved;
}

}  // namespace forebay
