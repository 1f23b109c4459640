#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/engine/cache/file_identity.hpp"
#include "core/model/stripe_layout.hpp"

// docs/formats/write-behind-log.md, "Superblock"

namespace forebay {

/// What a log's payloads are.
enum class LogPurpose {
  data,        ///< Bytes of the file.
  protection,  ///< Parity of other logs (docs/formats/parity-log.md): not for the file.
};

/// Whose log it is, and of which file: the same in all segments of one log.
struct LogIdentity {
  std::string log;  ///< Names the log: unique among all logs.
  LogPurpose purpose = LogPurpose::data;
  FileIdentity file;
  StripeLayout layout;           ///< Of the file: how a replay cuts its writes.
  std::string job;               ///< The batch system's number of the job, or empty.
  std::string host;              ///< The node whose storage holds the log.
  std::int64_t process = 0;      ///< Process number of the writer.
  int rank = 0;                  ///< Of the writer in the file's communicator.
  std::int64_t made_unix_s = 0;  ///< When the log was made.

  bool operator==(const LogIdentity&) const = default;
};

/// This node, as LogIdentity::host and DirtyNotice::host have it.
std::string this_host();

/// All of it but the purpose, as a superblock and a parity log have it.
nlohmann::json identity_map(const LogIdentity& identity);
/// The reverse. False: a field lacks, or is of another type or makes no sense.
bool get_identity(const nlohmann::json& map, LogIdentity& identity);

}  // namespace forebay
