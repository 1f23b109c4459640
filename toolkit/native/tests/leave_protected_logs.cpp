// Goal: logs that protect each other for the tests of `forebay cache`, as programs leave them.
// Method: one process plays the nodes: each has a directory; members take the blocks of a file in
// turn, and after each round the parity logs get a stripe. Then it kills itself.

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/engine/cache/file_identity.hpp"
#include "toolkit/native/tests/protected_nodes.hpp"

namespace forebay {
namespace {

struct Task {
  NodePlaces places;
  std::string file;
  std::string data;
  std::size_t block = 0;
};

Status work(const Task& task) {
  if (!std::filesystem::exists(task.file)) std::ofstream(task.file).close();
  std::ifstream input(task.data, std::ios::binary);
  const std::vector<char> data{std::istreambuf_iterator<char>(input), {}};
  const auto identity = identify(task.file);
  if (!identity) return tl::unexpected(identity.error());
  ProtectedNodes nodes(task.places, *identity);
  if (auto opened = nodes.open(); !opened) return opened;
  for (std::size_t at = 0; at < data.size();) {
    for (std::size_t member = 0; member < task.places.members.size() && at < data.size();
         ++member) {
      const auto part = std::span(data).subspan(at, std::min(task.block, data.size() - at));
      if (auto written = nodes.write(member, part, static_cast<Bytes>(at)); !written) {
        return written;
      }
      at += part.size();
    }
    if (auto safe = nodes.protect(); !safe) return safe;
  }
  std::raise(SIGKILL);
  return {};
}

int run(int argc, char** argv) {
  Task task;
  CLI::App app("Leaves logs that protect each other.", "leave_protected_logs");
  app.add_option("--member", task.places.members)->required()->allow_extra_args(false);
  app.add_option("--parity", task.places.parities)->required()->allow_extra_args(false);
  app.add_option("--file", task.file)->required();
  app.add_option("--data", task.data)->required()->check(CLI::ExistingFile);
  app.add_option("--block", task.block)->required()->check(CLI::PositiveNumber);
  app.add_option("--host", task.places.host);
  CLI11_PARSE(app, argc, argv);
  const Status status = work(task);
  if (status) return 0;
  std::fprintf(stderr, "leave_protected_logs: %s\n", to_string(status.error()).c_str());
  return 1;
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) { return forebay::run(argc, argv); }
