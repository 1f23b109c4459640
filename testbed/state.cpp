#include "testbed/state.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "testbed/file_descriptor.hpp"

namespace forebay::testbed {
namespace {

constexpr int state_version = 1;

double seconds(Time time) { return std::chrono::duration<double>(time).count(); }

/// JSON text is UTF-8, file names are bytes: what is not ASCII is passed on as it is.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(result), "\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string to_json(const ServerCounters& server) {
  return fmt::format(
      R"({{"read_requests": {}, "write_requests": {}, "read_bytes": {}, "write_bytes": {}, )"
      R"("lock_conflicts": {}, "busy_s": {}, "queue": {}, "queue_max": {}}})",
      server.read_requests, server.write_requests, server.read_bytes, server.write_bytes,
      server.lock_conflicts, seconds(server.busy), server.queue, server.queue_max);
}

}  // namespace

std::string to_json(const State& state) {
  std::string result = fmt::format(
      "{{\n"
      "  \"version\": {},\n"
      "  \"running\": {},\n"
      "  \"pid\": {},\n"
      "  \"mount\": {},\n"
      "  \"backing\": {},\n"
      "  \"parameters\": {{\"servers\": {}, \"bandwidth_bytes_per_s\": {}, \"latency_s\": {}, "
      "\"stripe_bytes\": {}, \"slots\": {}, \"lock_cost_s\": {}}},\n"
      "  \"uptime_s\": {},\n"
      "  \"servers\": [",
      state_version, state.running, state.pid, quoted(state.mount), quoted(state.backing),
      state.parameters.servers, state.parameters.server.bandwidth_bytes_per_s,
      seconds(state.parameters.server.latency), state.parameters.stripe_size,
      state.parameters.server.slots, seconds(state.parameters.lock_cost), state.uptime_s);
  const char* separator = "\n    ";
  for (const ServerCounters& server : state.servers) {
    result += separator + to_json(server);
    separator = ",\n    ";
  }
  return result + "\n  ]\n}\n";
}

Status replace_file(const std::string& path, const std::string& content) {
  const std::string temporary = path + ".new";
  {
    const FileDescriptor file(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file.valid()) return tl::unexpected(error_from_errno(errno, "create " + temporary));
    std::string_view rest = content;
    while (!rest.empty()) {
      const ssize_t written = ::write(file.get(), rest.data(), rest.size());
      if (written < 0) return tl::unexpected(error_from_errno(errno, "write " + temporary));
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    return tl::unexpected(error_from_errno(errno, "rename " + temporary + " to " + path));
  }
  return {};
}

}  // namespace forebay::testbed
