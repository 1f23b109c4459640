#include "testbed/state.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "testbed/file_descriptor.hpp"

namespace forebay::testbed {
namespace {

using Json = nlohmann::ordered_json;

constexpr int state_version = 1;

double seconds(Time time) { return std::chrono::duration<double>(time).count(); }

Json described(const ServerCounters& server) {
  return {{"read_requests", server.read_requests},
          {"write_requests", server.write_requests},
          {"read_bytes", server.read_bytes},
          {"write_bytes", server.write_bytes},
          {"lock_conflicts", server.lock_conflicts},
          {"busy_s", seconds(server.busy)},
          {"queue", server.queue},
          {"queue_max", server.queue_max}};
}

Json described(const State& state) {
  const ClusterParameters& cluster = state.parameters;
  const std::optional<Bytes>& read_ahead = state.read_ahead;
  return {{"servers", cluster.servers},
          {"bandwidth_bytes_per_s", cluster.server.bandwidth_bytes_per_s},
          {"latency_s", seconds(cluster.server.latency)},
          {"stripe_bytes", cluster.stripe_size},
          {"slots", cluster.server.slots},
          {"lock_cost_s", seconds(cluster.lock_cost)},
          {"object_cost_s", seconds(cluster.object_cost)},
          {"page_cache", state.page_cache},
          {"read_ahead_bytes", read_ahead ? Json(*read_ahead) : Json()}};
}

}  // namespace

std::string to_json(const State& state) {
  Json json = {{"version", state_version},   {"running", state.running},
               {"pid", state.pid},           {"mount", state.mount},
               {"backing", state.backing},   {"parameters", described(state)},
               {"uptime_s", state.uptime_s}, {"servers", Json::array()}};
  for (const ServerCounters& server : state.servers) json["servers"].push_back(described(server));
  // File names are bytes; JSON text is UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status replace_file(const std::string& path, const std::string& content) {
  const std::string temporary = path + ".new";
  {
    const FileDescriptor file(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file.valid()) return fail(errno, "create " + temporary);
    std::string_view rest = content;
    while (!rest.empty()) {
      const ssize_t written = ::write(file.get(), rest.data(), rest.size());
      if (written < 0) return fail(errno, "write " + temporary);
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    return fail(errno, "rename " + temporary + " to " + path);
  }
  return {};
}

}  // namespace forebay::testbed
