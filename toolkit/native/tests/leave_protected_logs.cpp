// Goal: logs that protect each other for the tests of `forebay cache`, as programs leave them.
// Method: one process plays the nodes: each has a directory; members take the blocks of a file in
// turn, and after each round the parity logs get a stripe. Then it kills itself.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/engine/cache/log_directory.hpp"
#include "core/engine/cache/log_writer.hpp"
#include "core/engine/cache/sidecar.hpp"
#include "core/engine/redundancy/parity_writer.hpp"
#include "toolkit/native/found_logs.hpp"

namespace forebay {
namespace {

struct Task {
  std::vector<std::string> members;  ///< Node-local directories with a log each.
  std::vector<std::string> parities;
  std::string file;
  std::string data;
  std::size_t block = 0;
  std::string host = this_host();
};

Result<std::unique_ptr<LogDirectory>> make_log(const std::string& local, const std::string& name) {
  auto cache = CacheDirectory::open(local, CacheDirectory::Access::create);
  if (!cache) return tl::unexpected(cache.error());
  return LogDirectory::create(*cache, name);
}

std::unique_ptr<ResourceHolder> room() {
  return *ResourceHolder::join(std::make_shared<Resource>("cache.local", 64 * MiB));
}

struct Member {
  std::unique_ptr<LogWriter> log;
  LogPoint safe;
};

class Nodes {
 public:
  Nodes(const Task& task, FileIdentity file) : task_(task), file_(std::move(file)) {}

  Status open() {
    for (std::size_t i = 0; i < task_.members.size(); ++i) {
      LogIdentity identity = identity_of("log-" + std::to_string(i));
      identity.rank = static_cast<int>(i);
      auto store = make_log(task_.members[i], identity.log);
      if (!store) return tl::unexpected(store.error());
      const Status announced = announce(identity, (*store)->path());
      if (!announced) return announced;
      members_.push_back(
          {std::make_unique<LogWriter>(std::move(*store), identity, LogSettings{1 * MiB, 64 * KiB},
                                       room(), [](const LogRecord&, const LogPlace&) {}),
           {}});
    }
    for (std::size_t i = 0; i < task_.parities.size(); ++i) {
      LogIdentity identity = identity_of("parity-" + std::to_string(i));
      identity.purpose = LogPurpose::protection;
      auto store = make_log(task_.parities[i], identity.log);
      if (!store) return tl::unexpected(store.error());
      parities_.push_back(std::make_unique<ParityWriter>(std::move(*store), identity,
                                                         LogSettings{1 * MiB, 64 * KiB}, room()));
    }
    return {};
  }

  Status write(std::size_t member, std::span<const char> bytes, Bytes offset) {
    const iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
    return members_[member].log->append({&piece, 1}, offset, generation_ + 1).status;
  }

  Status protect() {
    Stripe stripe{.group = "group",
                  .generation = ++generation_,
                  .parities = static_cast<int>(parities_.size())};
    std::vector<std::vector<LogRun>> runs;
    for (Member& member : members_) {
      if (auto committed = member.log->commit(generation_); !committed) {
        return tl::unexpected(committed.error());
      }
      LogGrowth growth = member.log->grown(member.safe);
      runs.push_back(std::move(growth.runs));
      stripe.members.push_back({.identity = member.log->identity(),
                                .ranges = ranges_of(runs.back()),
                                .last_sequence = growth.end.sequence});
      member.safe = growth.end;
    }
    for (std::size_t i = 0; i < parities_.size(); ++i) {
      stripe.piece = static_cast<int>(i);
      const auto added = parities_[i]->append(
          stripe,
          [&](std::size_t member, Bytes offset, Bytes length, std::vector<std::byte>& buffer) {
            return read_runs(runs[member], offset, length, buffer);
          });
      if (!added) return added;
    }
    return {};
  }

 private:
  LogIdentity identity_of(const std::string& log) const {
    LogIdentity identity;
    identity.log = log;
    identity.file = file_;
    identity.job = "4711";
    identity.host = task_.host;
    identity.process = ::getpid();
    identity.made_unix_s = 1'700'000'000;
    return identity;
  }

  static Status announce(const LogIdentity& identity, const std::string& log_path) {
    return Sidecar(identity.file.path)
        .announce({.file = identity.file,
                   .log = identity.log,
                   .log_path = log_path,
                   .host = identity.host,
                   .job = identity.job,
                   .process = identity.process,
                   .rank = identity.rank,
                   .since_unix_s = identity.made_unix_s,
                   .is_protected = true});
  }

  const Task& task_;
  const FileIdentity file_;
  std::vector<Member> members_;
  std::vector<std::unique_ptr<ParityWriter>> parities_;
  std::uint64_t generation_ = 0;
};

Status work(const Task& task) {
  if (!std::filesystem::exists(task.file)) std::ofstream(task.file).close();
  std::ifstream input(task.data, std::ios::binary);
  const std::vector<char> data{std::istreambuf_iterator<char>(input), {}};
  const auto identity = identify(task.file);
  if (!identity) return tl::unexpected(identity.error());
  Nodes nodes(task, *identity);
  if (auto opened = nodes.open(); !opened) return opened;
  for (std::size_t at = 0; at < data.size();) {
    for (std::size_t member = 0; member < task.members.size() && at < data.size(); ++member) {
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
  app.add_option("--member", task.members)->required()->allow_extra_args(false);
  app.add_option("--parity", task.parities)->required()->allow_extra_args(false);
  app.add_option("--file", task.file)->required();
  app.add_option("--data", task.data)->required()->check(CLI::ExistingFile);
  app.add_option("--block", task.block)->required()->check(CLI::PositiveNumber);
  app.add_option("--host", task.host);
  CLI11_PARSE(app, argc, argv);
  const Status status = work(task);
  if (status) return 0;
  std::fprintf(stderr, "leave_protected_logs: %s\n", to_string(status.error()).c_str());
  return 1;
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) { return forebay::run(argc, argv); }
