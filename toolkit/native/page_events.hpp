#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"
#include "core/storage/descriptor.hpp"
#include "core/storage/file.hpp"

struct kbuffer;
struct tep_handle;

namespace forebay {

/// A process looked in the page cache for a part of a file: by a read of any kind, or since it
/// touched a mapping.
struct PageEvent {
  enum class Kind {
    read,    ///< Wants these pages.
    fault,   ///< Wants this page of a mapping.
    around,  ///< Wants one of these pages of a mapping; those that were there were entered along.
    added,   ///< Nobody wants it yet: makes room for these pages, to be filled.
    began,   ///< The thread makes another one.
  } kind;
  FileId file;
  Extent extent;  ///< Whole pages.
  pid_t thread;
  pid_t made = 0;              ///< The one that began.
  bool is_of_process = false;  ///< It is of the same process; else it is one of its own.
};

/// The kernel's tracepoints of the page cache (tracefs, events/filemap), for the children of one
/// process and theirs. They see programs that no library can be preloaded into. One thread's.
class PageEvents {
 public:
  /// Of processes that `parent`, which itself is left out, makes from now on. Mounts tracefs where
  /// it is not mounted. `with_all`: also of the kinds `added`, one a page, which is many, and
  /// `began`. Errors: not allowed (it takes root), or the kernel has no such events.
  static Result<std::unique_ptr<PageEvents>> begin(pid_t parent, bool with_all);
  /// Takes all back that begin() set up.
  ~PageEvents();
  PageEvents(const PageEvents&) = delete;
  PageEvents& operator=(const PageEvents&) = delete;

  /// Calls `seen` for all since the last call, in the order of time; returns how many.
  std::int64_t take(const std::function<void(const PageEvent&)>& seen);

  /// Events that the kernel had no room for; where it does not say how many, at least so many.
  std::int64_t lost() const { return lost_; }

 private:
  PageEvents(pid_t parent, bool with_all) : parent_(parent), with_all_(with_all) {}

  /// A file of tracefs below our own instance.
  std::string place(const std::string& name) const { return instance_ + "/" + name; }
  Status set_up();
  Status read_formats();
  Status open_buffers();
  void take_page(std::vector<std::pair<std::uint64_t, PageEvent>>& found);

  const pid_t parent_;
  const bool with_all_;
  bool is_mounted_ = false;  ///< tracefs, by us.
  std::string instance_;     ///< Its directory; empty: it was not made.
  tep_handle* formats_ = nullptr;
  kbuffer* page_ = nullptr;  ///< Reads what is in content_.
  std::vector<char> content_;
  std::vector<Descriptor> cores_;  ///< Their buffers.
  std::int64_t lost_ = 0;
};

}  // namespace forebay
