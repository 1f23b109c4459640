#include "core/intercept/mpi/unfinished_files.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <utility>

#include "core/intercept/mpi/file_name.hpp"
#include "core/intercept/mpi/own_code.hpp"
#include "core/intercept/mpi/settings.hpp"
#include "core/intercept/path_waits.h"

namespace forebay {
namespace {

int wait_for(const char* path) {
  return NoWaits::hold_here() ? 0 : unfinished_files().finish_at(path);
}

/// Whether the program's own calls, past MPI, wait for files.
void set_waiting(bool waits) {
  static const auto wait_at_paths = reinterpret_cast<forebay_wait_at_paths_function*>(
      ::dlsym(RTLD_DEFAULT, "forebay_wait_at_paths"));
  if (wait_at_paths != nullptr) wait_at_paths(waits ? wait_for : nullptr, &__ehdr_start, &etext);
}

}  // namespace

thread_local bool NoWaits::hold_ = false;

void UnfinishedFiles::add(std::shared_ptr<OpenFile> file, std::unique_ptr<HeldBack> held_back) {
  const NoWaits none;
  const LateCounters reported = late_counters(file->record.counters);
  std::vector<Unfinished> files;
  files.push_back({std::move(file), std::move(held_back), reported});
  put_back(std::move(files));
}

void UnfinishedFiles::put_back(std::vector<Unfinished> files) {
  const std::scoped_lock lock(mutex_);
  std::ranges::move(files, std::back_inserter(files_));
  set_waiting(!files_.empty());
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

/// Takes those out that are `which`, to be finished.
template <typename Which>
std::vector<UnfinishedFiles::Unfinished> UnfinishedFiles::take(const Which& which) {
  const NoWaits none;
  const std::scoped_lock lock(mutex_);
  const auto theirs = std::ranges::stable_partition(
      files_, [&](const Unfinished& unfinished) { return !which(unfinished); });
  std::vector<Unfinished> files(std::move_iterator(theirs.begin()),
                                std::move_iterator(theirs.end()));
  files_.erase(theirs.begin(), theirs.end());
  for (const Unfinished& unfinished : files) {
    if (unfinished.file->id) under_way_.push_back(*unfinished.file->id);
  }
  return files;
}

Status UnfinishedFiles::finish(std::vector<Unfinished> files, const std::string& path) {
  const NoWaits none;
  Status worst;
  const auto there = id_at(path.c_str());
  std::vector<Unfinished> failed;
  std::vector<FileId> ended;
  for (Unfinished& unfinished : files) {
    const Status finished = unfinished.held_back->finish();
    if (unfinished.file->reporting) report_growth(unfinished);
    if (unfinished.file->id) ended.push_back(*unfinished.file->id);
    if (finished) continue;
    if (unfinished.is_at(path, there)) {
      worst = finished;
    } else {
      std::fprintf(stderr, "forebay: %s\n", to_string(finished.error()).c_str());
    }
    unfinished.reported = late_counters(unfinished.file->record.counters);
    failed.push_back(std::move(unfinished));
  }
  put_back(std::move(failed));
  {
    const std::scoped_lock lock(mutex_);
    for (const FileId& id : ended) under_way_.erase(std::ranges::find(under_way_, id));
  }
  finished_.notify_all();
  return worst;
}

Status UnfinishedFiles::finish_family(const std::string& path) {
  const std::string family = family_of(path);
  const auto there = id_at(path.c_str());
  return finish(take([&](const Unfinished& unfinished) {
                  return family_of(unfinished.file->record.path) == family ||
                         unfinished.is_at(path, there);
                }),
                path);
}

int UnfinishedFiles::finish_at(const char* path) {
  // The program may be anywhere, in a signal handler, too: nothing is allocated before it is known
  // that the file is one of these.
  const auto there = id_at(path);
  if (!there) return 0;
  const auto is_there = [&](const Unfinished& unfinished) { return unfinished.file->id == there; };
  {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return std::ranges::find(under_way_, *there) == under_way_.end(); });
    if (std::ranges::none_of(files_, is_there)) return 0;
  }
  const Status finished = finish(take(is_there), path);
  if (finished) return 0;
  std::fprintf(stderr, "forebay: %s\n", to_string(finished.error()).c_str());
  return finished.error().os_errno != 0 ? finished.error().os_errno : EIO;
}

void UnfinishedFiles::finish_all() {
  (void)finish(take([](const Unfinished&) { return true; }), "");  // No file has that name.
}

void UnfinishedFiles::abandon_all() {
  const NoWaits none;
  std::vector<Unfinished> files;
  const std::scoped_lock lock(mutex_);
  files.swap(files_);
  set_waiting(false);
}

UnfinishedFiles& unfinished_files() {
  // Never destroyed: threads of its files may be at work when the process ends.
  static UnfinishedFiles& instance = *new UnfinishedFiles;
  return instance;
}

}  // namespace forebay
