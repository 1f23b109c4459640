#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace forebay {

/// Cores of one host, a bit for each by the kernel's number. Plain words, which can be sent.
struct CoreSet {
  std::array<std::uint64_t, 16> words{};

  int count() const;
  void add(const CoreSet& more);
};

/// The cores that the calling thread may run on, as sched_getaffinity tells them; all that a set
/// can hold on a host that has more than those.
CoreSet usable_cores();

/// Where a rank runs: its host, by a number that others do not have, and there its cores.
struct Place {
  std::int64_t host = 0;
  CoreSet cores;
};

/// Names the running kernel, by its boot or else by its host's name.
std::string running_kernel();

/// Some host has more of these ranks than cores that they may run on, all together: one that waits
/// by polling would keep the core from the one that it waits for.
bool cores_are_shared(std::span<const Place> ranks);

/// Network adapters of this node, at least 1: as many aggregators can send and receive at full
/// speed at the same time. Looks once per process (hwloc; tens of milliseconds).
int network_adapters();

}  // namespace forebay
