#include "core/engine/cache/sidecar.hpp"

#include <filesystem>
#include <utility>

#include "core/engine/cache/sealed_block.hpp"
#include "core/engine/cache/sidecar_entry.hpp"

namespace forebay {
namespace {

using nlohmann::json;

constexpr std::string_view notice_ending = ".json";
constexpr std::string_view recovery_ending = ".recovered";
/// What version 1 called its one note.
constexpr const char* recovery_name_1 = "recovered";
constexpr EntryKind notice_entry{"forebay dirty notice", 1};

tl::unexpected<Error> wrong(ErrorKind kind, std::string what) {
  return tl::unexpected(Error{kind, 0, std::move(what)});
}

}  // namespace

std::string encode_notice(const DirtyNotice& notice) {
  json content = {{"device", notice.file.device},
                  {"inode", notice.file.inode},
                  {"file_made_unix_ns", notice.file.made_unix_ns},
                  {"log", notice.log},
                  {"host", notice.host},
                  {"job", notice.job},
                  {"process", notice.process},
                  {"rank", notice.rank},
                  {"since_unix_s", notice.since_unix_s},
                  {"protected", notice.is_protected},
                  {"flushed", notice.flushed},
                  {"left", notice.is_left}};
  put_path(content, "path", notice.file.path);
  put_path(content, "log_path", notice.log_path);
  return sealed_entry(notice_entry, content);
}

Result<DirtyNotice> parse_notice(std::string_view text) {
  const auto content = opened_entry(notice_entry, text);
  if (!content) return tl::unexpected(content.error());
  DirtyNotice notice;
  const bool complete =
      get_path(*content, "path", notice.file.path) &&
      get_field(*content, "device", notice.file.device) &&
      get_field(*content, "inode", notice.file.inode) && get_field(*content, "log", notice.log) &&
      get_path(*content, "log_path", notice.log_path) && get_field(*content, "host", notice.host) &&
      get_field(*content, "job", notice.job) && get_field(*content, "process", notice.process) &&
      get_field(*content, "rank", notice.rank) &&
      get_field(*content, "since_unix_s", notice.since_unix_s);
  if (!complete) return wrong(ErrorKind::io, "the forebay dirty notice lacks a field");
  // Older ones do not say these.
  get_field(*content, "protected", notice.is_protected);
  get_field(*content, "file_made_unix_ns", notice.file.made_unix_ns);
  get_field(*content, "flushed", notice.flushed);
  get_field(*content, "left", notice.is_left);
  return notice;
}

Sidecar::Sidecar(const std::string& file_path) {
  const std::filesystem::path file(file_path);
  directory_ = (file.parent_path() / ("." + file.filename().string() + ".forebay-dirty")).string();
}

Status Sidecar::announce(const DirtyNotice& notice, bool durable) {
  return put_entry(directory_, notice.log + std::string(notice_ending), encode_notice(notice),
                   durable);
}

Status Sidecar::withdraw(const std::string& log) {
  return remove_entry(directory_, log + std::string(notice_ending));
}

Result<Sidecar::Notices> Sidecar::read() const {
  Notices result;
  const auto names = entries_that_end(directory_, notice_ending);
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names) {
    const std::string path = directory_ + "/" + name;
    const auto text = get_entry(path, false);
    if (text && !*text) continue;  // It was withdrawn meanwhile.
    const auto notice = text ? parse_notice(text->value_or("")) : tl::unexpected(text.error());
    if (notice) {
      result.notices.push_back(*notice);
    } else {
      result.unread.push_back(name.substr(0, name.size() - notice_ending.size()));
      result.problems.push_back(path + ": " + to_string(notice.error()));
    }
  }
  return result;
}

Result<std::string> Sidecar::note_recovered(const RecoveryNote& note) {
  // No other recovery has that log now, and no other log ever has its name.
  std::string name = note.logs.front().name + std::string(recovery_ending);
  if (auto put = put_entry(directory_, name, encode_recovery(note), true); !put) {
    return tl::unexpected(put.error());
  }
  return name;
}

Result<std::map<std::string, RecoveryNote>> Sidecar::recoveries() const {
  auto names = entries_that_end(directory_, recovery_ending);
  if (!names) return tl::unexpected(names.error());
  names->push_back(recovery_name_1);
  std::map<std::string, RecoveryNote> recoveries;
  for (const std::string& name : *names) {
    const std::string path = directory_ + "/" + name;
    const auto text = get_entry(path, true);
    if (!text) return tl::unexpected(text.error());
    if (!*text) continue;  // It was not there, or is forgotten by now.
    auto note =
        name == recovery_name_1 ? parse_recovery_of_version_1(**text) : parse_recovery(**text);
    if (!note) return fail_in(path, note.error());
    recoveries.emplace(name, std::move(*note));
  }
  return recoveries;
}

Result<std::vector<std::string>> Sidecar::recovered() const {
  const auto notes = recoveries();
  if (!notes) return tl::unexpected(notes.error());
  std::vector<std::string> logs;
  for (const auto& [name, note] : *notes) {
    for (const RecoveredLog& log : note.logs) logs.push_back(log.name);
  }
  return logs;
}

Status Sidecar::forget_recovery(const std::string& name) { return remove_entry(directory_, name); }

Status Sidecar::tidy(const std::vector<std::string>& logs) {
  std::vector<std::string> names{recovery_name_1};
  for (const std::string& log : logs) {
    names.push_back(log + std::string(notice_ending));
    names.push_back(log + std::string(recovery_ending));
  }
  if (auto removed = remove_unfinished(directory_, names); !removed) return removed;
  return remove_if_empty(directory_);
}

}  // namespace forebay
