#include "core/engine/trace/ring.hpp"

#include <cstring>

namespace forebay::trace {

bool Ring::define(TraceDefinition kind, std::uint64_t key, std::span<const std::byte> first,
                  std::span<const std::byte> second) {
  const std::size_t length = first.size() + second.size();
  const std::size_t room = (sizeof(DefinitionHeader) + length + 7) / 8 * 8;
  const std::uint32_t begin = definition_bytes_.load(std::memory_order_relaxed);
  if (room > definitions_.size() - begin) return false;
  const DefinitionHeader header{static_cast<std::uint16_t>(kind), 0,
                                static_cast<std::uint32_t>(length), key};
  std::byte* into = definitions_.data() + begin;
  std::memset(into + room - 8, 0, 8);
  std::memcpy(into, &header, sizeof header);
  if (!first.empty()) std::memcpy(into + sizeof header, first.data(), first.size());
  if (!second.empty()) {
    std::memcpy(into + sizeof header + first.size(), second.data(), second.size());
  }
  definition_bytes_.store(begin + static_cast<std::uint32_t>(room), std::memory_order_release);
  return true;
}

void Ring::reset(std::int64_t owner) {
  thread = owner;
  state = State::idle;
  spill_at = 0;
  spill_ticks = 0;
  is_spilling_ = false;
  events_ = 0;
  definition_bytes_ = 0;
  lost_ = 0;
  spilled_events_ = 0;
  spilled_definition_bytes_ = 0;
  keys_ = {};
}

}  // namespace forebay::trace
