#pragma once

namespace forebay {

/// Network adapters of this node, at least 1: as many aggregators can send and receive at full
/// speed at the same time. Looks once per process (hwloc; tens of milliseconds).
int network_adapters();

}  // namespace forebay
