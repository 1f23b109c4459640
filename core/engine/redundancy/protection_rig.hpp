#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/engine/cache/memory_log_store.hpp"
#include "core/engine/redundancy/parity_reader.hpp"
#include "core/engine/redundancy/parity_writer.hpp"
#include "core/engine/redundancy/rebuild.hpp"
#include "core/storage/faulty_file.hpp"

namespace forebay {

/// A group of logs and its parity logs for tests, all in memory; ranks are steps of one thread.
class ProtectionRig {
 public:
  using Content = std::vector<std::byte>;

  /// A data record as it was written.
  struct Written {
    std::uint64_t sequence = 0;
    Bytes offset = 0;
    Content bytes;
    bool operator==(const Written&) const = default;
  };

  struct Member {
    std::string name;
    std::shared_ptr<MemoryLog> log = std::make_shared<MemoryLog>();
    std::unique_ptr<LogWriter> writer;
    std::vector<Written> written;  ///< All data records, by sequence.
    LogPoint safe;                 ///< Up to here it is in stripes that were finished.
    std::uint64_t flushed = 0;     ///< What the log says.
    std::uint64_t told = 0;        ///< What a finished stripe says of that.
    std::map<std::uint64_t, std::uint64_t> until;  ///< Last sequence, by generation.
  };
  struct Parity {
    std::shared_ptr<MemoryLog> log = std::make_shared<MemoryLog>();
    std::unique_ptr<ParityWriter> writer;
  };

  ProtectionRig(int member_count, int parity_count,
                const std::vector<std::shared_ptr<FaultPlan>>& plans = {}, Bytes capacity = GiB) {
    for (int i = 0; i < member_count; ++i) {
      auto member = std::make_unique<Member>();
      member->name = "log-" + std::to_string(i);
      LogIdentity identity;
      identity.log = member->name;
      identity.file.path = "/scratch/a";
      identity.host = "node-" + std::to_string(i);
      identity.rank = i;
      member->writer = std::make_unique<LogWriter>(
          member->log->open(), identity, LogSettings{16 * KiB, 1 * KiB}, room(GiB),
          [at = member.get()](const LogRecord& record, const LogPlace& place) {
            Content buffer;
            const auto bytes = verified_bytes(place, record.length, buffer);
            at->written.push_back(
                {record.sequence, record.extent().offset, {bytes->begin(), bytes->end()}});
          });
      members.push_back(std::move(member));
    }
    for (int i = 0; i < parity_count; ++i) {
      Parity parity;
      LogIdentity identity;
      identity.log = "parity-" + std::to_string(i);
      identity.purpose = LogPurpose::protection;
      identity.file.path = "/scratch/a";
      const auto at = static_cast<std::size_t>(i);
      const auto plan = at < plans.size() ? plans[at] : nullptr;
      parity.writer = std::make_unique<ParityWriter>(
          parity.log->open(plan), identity, LogSettings{32 * KiB, 4 * KiB}, room(capacity));
      parities.push_back(std::move(parity));
    }
  }

  void append(std::size_t member, Bytes offset, const Content& bytes) {
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    if (!members[member]->writer->append({&piece, 1}, offset, epoch).status) std::abort();
  }

  void commit() {
    for (auto& member : members) {
      if (!member->writer->commit(epoch)) std::abort();
    }
    ++epoch;
  }

  /// A stripe of what came since the last one; with `marks` alone, of nothing.
  Status protect(bool marks_alone = false) {
    Stripe stripe;
    stripe.group = "group";
    stripe.generation = ++generation;
    stripe.parities = static_cast<int>(parities.size());
    std::vector<std::vector<LogRun>> runs;
    std::vector<LogPoint> points;
    for (auto& member : members) {
      LogGrowth growth;
      growth.end = member->safe;
      if (!marks_alone) growth = member->writer->grown(member->safe);
      member->flushed = std::max(member->flushed, growth.flushed);
      points.push_back(growth.end);
      runs.push_back(std::move(growth.runs));
      stripe.members.push_back({.identity = member->writer->identity(),
                                .ranges = ranges_of(runs.back()),
                                .last_sequence = points.back().sequence,
                                .flushed = member->flushed});
    }
    for (std::size_t i = 0; i < parities.size(); ++i) {
      stripe.piece = static_cast<int>(i);
      auto added = parities[i].writer->append(
          stripe, [&](std::size_t member, Bytes offset, Bytes length, Content& buffer) {
            return read_runs(runs[member], offset, length, buffer);
          });
      if (!added) return added;
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      members[i]->safe = points[i];
      members[i]->told = members[i]->flushed;
      members[i]->until[generation] = points[i].sequence;
    }
    return {};
  }

  /// The member says that what it has up to `sequence` is in the file.
  void flush(std::size_t member, std::uint64_t sequence) {
    Member& at = *members[member];
    if (!at.writer->flushed(epoch, sequence)) std::abort();
    at.flushed = std::max(at.flushed, sequence);
  }

  /// Tells the parity logs, and lets go of what nobody needs.
  Status release() {
    if (auto told = protect(true); !told) return told;
    std::uint64_t done = 0;
    for (const auto& [at, sequence] : members.front()->until) {
      if (!std::ranges::all_of(members, [at = at](const auto& member) {
            return member->until.at(at) <= member->told;
          })) {
        break;
      }
      done = at;
    }
    if (done == 0) return {};
    for (Parity& parity : parities) {
      if (auto released = parity.writer->release(done); !released) return released;
    }
    for (auto& member : members) {
      if (auto released = member->writer->release(member->until.at(done)); !released) {
        return released;
      }
    }
    return {};
  }

  static std::unique_ptr<ResourceHolder> room(Bytes capacity) {
    return *ResourceHolder::join(std::make_shared<Resource>("cache.local", capacity));
  }

  std::vector<std::unique_ptr<Member>> members;
  std::vector<Parity> parities;
  std::uint64_t epoch = 1;
  std::uint64_t generation = 0;
};

/// What is left of a rig whose program died, as a recovery finds it.
struct Wreck {
  /// Without the members and the parity logs that are `lost`.
  Wreck(const ProtectionRig& rig, const std::vector<std::size_t>& lost_members,
        const std::vector<std::size_t>& lost_parities) {
    for (std::size_t i = 0; i < rig.members.size(); ++i) {
      const auto& member = *rig.members[i];
      if (std::ranges::find(lost_members, i) == lost_members.end()) {
        left[member.name] = keep(member.log->open());
      } else {
        logs[member.name] = std::make_shared<MemoryLog>();
        lost[member.name] = keep(logs[member.name]->open());
      }
    }
    for (std::size_t i = 0; i < rig.parities.size(); ++i) {
      if (std::ranges::find(lost_parities, i) != lost_parities.end()) continue;
      auto contents = read_parity_log(*keep(rig.parities[i].log->open()), ReadDepth::payloads);
      if (contents) parity.push_back(std::move(*contents));
    }
  }

  Result<RebuildReport> rebuild_lost() { return rebuild(parity, left, lost); }

  LogStore* keep(std::unique_ptr<LogStore> store) {
    stores.push_back(std::move(store));
    return stores.back().get();
  }

  std::vector<ParityContents> parity;
  StoresByName left;
  StoresByName lost;
  std::map<std::string, std::shared_ptr<MemoryLog>> logs;  ///< Those that are rebuilt.
  std::vector<std::unique_ptr<LogStore>> stores;
};

}  // namespace forebay
