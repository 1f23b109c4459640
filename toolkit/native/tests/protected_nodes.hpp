#pragma once

#include <unistd.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/cache/log_directory.hpp"
#include "core/engine/cache/log_writer.hpp"
#include "core/engine/cache/sidecar.hpp"
#include "core/engine/redundancy/parity_writer.hpp"

namespace forebay {

/// Node-local directories of nodes that protect each other, for tests.
struct NodePlaces {
  std::vector<std::string> members;  ///< With a log each.
  std::vector<std::string> parities;
  std::string host = this_host();
};

/// Nodes that one process plays: members have logs of one file, and after each round the parity
/// logs get a stripe. Let go of, it leaves the logs as a process that ends.
class ProtectedNodes {
 public:
  ProtectedNodes(NodePlaces places, FileIdentity file)
      : places_(std::move(places)), file_(std::move(file)) {}

  Status open() {
    for (std::size_t i = 0; i < places_.members.size(); ++i) {
      LogIdentity identity = identity_of("log-" + std::to_string(i));
      identity.rank = static_cast<int>(i);
      auto store = make_log(places_.members[i], identity.log);
      if (!store) return tl::unexpected(store.error());
      const Status announced = announce(identity, (*store)->path());
      if (!announced) return announced;
      members_.push_back(
          {std::make_unique<LogWriter>(std::move(*store), identity, LogSettings{1 * MiB, 64 * KiB},
                                       room(), [](const LogRecord&, const LogPlace&) {}),
           {}});
    }
    for (std::size_t i = 0; i < places_.parities.size(); ++i) {
      LogIdentity identity = identity_of("parity-" + std::to_string(i));
      identity.purpose = LogPurpose::protection;
      auto store = make_log(places_.parities[i], identity.log);
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
  struct Member {
    std::unique_ptr<LogWriter> log;
    LogPoint safe;
  };

  static Result<std::unique_ptr<LogDirectory>> make_log(const std::string& local,
                                                        const std::string& name) {
    auto cache = CacheDirectory::open(local, CacheDirectory::Access::create);
    if (!cache) return tl::unexpected(cache.error());
    return LogDirectory::create(*cache, name);
  }

  static std::unique_ptr<ResourceHolder> room() {
    return *ResourceHolder::join(std::make_shared<Resource>("cache.local", 64 * MiB));
  }

  LogIdentity identity_of(const std::string& log) const {
    LogIdentity identity;
    identity.log = log;
    identity.file = file_;
    identity.job = "4711";
    identity.host = places_.host;
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

  const NodePlaces places_;
  const FileIdentity file_;
  std::vector<Member> members_;
  std::vector<std::unique_ptr<ParityWriter>> parities_;
  std::uint64_t generation_ = 0;
};

}  // namespace forebay
