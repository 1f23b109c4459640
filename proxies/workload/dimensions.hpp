// Sizes of an array or a process grid, one for each dimension.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace workload {

using Dimensions = std::vector<int>;

/// `2x1x1`
std::string to_string(const Dimensions& dimensions);

/// The product of all sizes.
std::int64_t volume(const Dimensions& dimensions);

/// The sizes of the array over a process grid: `global` as given or, where it is empty, `local` for
/// each process. Throws Refused unless the grid has as many processes as there are ranks, and the
/// array something for each of them.
void settle_global(Dimensions& global, const Dimensions& grid, const Dimensions& local, int ranks);

}  // namespace workload
