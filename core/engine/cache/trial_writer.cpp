#include "core/engine/cache/trial_writer.hpp"

#include <sys/resource.h>

#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/engine/cache/piece_slice.hpp"
#include "core/storage/background_thread.hpp"
#include "core/storage/piece_walk.hpp"

namespace forebay {
namespace {

/// How often this thread had to wait for something.
long waits_of_thread() {
  rusage usage = {};
  return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

/// A part of a trial, which ends whatever happens.
class OpenPart {
 public:
  OpenPart(LogTrial& of, Bytes bytes, bool log_only)
      : trial_(of), part_(of.begin(bytes, log_only)) {}
  ~OpenPart() { trial_.ended(part_, done_, waited_); }
  OpenPart(const OpenPart&) = delete;
  OpenPart& operator=(const OpenPart&) = delete;

  const LogTrial::Part& part() const { return part_; }

  /// Carries it out, on this thread.
  template <typename Work>
  LogWriter::Outcome done_by(const Work& work) {
    const long waits = waits_of_thread();
    LogWriter::Outcome outcome = work();
    done_ = outcome.logged == part_.bytes;
    waited_ = waits_of_thread() != waits;
    return outcome;
  }

 private:
  LogTrial& trial_;
  const LogTrial::Part part_;
  bool done_ = false;
  bool waited_ = false;
};

/// Of a write, the part that goes to the log on a thread of its own while the file is given what
/// lies behind it.
class PartBeside {
 public:
  PartBeside() = default;
  ~PartBeside() { join(); }
  PartBeside(const PartBeside&) = delete;
  PartBeside& operator=(const PartBeside&) = delete;

  /// `work` says what becomes of the bytes from `at` on. After one that failed none begins.
  template <typename Work>
  void begin(Bytes at, Work work) {
    join();
    if (has_failed()) return;
    at_ = at;
    const auto all = [this, work = std::move(work)] { outcome_ = work(); };
    try {
      thread_ = background_thread(all);
    } catch (const std::system_error&) {
      all();
    }
  }

  /// Waits for it. What became of the write if `rest` became of all else.
  LogWriter::Outcome joined(LogWriter::Outcome rest) {
    join();
    if (!has_failed()) return rest;
    outcome_.logged += at_;
    return std::move(outcome_);
  }

 private:
  bool has_failed() const { return outcome_.full || !outcome_.status; }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  Bytes at_ = 0;
  LogWriter::Outcome outcome_;
  std::thread thread_;
};

}  // namespace

TrialWriter::TrialWriter(std::shared_ptr<LogTrial> trial, StorageFile& file, Append append,
                         std::atomic<bool>& wrote_to_file)
    : trial_(std::move(trial)),
      file_(file),
      append_(std::move(append)),
      wrote_to_file_(wrote_to_file) {}

LogWriter::Outcome TrialWriter::write(std::span<const iovec> pieces, Bytes offset) {
  if (is_over()) return append_(pieces, offset);
  const Bytes length = total_bytes(pieces);
  PartBeside beside;
  LogWriter::Outcome outcome;
  while (outcome.logged < length && outcome.status && !outcome.full) {
    const Bytes done = outcome.logged;
    const Extent left{offset + done, length - done};
    auto open = std::make_shared<OpenPart>(*trial_, left.length, was_given(left));
    const LogTrial::Part part = open->part();
    const auto written = slice(pieces, done, part.bytes);
    if (part.way == LogTrial::Way::file) {
      outcome = open->done_by([&] { return write_to_file(written, left.offset, part.bytes); });
    } else {
      give({left.offset, part.bytes});
      const auto log = [this, open = std::move(open), written, at = left.offset] {
        return open->done_by([&] { return append_(written, at); });
      };
      if (part.beside) {
        beside.begin(done, log);
        outcome = {part.bytes, false, {}};
      } else {
        outcome = log();
      }
    }
    outcome.logged += done;
  }
  return beside.joined(std::move(outcome));
}

/// What the file does not take goes to the log; it fails again when that is flushed, and is told
/// then.
LogWriter::Outcome TrialWriter::write_to_file(std::span<const iovec> pieces, Bytes offset,
                                              Bytes length) {
  if (!file_.write_pieces(pieces, offset)) return {};
  wrote_to_file_ = true;
  return {length, false, {}};
}

/// Whether a record of the log may be of `extent`. It could be replayed over what is written to the
/// file, long after it was flushed: where what lay over it is dropped, or until the log says so.
bool TrialWriter::was_given(Extent extent) {
  const std::scoped_lock lock(given_mutex_);
  return all_given_ || given_.overlap(extent) > 0;
}

void TrialWriter::give(Extent extent) {
  const std::scoped_lock lock(given_mutex_);
  given_.add(extent);
  all_given_ = all_given_ || given_.overlap(extent) < extent.length;
}

}  // namespace forebay
