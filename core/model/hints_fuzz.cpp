// Feeds arbitrary text to FOREBAY_HINTS: whatever is accepted must come back unchanged.

#include <cassert>
#include <cstdint>

#include "core/model/hints.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto pairs = forebay::parse_hint_list({reinterpret_cast<const char*>(data), size});
  if (!pairs) return 0;
  forebay::Hints hints;
  for (const auto& problem : apply_hints(hints, *pairs, "fuzz"))
    assert(!to_string(problem).empty());
  const auto in_force = to_pairs(hints);
  forebay::Hints again;
  assert(apply_hints(again, in_force, "fuzz").empty());
  assert(to_pairs(again) == in_force);
  return 0;
}
