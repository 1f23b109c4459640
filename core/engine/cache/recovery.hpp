#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/engine/cache/log_contents.hpp"
#include "core/engine/cache/log_identity.hpp"
#include "core/engine/cache/log_store.hpp"
#include "core/engine/cache/replay.hpp"
#include "core/engine/cache/sidecar.hpp"
#include "core/model/error.hpp"
#include "core/storage/file.hpp"

namespace forebay {

/// A log whose writer is gone. Nobody else uses it.
struct LeftLog {
  std::string name;
  std::unique_ptr<LogStore> store;
  /// What protects other logs is not replayed; it goes first when the file has everything.
  LogPurpose purpose = LogPurpose::data;
  /// Where the log is damaged: what of it could be made again, in a part of its store. Or null.
  std::unique_ptr<LogStore> remade = nullptr;
  /// What it holds, with every checksum looked at since nobody else uses it; else it is read.
  std::optional<LogContents> contents = std::nullopt;
};

/// What is lost for good, as the user says.
struct SaidLost {
  std::vector<std::string> words;  ///< Nodes and logs; "all".

  bool names(const std::string& host, const std::string& log) const;
};

struct RecoveryChoices {
  /// No value: incomplete records are an error, before anything is touched.
  std::optional<Incomplete> incomplete;
  /// Replays what is intact although something that was promised is not; else that is an error.
  bool skip_damage = false;
  int threads = 0;  ///< As in ReplayChoices.
  /// Logs that are not here may have to be rebuilt from these, so these stay, with marks which say
  /// that the file has everything.
  bool keep = false;
  /// What an interrupted recovery was to remove there is not waited for.
  SaidLost lost = {};
};

struct RecoveryProgress {
  ScanProgress checked;     ///< Of the logs.
  ReplayProgress replayed;  ///< Into the file.
};

/// A log that an interrupted recovery has brought to the file and could not remove yet.
struct UnfinishedLog {
  std::string host;
  std::string path;

  bool operator==(const UnfinishedLog&) const = default;
};

struct RecoveryReport {
  ReplayReport replay;
  int logs = 0;             ///< That were removed, or kept as was chosen.
  int kept = 0;             ///< Of these.
  Bytes dropped_bytes = 0;  ///< Of incomplete records that were not replayed, as was chosen.
  Bytes replayed_incomplete_bytes = 0;  ///< Of those that were, as was chosen.
  Bytes unusable_bytes = 0;  ///< Behind a gap after the last commit: never acknowledged as whole.
  std::vector<std::string> damage;  ///< What was skipped.
  std::vector<std::string> begun;   ///< Paths of logs that were only begun, and are removed.
  /// On other nodes, where recoveries may still be running, and in directories that were not named.
  std::vector<UnfinishedLog> unfinished;
};

/// Brings what `logs` hold into their file, makes it durable, and removes the logs, or keeps them,
/// and their notices. `logs` are all that hold anything of this file: the order among them counts.
/// One that is_only_begun() holds nothing.
/// May be interrupted anywhere and done again. Errors: io (damage, with what is damaged),
/// invalid_argument (incomplete records and no choice) - then nothing was touched -, unsupported (a
/// log of another version), and those of the file and the stores.
Result<RecoveryReport> recover(StorageFile& file, Sidecar& sidecar, std::vector<LeftLog> logs,
                               const RecoveryChoices& choices,
                               const RecoveryProgress& progress = {});

/// Removes the logs, or keeps them as recover() does, and their notices: what they hold is given
/// up. What recoveries of them noted that were interrupted goes, too.
Status drop(Sidecar& sidecar, std::span<const LeftLog> logs, bool keep = false);

}  // namespace forebay
