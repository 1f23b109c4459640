#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/error.hpp"

// docs/formats/sidecar.md

namespace forebay {

// The files that a Sidecar holds: each a JSON object that says what it is, of which version, and
// whether it is whole.

/// What one of them is.
struct EntryKind {
  const char* format = "";  ///< Its name, also for messages.
  int version = 0;
};

/// The text of one. Bytes of texts in `content` that are no UTF-8 are replaced.
std::string sealed_entry(const EntryKind& kind, const nlohmann::json& content);
/// The content back. Errors: unsupported (another version), io (damaged, or something else).
Result<nlohmann::json> opened_entry(const EntryKind& kind, std::string_view text);

/// Puts a path there under `key`, and its bytes as well where they are no UTF-8.
void put_path(nlohmann::json& content, const std::string& key, const std::string& path);
/// The path as it was put there. False: there is none, or its bytes are malformed.
bool get_path(const nlohmann::json& content, const std::string& key, std::string& path);

/// The names of logs that a content lists; none if it lists none.
std::vector<std::string> listed_logs(const nlohmann::json& content);

/// Puts it there under `name`, so that a reader finds all of it or nothing. `directory` is made if
/// it is not there, which another process may remove at any moment as long as it is empty.
Status put_entry(const std::string& directory, const std::string& name, std::string_view text,
                 bool durable);
/// No value where there is no such file. `own`: it must be this user's.
Result<std::optional<std::string>> get_entry(const std::string& path, bool own);
/// Names in `directory` that end so, ascending; those that are still being made left out.
Result<std::vector<std::string>> entries_that_end(const std::string& directory,
                                                  std::string_view ending);
/// What is left of these where whoever put them there died before they had their names.
Status remove_unfinished(const std::string& directory, const std::vector<std::string>& names);
/// Nothing there: no error.
Status remove_if_empty(const std::string& directory);
/// The directory goes with the last one. Nothing there: no error.
Status remove_entry(const std::string& directory, const std::string& name);

}  // namespace forebay
