// Goal: logs for the tests of `forebay cache`, as programs leave them.
// Method: writes a file through a cache, block by block, and then kills itself, or holds the log
// until its standard input ends and closes the file.

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "core/engine/cache/cached_file.hpp"
#include "core/engine/cache/log_directory.hpp"
#include "toolkit/native/found_logs.hpp"

namespace forebay {
namespace {

struct Task {
  std::string local;  ///< Where the log is to lie.
  std::string file;
  std::string data;       ///< A file with what is written.
  std::size_t block = 0;  ///< Bytes of one write.
  std::size_t committed_blocks = 0;
  std::string log = "log-0";
  std::string job = "4711";
  int rank = 0;
  std::int64_t made_unix_s = 1'700'000'000;
  std::string host = this_host();
  bool hold = false;
  bool is_protected = false;
};

Status work(const Task& task) {
  if (!std::filesystem::exists(task.file)) std::ofstream(task.file).close();
  std::ifstream input(task.data, std::ios::binary);
  const std::vector<char> data{std::istreambuf_iterator<char>(input), {}};
  Counters counters;
  const auto identity = identify(task.file);
  if (!identity) return tl::unexpected(identity.error());
  auto cache = CacheDirectory::open(task.local, CacheDirectory::Access::create);
  if (!cache) return tl::unexpected(cache.error());
  auto store = LogDirectory::create(*cache, task.log);
  if (!store) return tl::unexpected(store.error());
  auto storage = open_posix_file(task.file, OpenMode::read_write, counters);
  if (!storage) return tl::unexpected(storage.error());
  CacheOptions options;
  options.flush = CacheFlush::onclose;
  options.log = {1 * MiB, 64 * KiB};
  options.is_protected = task.is_protected;
  LogIdentity log;
  log.log = task.log;
  log.file = *identity;
  log.job = task.job;
  log.host = task.host;
  log.process = ::getpid();
  log.rank = task.rank;
  log.made_unix_s = task.made_unix_s;
  auto file = CachedFile::open(std::move(*storage), std::move(*store), log,
                               std::make_shared<Resource>("cache.local", 64 * MiB), options);
  if (!file) return tl::unexpected(file.error());
  std::size_t blocks = 0;
  for (std::size_t at = 0; at < data.size(); at += task.block, ++blocks) {
    if (blocks == task.committed_blocks) {
      if (auto committed = (*file)->commit(2); !committed) return committed;
    }
    const auto part = std::span(data).subspan(at, std::min(task.block, data.size() - at));
    if (auto written = (*file)->write_at(std::as_bytes(part), static_cast<Bytes>(at)); !written) {
      return written;
    }
  }
  if (blocks <= task.committed_blocks) {
    if (auto committed = (*file)->commit(2); !committed) return committed;
  }
  if (!task.hold) std::raise(SIGKILL);
  // Until it can be seen from outside.
  const auto seen = LogDirectory::open(*cache, task.log, LogDirectory::Use::look);
  for (Bytes dirty = 0; seen && dirty != static_cast<Bytes>(data.size());) {
    if (const auto progress = StatusPage::read(**seen)) dirty = progress->dirty;
    std::this_thread::yield();
  }
  std::puts("holding");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
  }
  return (*file)->close();
}

int run(int argc, char** argv) {
  Task task;
  CLI::App app("Writes a file through a write-behind log and leaves the log.", "leave_log");
  app.add_option("--local", task.local)->required();
  app.add_option("--file", task.file)->required();
  app.add_option("--data", task.data)->required()->check(CLI::ExistingFile);
  app.add_option("--block", task.block)->required()->check(CLI::PositiveNumber);
  app.add_option("--committed-blocks", task.committed_blocks)->required();
  app.add_option("--log", task.log);
  app.add_option("--job", task.job);
  app.add_option("--rank", task.rank);
  app.add_option("--made", task.made_unix_s);
  app.add_option("--host", task.host);
  app.add_flag("--hold", task.hold);
  app.add_flag("--protected", task.is_protected);
  CLI11_PARSE(app, argc, argv);
  const Status status = work(task);
  if (status) return 0;
  std::fprintf(stderr, "leave_log: %s\n", to_string(status.error()).c_str());
  return 1;
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) { return forebay::run(argc, argv); }
