#include "proxies/workload/dimensions.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>

#include "proxies/workload/command_line.hpp"

namespace workload {

std::string to_string(const Dimensions& dimensions) {
  std::string text;
  for (const int size : dimensions) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

std::int64_t volume(const Dimensions& dimensions) {
  return std::accumulate(dimensions.begin(), dimensions.end(), std::int64_t{1},
                         std::multiplies<>());
}

void settle_global(Dimensions& global, const Dimensions& grid, const Dimensions& local, int ranks) {
  if (volume(grid) != ranks) {
    throw Refused("--grid", to_string(grid) + " has " + std::to_string(volume(grid)) +
                                " processes, but there are " + std::to_string(ranks) + " ranks");
  }
  if (global.empty()) {
    std::ranges::transform(local, grid, std::back_inserter(global), std::multiplies<>());
  }
  for (std::size_t d = 0; d < grid.size(); ++d) {
    if (global[d] < grid[d]) {
      throw Refused("--global",
                    to_string(global) + " is too small for the grid " + to_string(grid));
    }
  }
}

}  // namespace workload
