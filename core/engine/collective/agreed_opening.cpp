#include "core/engine/collective/agreed_opening.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "core/engine/collective/hardware.hpp"
#include "core/plan/file_domains.hpp"

namespace forebay {
namespace {

/// Each call under way has a thread.
constexpr int most_io_depth = 256;

std::int64_t pack(const CostWord& cost) {
  std::uint32_t packed = 0;
  std::memcpy(&packed, cost.data(), sizeof packed);
  return packed;
}

CostWord unpack_cost(std::int64_t packed) {
  const auto bytes = static_cast<std::uint32_t>(packed);
  CostWord cost;
  std::memcpy(cost.data(), &bytes, sizeof bytes);
  return cost;
}

/// Every member is below 2^16.
std::int64_t pack(const std::optional<CacheRedundancy>& redundancy) {
  return redundancy ? std::int64_t{redundancy->members} << 16 | redundancy->parities : -1;
}

std::optional<CacheRedundancy> unpack_redundancy(std::int64_t packed) {
  if (packed < 0) return std::nullopt;
  return CacheRedundancy{static_cast<int>(packed >> 16), static_cast<int>(packed & 0xffff)};
}

/// What logs are made by, once for all.
template <typename AnyHints>
auto cache_hints(AnyHints& hints) {
  return std::tie(hints.cache, hints.cache_path, hints.cache_flush, hints.cache_capacity,
                  hints.cache_sync_to_node, hints.cache_discard, hints.cache_threads,
                  hints.cache_compress, hints.cache_redundancy);
}

}  // namespace

Agreed agree_on(Exchange& exchange, const StripeLayout& layout, const Hints& hints,
                const CostWord& start) {
  Hints agreed = hints;
  if (agreed.io_depth) agreed.io_depth = std::min(*agreed.io_depth, most_io_depth);
  const auto optional = [](const auto& value) {
    return value ? static_cast<std::int64_t>(*value) : std::int64_t{-1};
  };
  std::array<std::int64_t, 17> word{layout.stripe_size,
                                    layout.servers,
                                    layout.lock_conflicts,
                                    optional(hints.aggregators),
                                    optional(hints.aggregators_per_node),
                                    optional(hints.buffer_size),
                                    optional(hints.stripe_size),
                                    optional(hints.stripe_count),
                                    static_cast<std::int64_t>(hints.collective_write),
                                    static_cast<std::int64_t>(hints.collective_read),
                                    static_cast<std::int64_t>(hints.compress),
                                    hints.no_independent,
                                    pack(start),
                                    1,
                                    optional(hints.cache),
                                    pack(hints.cache_redundancy),
                                    optional(hints.delayed)};
  if (exchange.rank() != 0) {
    word.fill(0);
  } else if (adapters_matter(layout, exchange.nodes().nodes(), hints)) {
    word[13] = network_adapters();
  }
  exchange.all_reduce(word, Reduce::sum);
  const auto given = [&word](std::size_t i, auto& field) {
    using Value = typename std::decay_t<decltype(field)>::value_type;
    field.reset();
    if (word[i] >= 0) field = static_cast<Value>(word[i]);
  };
  given(3, agreed.aggregators);
  given(4, agreed.aggregators_per_node);
  given(5, agreed.buffer_size);
  given(6, agreed.stripe_size);
  given(7, agreed.stripe_count);
  given(14, agreed.cache);
  agreed.cache_redundancy = unpack_redundancy(word[15]);
  given(16, agreed.delayed);
  agreed.collective_write = static_cast<Toggle>(word[8]);
  agreed.collective_read = static_cast<Toggle>(word[9]);
  agreed.compress = static_cast<Toggle>(word[10]);
  agreed.no_independent = word[11] != 0;
  return {{word[0], static_cast<int>(word[1]), word[2] != 0},
          agreed,
          unpack_cost(word[12]),
          static_cast<int>(word[13])};
}

bool keep_cache_hints(Hints& hints, const Hints& opened, bool cached) {
  bool same = cache_hints(hints) == cache_hints(opened);
  // Who never asked for a cache, and does not now, misses nothing.
  if (!hints.cache.value_or(false) && !opened.cache.value_or(false)) same = true;
  cache_hints(hints) = cache_hints(opened);
  if (!cached) return same;
  // Nothing is sieved then: it is the size of what is flushed at a time.
  same = same && hints.independent_write_buffer == opened.independent_write_buffer;
  hints.independent_write_buffer = opened.independent_write_buffer;
  return same;
}

}  // namespace forebay
