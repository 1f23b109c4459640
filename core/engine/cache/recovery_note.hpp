#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/model/error.hpp"

// docs/formats/sidecar.md

namespace forebay {

/// A log that a recovery has brought to its file.
struct RecoveredLog {
  std::string name;
  std::string directory;  ///< That it was in. Empty: not said.

  std::string path() const { return directory + "/" + name; }

  bool operator==(const RecoveredLog&) const = default;
};

/// What one recovery says when all that its logs hold is in the file, before it removes the first
/// of them. One note for all of its logs: some of them must not be replayed without the others.
struct RecoveryNote {
  std::string host;  ///< Where the recovery ran. Empty: it did not say, as earlier versions.
  std::vector<RecoveredLog> logs;

  bool operator==(const RecoveryNote&) const = default;
};

/// The text of a note's file.
std::string encode_recovery(const RecoveryNote& note);
/// Errors: unsupported (another version), io (damaged, or something else).
Result<RecoveryNote> parse_recovery(std::string_view text);
/// The same of what version 1 wrote, which named no host and no directories.
Result<RecoveryNote> parse_recovery_of_version_1(std::string_view text);

}  // namespace forebay
