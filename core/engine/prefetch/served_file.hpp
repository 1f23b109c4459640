#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/engine/prefetch/prefetch_figures.hpp"
#include "core/model/extent.hpp"
#include "core/model/read_intent.hpp"
#include "core/storage/file_version.hpp"
#include "core/storage/read_queue.hpp"

namespace forebay {

/// A reader waits this long for the next of what is on its way, then it reads for itself: whoever
/// fetches may have died or may be stopped, and must not hold the program up.
constexpr std::chrono::seconds longest_wait{1};
/// The deadline of a reader for which something has just come.
constexpr auto not_waiting = std::chrono::steady_clock::time_point::max();
/// In a row: then nothing is read ahead any more.
constexpr int most_waits_in_vain = 3;
/// A read that waits longer than this counts as a stall.
constexpr std::int64_t stall_ns = 1'000'000;

/// One opening of a file that is read ahead of its program, and whose reads are served from what
/// was fetched. The program asks serve(); what carries out reads in the background asks
/// next_request() and answers with ended(). Thread-safe.
class ServedFile {
 public:
  virtual ~ServedFile() = default;

  /// Begins to read ahead if the file has settled; else serve() does when it has. `version` and
  /// `now_ns` as for serve().
  virtual void start(const FileVersion& version, std::int64_t now_ns) = 0;

  struct Served {
    Bytes bytes = 0;    ///< From the beginning of the read, without a gap.
    Bytes wanted = 0;   ///< Of the read, what was declared; all of it where nothing was.
    bool room = false;  ///< next_request() has something now.
    bool over = false;  ///< Nothing will be served any more.
    bool left = false;  ///< Of those who read together it is none any more: it is over, but what is
                        ///< declared may be fetched in other ways.
    bool again = false;   ///< Then: together with others, in other memory.
    bool behind = false;  ///< Then: together with others who were left behind, too.
    bool astray = false;  ///< Then: what is read is not what was declared, but may have a pattern.
    bool asks = false;    ///< How long the kernel takes for the rest: took().
  };
  /// Copies what was fetched of the bytes from `offset` on, and waits for what is on its way. The
  /// rest is the caller's to read. `version`: of the file, looked at since the program asked. If it
  /// is another one than that which was fetched, nothing is served any more. `now_ns`:
  /// file_clock_ns().
  virtual Served serve(std::span<std::byte> into, Bytes offset, const FileVersion& version,
                       std::int64_t now_ns) = 0;

  /// The kernel took `ns`, 0 if it waited for nothing, for `bytes` of a read of which that was
  /// asked.
  virtual void took(Bytes bytes, std::int64_t ns) = 0;

  /// What to fetch now; none while there is no room. Its tag is the file's own.
  virtual std::optional<ReadRequest> next_request() = 0;
  virtual void ended(const ReadOutcome& outcome) = 0;
  /// What fetching for this file cost the thread that does it.
  virtual void count_cpu(std::int64_t nanoseconds) = 0;

  /// Another opening of the program has begun to read at `offset`: what this one was to read from
  /// there on, if it has not come to it, is that one's, and not fetched here.
  virtual void end_before(Bytes offset) = 0;

  /// Nothing is fetched or served any more. `why` is for the figures; the first one counts.
  virtual void stop(const char* why) = 0;

  /// After stop(), and when nobody asks next_request() or has a request under way any more: the
  /// descriptor is free.
  virtual void close_source() = 0;

  /// There is something to fetch, as serve() told.
  virtual void wake() const = 0;

  /// Nothing of what was declared is left to fetch or to read, or nothing is served any more. Not
  /// if the plan was given up: a later opening would begin with the same one.
  virtual bool is_done() = 0;

  /// The byte at `offset` is there, on its way, what is fetched next, or lately was left to the
  /// page cache.
  virtual bool foresees(Bytes offset) = 0;

  virtual PrefetchFigures figures() const = 0;
  virtual const std::string& path() const = 0;
  virtual const ReadIntent& intent() const = 0;
};

}  // namespace forebay
