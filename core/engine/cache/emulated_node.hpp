#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "core/engine/cache/log_identity.hpp"

// Nodes that are emulated on one host, for tests, have names and directories of their own, so that
// one of them can be lost.

namespace forebay {

/// As LogIdentity::host has it.
inline std::string emulated_node(int number) { return fmt::format("{}:{}", this_host(), number); }

/// In the node-local path of the host.
inline std::string emulated_node_directory(int number) { return fmt::format("node-{}", number); }

/// Whether `name` is that of one of them.
inline bool names_emulated_node(std::string_view name) {
  constexpr std::string_view start = "node-";
  return name.starts_with(start) && name.size() > start.size() &&
         name.find_first_not_of("0123456789", start.size()) == name.npos;
}

/// Whether `host` is this one, or emulated on it.
inline bool on_this_host(const std::string& host) {
  return host.substr(0, host.find(':')) == this_host();
}

}  // namespace forebay
