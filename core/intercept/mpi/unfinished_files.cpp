#include "core/intercept/mpi/unfinished_files.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "core/intercept/mpi/file_name.hpp"
#include "core/intercept/mpi/settings.hpp"

namespace forebay {
namespace {

/// None where nothing is there, or where it cannot be told.
std::optional<FileId> id_at(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

}  // namespace

void UnfinishedFiles::add(std::shared_ptr<OpenFile> file, std::unique_ptr<HeldBack> held_back) {
  const std::scoped_lock lock(mutex_);
  const LateCounters reported = late_counters(file->record.counters);
  files_.push_back({std::move(file), std::move(held_back), reported});
}

void UnfinishedFiles::report_growth(const Unfinished& unfinished) {
  const LateCounters now = late_counters(unfinished.file->record.counters);
  const LateCounters& then = unfinished.reported;
  write_late_report(unfinished.file->record,
                    {now.drained - then.drained, now.log_bytes - then.log_bytes,
                     now.exposed_ns - then.exposed_ns},
                    settings().report_dir);
}

bool UnfinishedFiles::empty() const {
  const std::scoped_lock lock(mutex_);
  return files_.empty();
}

Status UnfinishedFiles::finish(std::vector<Unfinished> files, const std::string& path) {
  Status worst;
  const auto there = id_at(path);
  for (Unfinished& unfinished : files) {
    const Status finished = unfinished.held_back->finish();
    if (unfinished.file->reporting) report_growth(unfinished);
    if (finished) continue;
    if (unfinished.is_at(path, there)) {
      worst = finished;
    } else {
      std::fprintf(stderr, "forebay: %s\n", to_string(finished.error()).c_str());
    }
    add(std::move(unfinished.file), std::move(unfinished.held_back));
  }
  return worst;
}

Status UnfinishedFiles::finish_family(const std::string& path) {
  const std::string family = family_of(path);
  const auto there = id_at(path);
  std::vector<Unfinished> files;
  {
    const std::scoped_lock lock(mutex_);
    const auto theirs = std::ranges::stable_partition(files_, [&](const Unfinished& unfinished) {
      return family_of(unfinished.file->record.path) != family && !unfinished.is_at(path, there);
    });
    std::ranges::move(theirs, std::back_inserter(files));
    files_.erase(theirs.begin(), theirs.end());
  }
  return finish(std::move(files), path);
}

void UnfinishedFiles::finish_all() {
  std::vector<Unfinished> files;
  {
    const std::scoped_lock lock(mutex_);
    files = std::exchange(files_, {});
  }
  (void)finish(std::move(files), "");  // No file has that name.
}

void UnfinishedFiles::abandon_all() {
  std::vector<Unfinished> files;
  const std::scoped_lock lock(mutex_);
  files.swap(files_);
}

UnfinishedFiles& unfinished_files() {
  // Never destroyed: threads of its files may be at work when the process ends.
  static UnfinishedFiles& instance = *new UnfinishedFiles;
  return instance;
}

}  // namespace forebay
