#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cstdint>
#include <type_traits>

#include "core/model/extent.hpp"
#include "core/model/read_intent.hpp"
#include "core/plan/fetch_plan.hpp"

namespace forebay {

/// Of what a plan fetches, in what requests: windows of others do not meet, but by a chance of
/// 2^-64. `group`: of those who read by the same plan, too, but too far apart from each other.
inline std::uint64_t fingerprint(const FetchPlan& plan, Bytes block, Bytes bytes, GapChoice gap,
                                 int group) {
  static_assert(std::has_unique_object_representations_v<Extent>);
  const auto& extents = plan.extents();
  const std::array<std::uint64_t, 5> words = {
      XXH3_64bits(extents.data(), extents.size() * sizeof(Extent)),
      static_cast<std::uint64_t>(block), static_cast<std::uint64_t>(bytes),
      static_cast<std::uint64_t>(gap.bytes.value_or(-1)), static_cast<std::uint64_t>(group)};
  return XXH3_64bits(words.data(), sizeof words);
}

}  // namespace forebay
