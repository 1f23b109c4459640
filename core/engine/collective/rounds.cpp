#include "core/engine/collective/rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <optional>

namespace forebay {
namespace {

/// To be woken costs tens of microseconds on a virtual machine, to write a window into the page
/// cache two hundred: who waits for a mate's window should not fall asleep over it.
constexpr std::chrono::microseconds longer_than_a_window(500);

/// Where nothing rings for messages, somebody who waits for one looks for it often. Where something
/// does, it does so for their beginning and end: in between MPI may need this rank now and then.
constexpr std::chrono::microseconds between_looks_unrung(50);
constexpr std::chrono::microseconds between_looks_rung(100);
/// For all else the bell rings, and the limit is only there to survive a mate that was killed
/// between a change and its ring.
constexpr std::chrono::milliseconds longest_sleep(100);

}  // namespace

Rounds::Rounds(const RoundsContext& context) : context_(context) {
  const int my_node = node_of(my_rank());
  for (int j = 0; j < aggregators(); ++j) {
    if (aggregator_rank(j) == my_rank()) my_domain_ = j;
    if (!is_local(j) && Cast::courier(ranks_of(my_node), j) == my_rank()) errands_.push_back(j);
  }
  // Looking again costs nothing where every rank has a core of its own, and takes the core from the
  // one we wait for where it has not.
  if (!context_.exchange.cores_are_shared()) patience_ = longer_than_a_window;
  const bool rung = context_.exchange.bell(my_rank()) != nullptr;
  between_looks_ = rung ? between_looks_rung : between_looks_unrung;
}

std::vector<Extent> Rounds::window(int aggregator, std::size_t round) const {
  return context_.cast.domains.window_extents(aggregator, context_.schedule.rounds[round]);
}

Bytes Rounds::bytes_of(int rank, int aggregator, std::size_t round, Bytes limit) const {
  const RankPart& part = context_.schedule.parts[static_cast<std::size_t>(rank)];
  Bytes bytes = 0;
  // Of a window of many units, a rank's part mostly meets few.
  const Extent hull = context_.schedule.hulls[static_cast<std::size_t>(rank)];
  for (const Extent& extent : window(aggregator, round)) {
    if (intersect(extent, hull).empty()) continue;
    bytes += part.bytes_in({extent.offset, std::min(extent.end(), limit) - extent.offset});
  }
  return bytes;
}

Bytes Rounds::bytes_of_node(int node, int aggregator, std::size_t round, Bytes limit) const {
  Bytes bytes = 0;
  for (const int rank : ranks_of(node)) bytes += bytes_of(rank, aggregator, round, limit);
  return bytes;
}

bool Rounds::message_is_image(int node, int aggregator, std::size_t round) const {
  return bytes_of_node(node, aggregator, round) > context_.cast.domains.window_bytes();
}

Bytes Rounds::message_bytes(int node, int aggregator, std::size_t round, Bytes limit) const {
  return message_is_image(node, aggregator, round) ? context_.cast.domains.window_bytes()
                                                   : bytes_of_node(node, aggregator, round, limit);
}

void Rounds::move_pieces(TreeCursor& memory, std::size_t round, Direction direction) {
  const FileDomains& domains = context_.cast.domains;
  const RankPart& part = my_part();
  if (part.length == 0) return;
  const Extent range = domains.round_extent(context_.schedule.rounds[round]);
  const std::uint64_t number = window_number(round);
  const Bytes first = std::max(part.start, data_before(part.view, range.offset));
  if (first >= part.end()) return;

  const ScopedNanoseconds timer(context_.counters.exchange_ns);
  TreeCursor file(part.view);
  file.seek_data(first);
  memory.seek_data(first - part.start);
  // Where this rank's next bytes lie in the message to or from each aggregator elsewhere.
  std::vector<std::byte*> places(static_cast<std::size_t>(aggregators()), nullptr);
  // Whose slots hold images: those here, and those elsewhere whose message is one.
  std::vector<std::optional<bool>> images(static_cast<std::size_t>(aggregators()));
  while (file.data_position() < part.end() && file.offset() < range.end()) {
    const int j = domains.aggregator_of(file.offset());
    // With one aggregator the window is one piece of the file: no need to stop at its units.
    const Bytes begin =
        aggregators() == 1 ? range.offset : file.offset() / domains.unit * domains.unit;
    const Bytes end = aggregators() == 1 ? range.end() : begin + domains.unit;
    const Bytes valid =
        direction == Direction::gather ? no_end : context_.board.valid_until(j, number);
    const Bytes limit = std::min(end, valid);
    const Bytes before = file.data_position();
    std::byte* slot = context_.board.data(j, number);
    std::optional<bool>& in_image = images[static_cast<std::size_t>(j)];
    if (!in_image) in_image = is_local(j) || message_is_image(node_of(my_rank()), j, round);
    if (*in_image) {
      std::byte* image = slot + domains.window_position(begin);
      for (Run run; file.next(part.end(), limit, run);) {
        copy_run(memory, run, image, begin, direction);
      }
    } else {
      std::byte*& place = places[static_cast<std::size_t>(j)];
      if (place == nullptr) {
        place = slot;
        for (const int mate : ranks_of(node_of(my_rank()))) {
          if (mate == my_rank()) break;
          place += bytes_of(mate, j, round, valid);
        }
      }
      const Bytes here = std::clamp(data_before(part.view, limit), before, part.end()) - before;
      copy_contiguous(memory, place, here, direction);
      place += here;
      file.seek_data(before + here);
    }
    Counters::add(context_.counters.bytes_copied, file.data_position() - before);
    if (valid < end) break;  // The file ends here; nothing lies beyond.
  }
}

void Rounds::move_message(int node, std::size_t round, std::byte* image, std::byte* message,
                          Direction direction, Bytes limit) {
  const FileDomains& domains = context_.cast.domains;
  const ScopedNanoseconds timer(context_.counters.exchange_ns);
  if (message_is_image(node, my_domain_, round)) {
    move_image(node, round, image, message, direction);
    return;
  }
  const TiledTree bytes{StridedTree::contiguous(1), reinterpret_cast<std::intptr_t>(message), 1};
  TreeCursor memory(bytes);
  for (const int rank : ranks_of(node)) {
    const RankPart& part = context_.schedule.parts[static_cast<std::size_t>(rank)];
    if (part.length == 0) continue;
    TreeCursor file(part.view);
    for (const Extent& extent : window(my_domain_, round)) {
      const Bytes first = std::max(part.start, data_before(part.view, extent.offset));
      if (first >= part.end()) break;
      file.seek_data(first);
      std::byte* origin = image + domains.window_position(extent.offset);
      for (Run run; file.next(part.end(), std::min(extent.end(), limit), run);) {
        copy_run(memory, run, origin, extent.offset, direction);
      }
    }
  }
  Counters::add(context_.counters.bytes_copied, memory.data_position());
}

void Rounds::move_image(int node, std::size_t round, std::byte* image, std::byte* message,
                        Direction direction) {
  const FileDomains& domains = context_.cast.domains;
  if (direction == Direction::scatter) {
    std::memcpy(message, image, static_cast<std::size_t>(domains.window_bytes()));
    Counters::add(context_.counters.bytes_copied, domains.window_bytes());
    return;
  }
  // Only what the node's ranks wrote: the rest of the window may hold what others wrote.
  for (const int rank : ranks_of(node)) {
    const RankPart& part = context_.schedule.parts[static_cast<std::size_t>(rank)];
    if (part.length == 0) continue;
    TreeCursor file(part.view);
    for (const Extent& extent : window(my_domain_, round)) {
      const Bytes first = std::max(part.start, data_before(part.view, extent.offset));
      if (first >= part.end()) break;
      file.seek_data(first);
      const Bytes begin = domains.window_position(extent.offset);
      for (Run run; file.next(part.end(), extent.end(), run);) {
        for (std::int64_t i = 0; i < run.count; ++i) {
          const Bytes at = begin + run.offset + i * run.stride - extent.offset;
          std::memcpy(image + at, message + at, static_cast<std::size_t>(run.block));
        }
        Counters::add(context_.counters.bytes_copied, run.bytes());
      }
    }
  }
}

void Rounds::fail(const Error& error) {
  if (error_.kind == ErrorKind::none) error_ = error;
}

std::optional<std::vector<std::byte>> Rounds::allocate(Bytes bytes) {
  try {
    return std::vector<std::byte>(static_cast<std::size_t>(bytes));
  } catch (const std::bad_alloc&) {
    fail({ErrorKind::no_memory, 0, fmt::format("{} bytes for a collective call", bytes)});
    return std::nullopt;
  }
}

void Rounds::count_message(Bytes plain_bytes, Bytes wire_bytes) {
  Counters::add(context_.counters.messages, 1);
  Counters::add(context_.counters.message_bytes, wire_bytes);
  Counters::add(context_.counters.message_bytes_raw, plain_bytes);
}

void Rounds::run_storage(std::function<void()> job) {
  if (context_.pool == nullptr) {
    job();
    return;
  }
  context_.pool->submit(std::move(job));
}

void Rounds::sleep(std::uint32_t seen) {
  const ScopedNanoseconds timer(context_.counters.waiting_ns);
  Bell& bell = context_.board.bell(context_.board.local_rank());
  bell.wait(seen, messages_pending() ? between_looks_ : longest_sleep);
}

}  // namespace forebay
