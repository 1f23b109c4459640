#include "core/engine/collective/hardware.hpp"

#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cstddef>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>

#include "core/engine/cache/log_identity.hpp"

namespace forebay {
namespace {

int count_network_adapters() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return 1;
  // Looking for accelerators would start their drivers in the program's process.
  for (const char* component : {"opencl", "cuda", "nvml", "rsmi", "levelzero", "gl"}) {
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  }
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  int adapters = 0;
  if (hwloc_topology_load(topology) == 0) {
    // An OpenFabrics device and its network interface are one adapter: count by PCI device.
    hwloc_obj_t last_parent = nullptr;
    for (hwloc_obj_t device = nullptr;
         (device = hwloc_get_next_osdev(topology, device)) != nullptr;) {
      const auto type = device->attr->osdev.type;
      if (type != HWLOC_OBJ_OSDEV_NETWORK && type != HWLOC_OBJ_OSDEV_OPENFABRICS) continue;
      if (device->parent != last_parent) ++adapters;
      last_parent = device->parent;
    }
  }
  hwloc_topology_destroy(topology);
  return std::max(1, adapters);
}

/// Ranks of one host.
struct Tenants {
  int ranks = 0;
  CoreSet cores;
};

}  // namespace

int CoreSet::count() const {
  return std::transform_reduce(words.begin(), words.end(), 0, std::plus<>(),
                               [](std::uint64_t word) { return std::popcount(word); });
}

void CoreSet::add(const CoreSet& more) {
  for (std::size_t i = 0; i < words.size(); ++i) words[i] |= more.words[i];
}

CoreSet usable_cores() {
  CoreSet cores;
  static_assert(sizeof cores.words * CHAR_BIT == CPU_SETSIZE);
  cpu_set_t mask;
  // It refuses a mask that is too small for the host.
  const bool known = ::sched_getaffinity(0, sizeof mask, &mask) == 0;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!known || CPU_ISSET(core, &mask)) cores.words[core / 64] |= std::uint64_t{1} << core % 64;
  }
  return cores;
}

bool cores_are_shared(std::span<const Place> ranks) {
  std::map<std::int64_t, Tenants> hosts;
  for (const Place& rank : ranks) {
    Tenants& tenants = hosts[rank.host];
    ++tenants.ranks;
    tenants.cores.add(rank.cores);
  }
  return std::ranges::any_of(
      hosts, [](const auto& host) { return host.second.ranks > host.second.cores.count(); });
}

std::string running_kernel() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot.empty() ? this_host() : boot;
}

int network_adapters() {
  static const int adapters = count_network_adapters();
  return adapters;
}

}  // namespace forebay
