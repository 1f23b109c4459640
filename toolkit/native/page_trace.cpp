#include "toolkit/native/page_trace.hpp"

#include <fstream>
#include <string>

namespace forebay {
namespace {

/// The kernel takes 31 at a time (PAGEVEC_SIZE), of which the last is the one that is on its way.
constexpr Bytes most_untold = 30 * Bytes{4096};

}  // namespace

Extent pages_read(Extent around, Extent last_fault) {
  const Extent shared = intersect(around, last_fault);
  if (shared.empty()) return around;
  return {shared.offset, around.end() - shared.offset};
}

Extent read_from_there(Extent read, Extent added) {
  const Bytes untold = read.offset - added.offset;
  const bool begins_there = untold > 0 && untold <= most_untold && read.offset <= added.end();
  return begins_there ? Extent{added.offset, read.end() - added.offset} : read;
}

void PageTrace::add(const PageEvent& event) {
  if (event.kind == PageEvent::Kind::began) {
    // Also where its number was another one's before.
    processes_[event.made] = event.is_of_process ? process_of(event.thread) : event.made;
    return;
  }
  const Key key{event.file, process_of(event.thread)};
  Extent extent = event.extent;
  if (event.kind == PageEvent::Kind::added) {
    Extent& added = added_[key];
    added = added.end() == extent.offset ? hull(added, extent) : extent;
    return;
  }
  if (event.kind == PageEvent::Kind::read) extent = read_from_there(extent, added_[key]);
  added_.erase(key);
  if (event.kind == PageEvent::Kind::fault) faults_[key] = extent;
  if (event.kind == PageEvent::Kind::around) {
    const auto fault = faults_.find(key);
    if (fault != faults_.end()) extent = pages_read(extent, fault->second);
  }
  traces_[key].add(extent);
}

/// Threads of a process read for it, and runtimes like Go's read by any of them. One of which
/// nobody saw the beginning, and that has ended already, stands for itself.
pid_t PageTrace::process_of(pid_t thread) {
  const auto known = processes_.find(thread);
  if (known != processes_.end()) return known->second;
  pid_t process = thread;
  std::ifstream status("/proc/" + std::to_string(thread) + "/status");
  const std::string label = "Tgid:";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(label)) process = std::stoi(line.substr(label.size()));
  }
  processes_.emplace(thread, process);
  return process;
}

}  // namespace forebay
