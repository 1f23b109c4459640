#include "toolkit/native/cache_json.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "core/engine/cache/file_identity.hpp"

namespace forebay {

using nlohmann::json;

std::string state_of(const LogSummary& log) {
  const bool empty = !log.readable && log.readable.error().kind == ErrorKind::no_such_file;
  // A log's status is there before anything else of it.
  if (log.in_use && empty && !log.progress) return "spare";
  if (log.in_use) return log.progress && log.progress->draining ? "draining" : "writing";
  if (empty) return "empty";
  if (log.only_begun) return "begun";
  if (!log.readable) return "unreadable";
  if (!log.contents.damage.empty()) return "damaged";
  if (log.contents.identity.purpose == LogPurpose::protection) {
    return log.complete_records > 0 ? "protects" : "clean";
  }
  if (log.incomplete_records > 0) return "incomplete";
  return log.complete_records > 0 ? "left" : "clean";
}

std::string file_state(const FileIdentity& file) {
  const auto now = identify(file.path);
  if (!now) return now.error().kind == ErrorKind::no_such_file ? "gone" : "unreachable";
  return same_file(*now, file) ? "there" : "replaced";
}

json log_json(const FoundLog& log) {
  const LogSummary& summary = log.summary;
  json result = {{"name", summary.name}, {"path", summary.path},     {"state", state_of(summary)},
                 {"file", nullptr},      {"in_use", summary.in_use}, {"damage", json::array()},
                 {"error", nullptr},     {"progress", nullptr}};
  if (summary.progress) {
    const CacheProgress& progress = *summary.progress;
    result["progress"] = {{"absorbed_bytes", progress.absorbed},
                          {"drained_bytes", progress.drained},
                          {"dirty_bytes", progress.dirty},
                          {"draining", progress.draining},
                          {"updated_unix_s", static_cast<double>(progress.updated_unix_ms) / 1e3}};
  }
  if (!summary.readable) {
    result["error"] = to_string(summary.readable.error());
    return result;
  }
  const LogContents& contents = summary.contents;
  const LogIdentity& identity = contents.identity;
  // What was not finished of parity was of no use to anybody yet.
  const bool data = identity.purpose == LogPurpose::data;
  result.update({{"file", identity.file.path},
                 {"purpose", data ? "data" : "protection"},
                 {"file_state", file_state(identity.file)},
                 {"job", identity.job},
                 {"host", identity.host},
                 {"process", identity.process},
                 {"rank", identity.rank},
                 {"made_unix_s", identity.made_unix_s},
                 {"complete_bytes", summary.complete_bytes},
                 {"complete_records", summary.complete_records},
                 {"incomplete_bytes", data ? summary.incomplete_bytes : 0},
                 {"incomplete_records", data ? summary.incomplete_records : 0},
                 {"unusable_bytes", contents.beyond_gap_bytes},
                 {"stored_bytes", contents.stored_bytes}});
  // What is being written changes while it is read.
  if (summary.in_use) return result;
  for (const LogDamage& damage : contents.damage) {
    json entry = {{"what", damage.what},
                  {"first_record", damage.first_sequence},
                  {"last_record", damage.last_sequence},
                  {"offset", nullptr},
                  {"length", nullptr}};
    if (damage.extent) {
      entry["offset"] = damage.extent->offset;
      entry["length"] = damage.extent->length;
    }
    result["damage"].push_back(std::move(entry));
  }
  return result;
}

json missing_json(const MissingLog& log) {
  const DirtyNotice& notice = log.notice;
  // Of another node nobody can tell from here.
  const bool is_elsewhere = notice.host != this_host();
  return {{"name", notice.log},
          {"path", notice.log_path},
          {"file", notice.file.path},
          {"host", notice.host},
          {"job", notice.job},
          {"process", notice.process},
          {"rank", notice.rank},
          {"since_unix_s", notice.since_unix_s},
          {"protected", notice.is_protected},
          {"state", is_elsewhere ? "elsewhere" : (log.is_lost ? "lost" : "unseen")}};
}

json problem_json(const LogProblem& problem) {
  return {{"where", problem.where}, {"what", to_string(problem.error)}};
}

json report_json(const RecoveryReport& report) {
  json unfinished = json::array();
  for (const UnfinishedLog& log : report.unfinished) {
    unfinished.push_back({{"host", log.host}, {"path", log.path}});
  }
  return {{"logs", report.logs},
          {"kept_logs", report.kept},
          {"records", report.replay.records},
          {"record_bytes", report.replay.record_bytes},
          {"written_bytes", report.replay.written},
          {"truncations", report.replay.truncations},
          {"dropped_bytes", report.dropped_bytes},
          {"replayed_incomplete_bytes", report.replayed_incomplete_bytes},
          {"unusable_bytes", report.unusable_bytes},
          {"damage", report.damage},
          {"begun", report.begun},
          {"unfinished", std::move(unfinished)}};
}

json refused(json result, const char* state, const std::string& why) {
  result["state"] = state;
  result["error"] = why;
  return result;
}

}  // namespace forebay
