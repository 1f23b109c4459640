#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/model/read_trace.hpp"
#include "core/storage/file.hpp"
#include "toolkit/native/page_events.hpp"

namespace forebay {

/// What processes read of files, in whole pages, each in its order. One thread's.
class PageTrace {
 public:
  void add(const PageEvent& event);

  struct Key {
    FileId file;
    pid_t process;
    auto operator<=>(const Key&) const = default;
  };
  const std::map<Key, ReadTrace>& traces() const { return traces_; }

 private:
  pid_t process_of(pid_t thread);

  std::map<Key, ReadTrace> traces_;
  std::map<Key, Extent> faults_;  ///< The last one of each mapping.
  std::map<Key, Extent> added_;   ///< Neighbours, since the last read.
  std::unordered_map<pid_t, pid_t> processes_;
};

/// What is read where the kernel tells of `read`, and has added these pages for it. It tells
/// nothing of the first pages of a read if those behind them are still on their way (Linux 6.18,
/// filemap_get_pages()), but begins with the next ones then.
Extent read_from_there(Extent read, Extent added);

/// Of the pages that were entered around one that was touched, those that may have been read: after
/// a fault in the same window they begin with it, since before there was nothing to enter.
Extent pages_read(Extent around, Extent last_fault);

}  // namespace forebay
