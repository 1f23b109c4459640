#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include "core/engine/collective/read_message.hpp"
#include "core/engine/collective/rounds.hpp"
#include "core/plan/coverage.hpp"

namespace forebay {
namespace {

static_assert(read_header_bytes <= Board::header_room);

/// Requested pieces joined where reading the gap costs less than another call.
std::vector<Extent> join_cheap_gaps(const std::vector<Extent>& pieces, const StorageCost& cost) {
  std::vector<Extent> joined;
  for (const Extent& piece : pieces) {
    const Bytes gap = joined.empty() ? 0 : piece.offset - joined.back().end();
    if (!joined.empty() && static_cast<double>(gap) * cost.byte_ns <= cost.call_ns) {
      joined.back().length = piece.end() - joined.back().offset;
    } else {
      joined.push_back(piece);
    }
  }
  return joined;
}

}  // namespace

/// This rank's work as courier: the messages from one aggregator elsewhere to its node, in order.
struct ReadRounds::Errand {
  int aggregator = 0;
  std::size_t next = 0;  ///< The round whose message comes next.
  bool receiving = false;
  Exchange::Ticket ticket = 0;
};

/// A window on its way from storage.
struct ReadRounds::Fetching {
  std::size_t round = 0;
  std::atomic<int> outstanding{0};
  std::mutex mutex;
  Error error;                 ///< Guarded by mutex.
  Bytes valid_until = no_end;  ///< Guarded by mutex.

