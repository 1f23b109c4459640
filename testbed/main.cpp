// forebay-testbedfs: mounts an emulated parallel file system. See README.md for what it models.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "testbed/mounting.hpp"
#include "testbed/quantity.hpp"

namespace forebay::testbed {
namespace {

constexpr int max_servers = 4096;

Result<Bytes> parse_read_ahead(std::string_view text) {
  Result<Bytes> size = parse_bytes(text);
  if (size && *size % KiB != 0) {
    return tl::unexpected(Error{ErrorKind::invalid_argument, 0, "not a multiple of 1KiB"});
  }
  return size;
}

Result<Bytes> parse_some_bytes(std::string_view text) {
  Result<Bytes> size = parse_bytes(text);
  if (size && *size < 1) {
    return tl::unexpected(Error{ErrorKind::invalid_argument, 0, "it has at least one byte"});
  }
  return size;
}

/// What `text` says; what is wrong with it is told by CLI11.
template <typename T>
T parsed(const std::string& name, std::string_view text, Result<T> (*parse)(std::string_view)) {
  const Result<T> result = parse(text);
  if (!result) throw CLI::ValidationError(name, result.error().what);
  return *result;
}

/// An option whose text `parse` turns into `value`.
template <typename T>
CLI::Option* add_quantity(CLI::App& app, const std::string& name, T& value,
                          Result<T> (*parse)(std::string_view), const std::string& help,
                          const std::string& default_text) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, parse, name](const std::string& text) { value = parsed(name, text, parse); },
          help)
      ->default_str(default_text)
      ->force_callback();
}

int run(int argc, char** argv) {
  FileSystemParameters parameters;
  ClusterParameters& cluster = parameters.cluster;
  std::string state_path;
  bool foreground = false;

  CLI::App app(
      "Mounts DIR on MOUNT as an emulated parallel file system: paced servers, stripes, extent "
      "locks. End it with fusermount3 -u MOUNT.",
      "forebay-testbedfs");
  app.add_option("--backing", parameters.backing, "Directory that holds the files")->required();
  app.add_option("--servers", cluster.servers, "Storage servers")
      ->check(CLI::Range(1, max_servers))
      ->default_val(4);
  add_quantity(app, "--bandwidth", cluster.server.bandwidth_bytes_per_s, parse_bytes_per_second,
               "Of each server", "4MiB/s");
  add_quantity(app, "--latency", cluster.server.latency, parse_duration, "Of each request", "3ms");
  add_quantity(app, "--stripe", cluster.stripe_size, parse_some_bytes,
               "Consecutive bytes on one server", "64KiB");
  app.add_option("--slots", cluster.server.slots,
                 "Requests a server serves at once, and writes a client may have under way there")
      ->check(CLI::Range(1, 1'000'000))
      ->default_val(10);
  add_quantity(app, "--lock-cost", cluster.lock_cost, parse_duration,
               "Time a server loses when a stripe's writer changes", "0ms");
  add_quantity(app, "--object-cost", cluster.object_cost, parse_duration,
               "Time that opening, making or removing a file takes for each of its servers", "0ms");
  CLI::Option* const page_cache =
      app.add_flag("--page-cache", parameters.page_cache,
                   "Let the kernel keep what is read, and read ahead; else every read goes to the "
                   "servers");
  app.add_option_function<std::string>(
         "--read-ahead",
         [&parameters](const std::string& text) {
           parameters.read_ahead = parsed("--read-ahead", text, parse_read_ahead);
         },
         "How far the kernel reads ahead, at most; needs root. Without it: as the kernel has it, "
         "mostly 128KiB")
      ->needs(page_cache);
  app.add_option_function<std::vector<std::string>>(
         "--unreadable",
         [&parameters](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             parameters.unreadable.push_back(parsed("--unreadable", text, parse_extent));
           }
         },
         "OFFSET+LENGTH of every file whose reads fail (EIO); may be given several times")
      ->allow_extra_args(false);
  app.add_option_function<std::string>(
         "--longest-read",
         [&parameters](const std::string& text) {
           parameters.longest_read = parsed("--longest-read", text, parse_some_bytes);
         },
         "How much of a read is answered, at most. Without it: all that it asks for")
      ->excludes(page_cache);
  app.add_option("--state", state_path, "File to keep the state in, as JSON");
  app.add_flag("--foreground", foreground, "Stay in the foreground");
  app.add_option("MOUNT", parameters.mount, "Directory to mount on")->required();
  app.footer(
      "Example:\n  forebay-testbedfs --backing /tmp/files --servers 4 --bandwidth 4MiB/s "
      "--latency 3ms --stripe 64KiB --lock-cost 5ms /tmp/pfs");
  CLI11_PARSE(app, argc, argv);

  const auto complain = [](const Error& error) {
    fmt::print(stderr, "forebay-testbedfs: {}\n", to_string(error));
    return 1;
  };
  const Status fit = check_directories(parameters.backing, parameters.mount);
  if (!fit) return complain(fit.error());
  // The background process leaves the working directory.
  if (!state_path.empty()) state_path = std::filesystem::absolute(state_path).string();

  const auto serve_foreground = [&](const std::function<void()>& mounted) {
    const Status served = serve(parameters, state_path, mounted);
    return served ? 0 : complain(served.error());
  };
  return foreground ? serve_foreground([] {}) : in_background(parameters.mount, serve_foreground);
}

}  // namespace
}  // namespace forebay::testbed

int main(int argc, char** argv) {
  try {
    return forebay::testbed::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "forebay-testbedfs: %s\n", error.what());
    return 1;
  }
}
