#include "core/engine/collective/hardware.hpp"

#include <hwloc.h>

#include <algorithm>

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

}  // namespace

int network_adapters() {
  static const int adapters = count_network_adapters();
  return adapters;
}

}  // namespace forebay