  void finish(const Result<Bytes>& got, Extent wanted) {
    {
      const std::scoped_lock lock(mutex);
      if (!got) {
        if (error.kind == ErrorKind::none) error = got.error();
      } else if (*got < wanted.length) {
        valid_until = std::min(valid_until, wanted.offset + *got);
      }
    }
    outstanding.fetch_sub(1);
  }
};

/// A message on its way to a node of readers.
struct ReadRounds::Outgoing {
  std::vector<std::byte> message;
  int peer = 0;
  std::chrono::steady_clock::time_point sent_at;
  Exchange::Ticket ticket = 0;
};

ReadRounds::ReadRounds(const RoundsContext& context) : Rounds(context) {
  for (const int j : errands()) errand_states_.push_back(Errand{.aggregator = j});
}

ReadRounds::~ReadRounds() = default;

Bytes ReadRounds::run(const TiledTree& memory) {
  TreeCursor cursor(memory);
  const Direction direction = scatter_of(my_part().length);
  Bytes end_of_file = no_end;
  for (std::size_t round = 0; round < rounds(); ++round) {
    const std::uint64_t number = window_number(round);
    wait_until([&] {
      for (int j = 0; j < aggregators(); ++j) {
        if (!context_.board.full(j, number)) return false;
      }
      return true;
    });
    for (int j = 0; j < aggregators(); ++j) {
      end_of_file = std::min(end_of_file, context_.board.valid_until(j, number));
    }
    move_pieces(cursor, round, direction);
    for (int j = 0; j < aggregators(); ++j) context_.board.release(j, number, 1);
    context_.board.ring_mates();
    progress();
  }
  wait_until([&] {
    if (my_domain() >= 0 && (next_issued_ < rounds() || !fetching_.empty())) return false;
    if (!outgoing_.empty()) return false;
    return std::all_of(errand_states_.begin(), errand_states_.end(),
                       [&](const Errand& errand) { return errand.next >= rounds(); });
  });
  return end_of_file;
}

bool ReadRounds::progress() {
  bool moved = false;
  for (Errand& errand : errand_states_) moved |= progress_errand(errand);
  if (my_domain() >= 0) {
    moved |= finish_sends();
    moved |= finish_fetching();
    moved |= issue();
  }
  return moved;
}

bool ReadRounds::messages_pending() const {
  return !outgoing_.empty() || std::any_of(errand_states_.begin(), errand_states_.end(),
                                           [](const Errand& errand) { return errand.receiving; });
}

bool ReadRounds::progress_errand(Errand& errand) {
  bool moved = false;
  while (errand.next < rounds()) {
    const std::uint64_t number = window_number(errand.next);
    std::byte* slot = context_.board.data(errand.aggregator, number);
    Bytes valid_until = no_end;
    if (!errand.receiving) {
      if (!context_.board.free(errand.aggregator, number)) break;
      const Bytes bytes = message_bytes(node_of(my_rank()), errand.aggregator, errand.next);
      if (bytes > 0) {
        // Into the slot itself, header first.
        errand.ticket = context_.exchange.receive(
            aggregator_rank(errand.aggregator), errand.aggregator,
            {slot - read_header_bytes, static_cast<std::size_t>(read_header_bytes + bytes)});
        errand.receiving = true;
      }
    }
    if (errand.receiving) {
      Bytes received = 0;
      if (!context_.exchange.done(errand.ticket, &received)) break;
      errand.receiving = false;
      valid_until =
          accept(slot, received, message_bytes(node_of(my_rank()), errand.aggregator, errand.next));
    }
    context_.board.set_valid_until(errand.aggregator, number, valid_until);
    context_.board.fill(errand.aggregator, number, context_.board.ranks_on_node());
    context_.board.ring_mates();
    ++errand.next;
    moved = true;
  }
  return moved;
}

Bytes ReadRounds::accept(std::byte* slot, Bytes received, Bytes room) {
  const auto header =
      decode_read_header({slot - read_header_bytes, static_cast<std::size_t>(received)}, room);
  Status status;
  if (header) {
    const std::span<std::byte> pieces(slot, static_cast<std::size_t>(header->plain_bytes));
    status = MessageCodec::decode(pieces, received - read_header_bytes);
    if (status) return header->valid_until;
  } else {
    status = tl::unexpected(header.error());
  }
  fail(status.error());
  return 0;
}

bool ReadRounds::issue() {
  bool moved = false;
  // Readers elsewhere may be slower than those here: no more messages in memory than windows.
  const std::size_t most_outgoing =
      Board::depth * static_cast<std::size_t>(context_.exchange.nodes().nodes());
  while (next_issued_ < rounds() && context_.board.free(my_domain(), window_number(next_issued_)) &&
         fetching_.size() < Board::depth && outgoing_.size() < most_outgoing) {
    Fetching& fetching = *fetching_.emplace_back(std::make_unique<Fetching>());
    fetching.round = next_issued_++;
    if (error().kind == ErrorKind::none) fetch(fetching.round, fetching);
    moved = true;
    finish_fetching();
  }
  return moved;
}

void ReadRounds::fetch(std::size_t round, Fetching& fetching) {
  std::byte* image = context_.board.data(my_domain(), window_number(round));
  std::vector<TiledPart> parts;
  for (const RankPart& part : context_.schedule.parts) {
    if (part.length > 0) parts.push_back({&part.view, part.start, part.end()});
  }
  for (const Extent& extent : window(my_domain(), round)) {
    std::byte* origin = image + context_.cast.domains.window_position(extent.offset);
    const Coverage covered = coverage(parts, extent);
    const std::vector<Extent> pieces = covered.too_many
                                           ? std::vector<Extent>{extent}
                                           : join_cheap_gaps(covered.extents, context_.cost);
    for (const Extent& piece : pieces) {
      const Bytes step = context_.pool == nullptr ? piece.length : context_.cast.domains.unit;
      for (Bytes at = piece.offset; at < piece.end(); at += step) {
        const Extent wanted{at, std::min(step, piece.end() - at)};
        std::byte* to = origin + (at - extent.offset);
        fetching.outstanding.fetch_add(1);
        // The job may still be ringing when this object is gone: it holds what outlives it.
        run_storage([&fetching, to, wanted, &storage = context_.storage,
                     &bell = context_.board.bell(context_.board.local_rank())] {
          fetching.finish(
              storage.read_at({to, static_cast<std::size_t>(wanted.length)}, wanted.offset),
              wanted);
          bell.ring();
        });
      }
    }
  }
}

bool ReadRounds::finish_fetching() {
  bool moved = false;
  // In order: messages to a node must leave in the order of the rounds.
  while (!fetching_.empty() && fetching_.front()->outstanding.load() == 0) {
    const Fetching& fetching = *fetching_.front();
    // After a failure nothing was read: nobody may take what the slot held before for data.
    Bytes valid_until = fetching.valid_until;
    if (fetching.error.kind != ErrorKind::none) fail(fetching.error);
    if (error().kind != ErrorKind::none) valid_until = 0;
    const std::uint64_t number = window_number(fetching.round);
    std::byte* image = context_.board.data(my_domain(), number);
    const NodeMap& nodes = context_.exchange.nodes();
    for (int node = 0; node < nodes.nodes(); ++node) {
      if (node == node_of(my_rank())) continue;
      if (bytes_of_node(node, my_domain(), fetching.round) == 0) continue;
      Bytes bytes = message_bytes(node, my_domain(), fetching.round, valid_until);
      auto message = allocate(read_header_bytes + bytes);
      if (!message) {
        valid_until = bytes = 0;
        message.emplace(static_cast<std::size_t>(read_header_bytes));
      }
      Outgoing& outgoing = outgoing_.emplace_back();
      outgoing.message = std::move(*message);
      encode_read_header({valid_until, bytes}, outgoing.message);
      if (bytes > 0) {
        move_message(node, fetching.round, image, outgoing.message.data() + read_header_bytes,
                     Direction::scatter, valid_until);
      }
      send(outgoing, Cast::courier(ranks_of(node), my_domain()));
    }
    context_.board.set_valid_until(my_domain(), number, valid_until);
    context_.board.fill(my_domain(), number, context_.board.ranks_on_node());
    context_.board.ring_mates();
    fetching_.pop_front();
    moved = true;
  }
  return moved;
}

void ReadRounds::send(Outgoing& outgoing, int peer) {
  const std::span<const std::byte> pieces(outgoing.message.begin() + read_header_bytes,
                                          outgoing.message.end());
  std::vector<std::byte> compressed;
  const auto wire = context_.codec.encode(peer, pieces, compressed);
  count_message(static_cast<Bytes>(pieces.size()), static_cast<Bytes>(wire.size()));
  if (wire.size() < pieces.size()) {
    std::copy(wire.begin(), wire.end(), outgoing.message.begin() + read_header_bytes);
    outgoing.message.resize(static_cast<std::size_t>(read_header_bytes) + wire.size());
  }
  outgoing.peer = peer;
  outgoing.sent_at = std::chrono::steady_clock::now();
  outgoing.ticket = context_.exchange.send(peer, my_domain(), outgoing.message);
}

bool ReadRounds::finish_sends() {
  const std::size_t before = outgoing_.size();
  while (!outgoing_.empty() && context_.exchange.done(outgoing_.front().ticket)) {
    const Outgoing& outgoing = outgoing_.front();
    context_.codec.delivered(outgoing.peer, static_cast<Bytes>(outgoing.message.size()),
                             std::chrono::steady_clock::now() - outgoing.sent_at);
    outgoing_.pop_front();
  }
  return outgoing_.size() != before;
}

}  // namespace forebay
