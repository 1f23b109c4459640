#include "core/engine/cache/recovery_note.hpp"

#include <map>
#include <utility>

#include "core/engine/cache/sealed_block.hpp"
#include "core/engine/cache/sidecar_entry.hpp"

namespace forebay {
namespace {

using nlohmann::json;

constexpr EntryKind recovery_entry{"forebay recovery", 2};
constexpr EntryKind recovery_entry_1{"forebay recovery", 1};

tl::unexpected<Error> lacks_a_field() {
  return tl::unexpected(Error{ErrorKind::io, 0, "the forebay recovery lacks a field"});
}

}  // namespace

std::string encode_recovery(const RecoveryNote& note) {
  // A recovery may be of thousands of logs, which are in few directories.
  std::map<std::string, std::vector<std::string>> by_directory;
  for (const RecoveredLog& log : note.logs) by_directory[log.directory].push_back(log.name);
  json places = json::array();
  for (const auto& [directory, logs] : by_directory) {
    put_path(places.emplace_back(json{{"logs", logs}}), "directory", directory);
  }
  return sealed_entry(recovery_entry, {{"host", note.host}, {"places", std::move(places)}});
}

Result<RecoveryNote> parse_recovery(std::string_view text) {
  const auto content = opened_entry(recovery_entry, text);
  if (!content) return tl::unexpected(content.error());
  RecoveryNote note;
  const auto places = content->find("places");
  if (!get_field(*content, "host", note.host) || places == content->end() || !places->is_array()) {
    return lacks_a_field();
  }
  for (const json& place : *places) {
    std::string directory;
    if (!place.is_object() || !get_path(place, "directory", directory)) return lacks_a_field();
    for (std::string& log : listed_logs(place)) note.logs.push_back({std::move(log), directory});
  }
  return note;
}

Result<RecoveryNote> parse_recovery_of_version_1(std::string_view text) {
  const auto content = opened_entry(recovery_entry_1, text);
  if (!content) return tl::unexpected(content.error());
  RecoveryNote note;
  for (std::string& log : listed_logs(*content)) note.logs.push_back({std::move(log), {}});
  return note;
}

}  // namespace forebay
