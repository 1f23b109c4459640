#include "core/intercept/mpi/unfinished_files.hpp"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "core/intercept/mpi/file_name.hpp"
#include "core/intercept/mpi/own_code.hpp"
#include "core/intercept/mpi/settings.hpp"
#include "core/intercept/path_waits.h"
#include "core/intercept/posix/cancellation.hpp"

namespace forebay {
namespace {

int wait_for(const char* path, int moves) {
  const posix::NotCancelled until_it_is_whole;
  return NoWaits::hold_here() ? 0 : unfinished_files().finish_at(path, moves != 0);
}

/// Whether the program's own calls, past MPI, wait for files.
void set_waiting(bool waits) {
  static const auto wait_at_paths = reinterpret_cast<forebay_wait_at_paths_function*>(
      ::dlsym(RTLD_DEFAULT, "forebay_wait_at_paths"));
  if (wait_at_paths != nullptr) wait_at_paths(waits ? wait_for : nullptr, &__ehdr_start, &etext);
}

/// Names may change, and a link has one of its own: `there` is what `path` names now.
bool is_at(const OpenFile& file, const std::string& path, const std::optional<FileId>& there) {
  return file.record.path == path || (there && file.id == there);
}

/// Whether one of the directories that lead to the file, by its name without links, is `there`.
/// Allocates nothing.
bool is_below(const OpenFile& file, const std::optional<FileId>& there) {
  std::array<char, PATH_MAX> path{};
  const std::string& name = file.real_path;
  if (name.size() >= path.size()) return false;
  name.copy(path.data(), name.size());
  for (char* slash = std::strrchr(path.data(), '/'); slash != nullptr && slash != path.data();
       slash = std::strrchr(path.data(), '/')) {
    *slash = '\0';
    if (id_at(path.data()) == there) return true;
  }
  return false;
}

}  // namespace

thread_local bool NoWaits::hold_ = false;

void UnfinishedFiles::add(std::shared_ptr<OpenFile> file, std::unique_ptr<HeldBack> held_back) {
  const NoWaits none;
  const LateCounters reported = late_counters(file->record.counters);
  std::array<char, PATH_MAX> real{};
  if (::realpath(file->record.path.c_str(), real.data()) != nullptr) file->real_path = real.data();
  const std::scoped_lock lock(mutex_);
  files_.push_back({std::move(file), std::move(held_back), reported});
  tell_waiting();
}

/// With mutex_ held.
void UnfinishedFiles::tell_waiting() const { set_waiting(!files_.empty() || !under_way_.empty()); }

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
  return files_.empty() && under_way_.empty();
}

/// Takes those out that are `which`, to be finished, once no other thread is at one of them: what
/// it could not finish is among those again.
template <typename Which>
std::vector<UnfinishedFiles::Unfinished> UnfinishedFiles::take(const Which& which) {
  const NoWaits none;
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] {
    return std::ranges::none_of(under_way_, [&](const auto& file) { return which(*file); });
  });
  const auto theirs = std::ranges::stable_partition(
      files_, [&](const Unfinished& unfinished) { return !which(*unfinished.file); });
  under_way_.reserve(under_way_.size() + theirs.size());  // Before any is moved.
  std::vector<Unfinished> files(std::move_iterator(theirs.begin()),
                                std::move_iterator(theirs.end()));
  files_.erase(theirs.begin(), theirs.end());
  for (const Unfinished& unfinished : files) under_way_.push_back(unfinished.file);
  return files;
}

/// What was taken and is not finished may be tried again, and who waits for it goes on, whatever
/// ended the attempt.
void UnfinishedFiles::give_back(std::vector<Unfinished>& files) noexcept {
  const std::scoped_lock lock(mutex_);
  for (Unfinished& unfinished : files) {
    under_way_.erase(std::ranges::find(under_way_, unfinished.file));
    if (unfinished.held_back == nullptr) continue;
    try {
      files_.push_back(std::move(unfinished));
    } catch (const std::bad_alloc&) {
      std::fputs("forebay: no memory to go on with a file that was closed early: its logs stay\n",
                 stderr);
    }
  }
  tell_waiting();
  finished_.notify_all();
}

/// Error: that of a file which is `meant`; another one's is told.
template <typename Meant>
Status UnfinishedFiles::finish(std::vector<Unfinished> files, const Meant& meant) {
  const NoWaits none;
  struct GivenBack {
    ~GivenBack() { all.give_back(files); }
    UnfinishedFiles& all;
    std::vector<Unfinished>& files;
  };
  const GivenBack at_the_end{*this, files};
  Status worst;
  for (Unfinished& unfinished : files) {
    const Status finished = unfinished.held_back->finish();
    if (unfinished.file->reporting) report_growth(unfinished);
    unfinished.reported = late_counters(unfinished.file->record.counters);
    if (finished) {
      unfinished.held_back.reset();
    } else if (meant(*unfinished.file)) {
      worst = finished;
    } else {
      std::fprintf(stderr, "forebay: %s\n", to_string(finished.error()).c_str());
    }
  }
  return worst;
}

Status UnfinishedFiles::finish_family(const std::string& path) {
  const std::string family = family_of(path);
  const auto there = id_at(path.c_str());
  const auto is_it = [&](const OpenFile& file) { return is_at(file, path, there); };
  return finish(take([&](const OpenFile& file) {
                  return family_of(file.record.path) == family || is_it(file);
                }),
                is_it);
}

int UnfinishedFiles::finish_at(const char* path, bool moves) {
  // The program may be anywhere, in a signal handler, too: nothing is allocated before it is known
  // that the file is one of these.
  const auto there = id_at(path);
  if (!there) return 0;
  struct stat status{};
  const bool moves_more = moves && ::stat(path, &status) == 0 && S_ISDIR(status.st_mode);
  const auto is_there = [&](const OpenFile& file) {
    return file.id == there || (moves_more && is_below(file, there));
  };
  {
    const std::scoped_lock lock(mutex_);
    if (std::ranges::none_of(files_, [&](const auto& one) { return is_there(*one.file); }) &&
        std::ranges::none_of(under_way_, [&](const auto& file) { return is_there(*file); })) {
      return 0;
    }
  }
  const Status finished = finish(take(is_there), is_there);
  if (finished) return 0;
  std::fprintf(stderr, "forebay: %s\n", to_string(finished.error()).c_str());
  return finished.error().os_errno != 0 ? finished.error().os_errno : EIO;
}

void UnfinishedFiles::finish_all() {
  const auto any = [](const OpenFile&) { return true; };
  const auto none = [](const OpenFile&) { return false; };
  (void)finish(take(any), none);
}

void UnfinishedFiles::abandon_all() {
  const NoWaits none;
  std::vector<Unfinished> files;
  const std::scoped_lock lock(mutex_);
  files.swap(files_);
  tell_waiting();
}

UnfinishedFiles& unfinished_files() {
  // Never destroyed: threads of its files may be at work when the process ends.
  static UnfinishedFiles& instance = *new UnfinishedFiles;
  return instance;
}

}  // namespace forebay
