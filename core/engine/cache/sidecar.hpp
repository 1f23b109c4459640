#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/cache/file_identity.hpp"
#include "core/engine/cache/recovery_note.hpp"
#include "core/model/error.hpp"

// docs/formats/sidecar.md

namespace forebay {

/// Says that a log holds bytes of a file that are not in the file yet, and where the log is.
struct DirtyNotice {
  FileIdentity file;
  std::string log;       ///< Its name.
  std::string log_path;  ///< Of the log's directory, on `host`.
  std::string host;
  std::string job;
  std::int64_t process = 0;
  int rank = 0;
  std::int64_t since_unix_s = 0;
  /// Other nodes keep what rebuilds the log, or will: it may take any log of the file to do so.
  bool is_protected = false;
  /// Records of the log up to this one were durable in the file when the notice was put there.
  std::uint64_t flushed = 0;
  /// Who wrote the log has let go of it, and lives on maybe. Not said by one that was killed.
  bool is_left = false;

  bool operator==(const DirtyNotice&) const = default;
};

/// The text of a notice's file.
std::string encode_notice(const DirtyNotice& notice);
/// Errors: unsupported (another version), io (damaged, or something else).
Result<DirtyNotice> parse_notice(std::string_view text);

/// The directory ".NAME.forebay-dirty" beside a file: as long as it is there, the file is not
/// complete. It holds a notice for each log. Its files appear whole or not at all, and ranks need
/// not agree with each other to put theirs there and take them away.
class Sidecar {
 public:
  explicit Sidecar(const std::string& file_path);

  const std::string& path() const { return directory_; }

  /// Puts the notice there, in place of an earlier one of that log. `durable`: it survives whatever
  /// the log does.
  Status announce(const DirtyNotice& notice, bool durable = false);
  /// Takes the notice of `log` away, and the directory with the last one. Nothing there: no error.
  Status withdraw(const std::string& log);
  /// All notices that can be read, by log; of what cannot be, the names of the logs, and why.
  struct Notices {
    std::vector<DirtyNotice> notices;
    std::vector<std::string> unread;
    std::vector<std::string> problems;
  };
  Result<Notices> read() const;

  /// Durably: what is in the logs of `note`, of which there is one at least, is in the file, and
  /// they are about to be removed. From here on a recovery that was interrupted removes them, and
  /// does not replay some of them again. What others have noted of other logs stays. Returns the
  /// name of the note.
  Result<std::string> note_recovered(const RecoveryNote& note);
  /// Of recoveries of this user that were interrupted, or go on elsewhere, by the names of the
  /// notes. Error: access, where one is another user's.
  Result<std::map<std::string, RecoveryNote>> recoveries() const;
  /// Logs that they name.
  Result<std::vector<std::string>> recovered() const;
  /// All logs of the note of that name are removed.
  Status forget_recovery(const std::string& name);
  /// What is left of files for `logs` that whoever put them there had not finished goes, and then
  /// the directory, if it holds nothing.
  Status tidy(const std::vector<std::string>& logs);

 private:
  std::string directory_;
};

}  // namespace forebay
