#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "core/engine/prefetch/fetch_buffer.hpp"
#include "core/engine/prefetch/prefetch_figures.hpp"
#include "core/model/extent_set.hpp"
#include "core/model/read_intent.hpp"
#include "core/plan/access_pattern.hpp"
#include "core/plan/fetch_piece.hpp"
#include "core/plan/fetch_plan.hpp"
#include "core/plan/fetch_window.hpp"
#include "core/plan/request_tuner.hpp"
#include "core/storage/fetch_source.hpp"
#include "core/storage/read_queue.hpp"

namespace forebay {

/// One opening of a file that is read ahead of its program. The program asks serve(); what carries
/// out reads in the background asks next_request() and answers with ended(). Thread-safe.
///
/// What is fetched follows the declared extents in their order, or, where nothing is declared or
/// what is declared proves wrong, the pattern of the reads; and where there is none, nothing.
class PrefetchedFile {
 public:
  /// `path`: for messages and figures. `block`: the longest request of a usual shape, as for
  /// FetchWindow. `wake` tells whoever asks next_request() that a reader waits
  /// for it to ask; without it, readers do not wait for what has not begun.
  PrefetchedFile(std::string path, std::unique_ptr<FetchSource> source, ReadIntent intent,
                 FetchBuffer buffer, Bytes block, std::function<void()> wake = nullptr);

  /// Begins to read ahead if the file has settled; else serve() does when it has. `version` and
  /// `now_ns` as for serve().
  void start(const FileVersion& version, std::int64_t now_ns);

  struct Served {
    Bytes bytes = 0;    ///< From the beginning of the read, without a gap.
    bool room = false;  ///< next_request() has something now.
    bool over = false;  ///< Nothing will be served any more.
  };
  /// Copies what was fetched of the bytes from `offset` on, and waits for what is on its way. The
  /// rest is the caller's to read. `version`: of the file, looked at since the program asked. If it
  /// is another one than that which was fetched, nothing is served any more. `now_ns`:
  /// file_clock_ns().
  Served serve(std::span<std::byte> into, Bytes offset, const FileVersion& version,
               std::int64_t now_ns);

  /// What to fetch now; none while the window is full. Its tag is the file's own.
  std::optional<ReadRequest> next_request();
  void ended(const ReadOutcome& outcome);
  /// What fetching for this file cost the thread that does it.
  void count_cpu(std::int64_t nanoseconds);

  /// Nothing is fetched or served any more. `why` is for the figures; the first one counts.
  void stop(const char* why);

  /// After stop(), and when nobody asks next_request() or has a request under way any more: the
  /// descriptor is free.
  void close_source();

  /// There is something to fetch, as serve() told.
  void wake() const {
    if (wake_ != nullptr) wake_();
  }

  /// Nothing of what was declared is left to fetch or to read, or nothing is served any more. Not
  /// if the plan was given up: a later opening would begin with the same one.
  bool is_done();

  /// The byte at `offset` is there, on its way, what is fetched next, or lately was left to the
  /// page cache.
  bool foresees(Bytes offset);

  PrefetchFigures figures() const;
  const std::string& path() const { return path_; }
  const ReadIntent& intent() const { return intent_; }

 private:
  /// A piece that has memory: on its way, or there.
  struct Live {
    std::uint64_t tag;
    FetchPiece wanted;
    Extent held;   ///< What the memory holds or will hold: `wanted` and what shares its units.
    Bytes memory;  ///< Where in the buffer.
    int trial;     ///< Of the tuner.
    FetchWindow::Departure departure{};
    bool ready = false;
    Bytes served = 0;
  };

  using Piece = std::deque<Live>::iterator;

  void begin(const FileVersion& version, std::int64_t now_ns);
  void halt(const char* why);
  Bytes copy(std::span<std::byte> into, Bytes offset, std::unique_lock<std::mutex>& lock);
  void is_slow(std::chrono::steady_clock::time_point deadline);
  void judge(Extent read, Bytes served);
  bool take_resident(Extent read);
  void skip_what_was_read(Extent read);
  void follow_pattern();
  void give_up_plan();
  void replace_plan(FetchPlan plan);
  std::optional<FetchPiece>& next_piece();
  bool leave_to_page_cache(const FetchPiece& piece, Extent held);
  bool make_room(const FetchPiece& piece);
  bool wants_request();
  bool begins_now(Bytes offset);
  Piece holder_of(Bytes offset);
  void release(const Piece& piece);
  void release_ready();

  const std::string path_;
  const ReadIntent intent_;
  std::unique_ptr<FetchSource> source_;  ///< Used by who fetches; null after close_source().
  const std::function<void()> wake_;

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  FetchBuffer buffer_;  ///< Guarded by mutex_, as is what follows.
  enum class State { unsettled, active, stopped } state_ = State::unsettled;
  FileVersion version_;  ///< Of what is fetched, once active.
  FetchPlan plan_;
  ExtentSet declared_;
  ExtentSet fetched_{most_fetched_apart};
  std::optional<FetchPiece> upcoming_;  ///< Cut from the plan, not begun.
  bool by_pattern_ = false;             ///< The plan is a guess.
  AccessPattern pattern_;
  Confidence confidence_;
  FetchWindow window_;
  const std::size_t most_live_;
  RequestTuner tuner_;
  std::deque<Live> live_;  ///< In the order of fetching.
  std::uint64_t next_tag_ = 0;
  ReadingPlace front_;           ///< The furthest that was read.
  std::deque<Extent> resident_;  ///< Left out lately, since the page cache had them.
  int misses_ = 0;               ///< In a row.
  bool was_right_ = false;       ///< Something was read that a plan foresaw.
  int strays_ = 0;               ///< Reads outside the plan before that.
  std::chrono::steady_clock::time_point last_in_vain_;
  int waits_in_vain_ = 0;  ///< In a row, as long as a read may wait, and nothing came.
  PrefetchFigures figures_;
};

}  // namespace forebay
