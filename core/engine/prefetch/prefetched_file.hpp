#pragma once

#include <atomic>
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
#include <vector>

#include "core/engine/prefetch/fetch_buffer.hpp"
#include "core/engine/prefetch/piece_trial.hpp"
#include "core/engine/prefetch/prefetch_figures.hpp"
#include "core/engine/prefetch/request_memory.hpp"
#include "core/engine/prefetch/served_file.hpp"
#include "core/model/extent_set.hpp"
#include "core/model/read_intent.hpp"
#include "core/plan/access_pattern.hpp"
#include "core/plan/fetch_piece.hpp"
#include "core/plan/fetch_plan.hpp"
#include "core/plan/fetch_window.hpp"
#include "core/plan/reading_front.hpp"
#include "core/plan/request_tuner.hpp"
#include "core/storage/fetch_source.hpp"
#include "core/storage/read_queue.hpp"

namespace forebay {

/// Read ahead into memory of the process.
///
/// What is fetched follows the declared extents in their order, or, where nothing is declared or
/// what is declared proves wrong, the pattern of the reads; and where there is none, nothing.
class PrefetchedFile final : public ServedFile {
 public:
  /// `path`: for messages and figures. `block`: the longest request of a usual shape, as for
  /// FetchWindow. `wake` tells whoever asks next_request() that a reader waits
  /// for it to ask; without it, readers do not wait for what has not begun. `memory`: of earlier
  /// files.
  PrefetchedFile(std::string path, std::unique_ptr<FetchSource> source, ReadIntent intent,
                 FetchBuffer buffer, Bytes block, std::function<void()> wake = nullptr,
                 std::shared_ptr<RequestMemory> memory = std::make_shared<RequestMemory>());

  void start(const FileVersion& version, std::int64_t now_ns) override;
  Served serve(std::span<std::byte> into, Bytes offset, const FileVersion& version,
               std::int64_t now_ns) override;
  void took(Bytes bytes, std::int64_t ns) override;
  std::optional<ReadRequest> next_request() override;
  void ended(const ReadOutcome& outcome) override;
  void count_cpu(std::int64_t nanoseconds) override;
  void end_before(Bytes offset) override;
  void stop(const char* why) override;
  void close_source() override;
  void wake() const override {
    if (wake_ != nullptr) wake_();
  }
  bool is_done() override;
  bool foresees(Bytes offset) override;
  PrefetchFigures figures() const override;
  const std::string& path() const override { return path_; }
  const ReadIntent& intent() const override { return intent_; }

 private:
  /// A piece that has memory: on its way, or there.
  struct Live {
    std::uint64_t tag;
    FetchPiece wanted;
    Extent held;   ///< What the memory holds or will hold: `wanted` and what shares its units.
    Bytes memory;  ///< Where in the buffer.
    int trial;     ///< Of the tuner.
    FetchWindow::Departure departure{};
    std::vector<Extent> absent = {};  ///< Of `held`, what the page cache did not have before.
    bool ready = false;
    Bytes served = 0;
    ExtentSet used{};  ///< Of `held`, what was served.

    /// Bytes that were fetched for nothing until now. What lies between extents counts apart.
    Bytes unused() const;
  };

  using Piece = std::deque<Live>::iterator;

  void begin(const FileVersion& version, std::int64_t now_ns);
  void halt(const char* why);
  Bytes copy(std::span<std::byte> into, Bytes offset, std::unique_lock<std::mutex>& lock);
  void is_slow(std::chrono::steady_clock::time_point deadline);
  void judge(Extent read, Bytes served);
  bool is_of_plan(Extent read) const;
  bool take_resident(Extent read);
  void skip_what_was_read(Extent read);
  void follow_pattern();
  void give_up_plan();
  void replace_plan(FetchPlan plan);
  void restore_plan(Extent read);
  std::optional<FetchPiece>& next_piece();
  bool leave_to_page_cache(const FetchPiece& piece, Extent held);
  bool make_room(const FetchPiece& piece);
  bool wants_request();
  bool begins_now(Extent read, std::optional<bool>& passes);
  Piece holder_of(Bytes offset);
  void release(const Piece& piece);
  void release_ready();
  void drop_brought(const std::vector<Extent>& brought, bool is_whole);

  const std::string path_;
  const ReadIntent intent_;
  std::unique_ptr<FetchSource> source_;  ///< Used by who fetches; null after close_source().
  const std::function<void()> wake_;
  const std::shared_ptr<RequestMemory> memory_;
  /// Whether its reads leave pages in the page cache, which the first request shows: not every file
  /// system that takes O_DIRECT goes past it, and before Linux 6.5 the kernel does not tell.
  enum class Leaves { unknown, nothing, pages };
  std::atomic<Leaves> leaves_{Leaves::unknown};

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  FetchBuffer buffer_;  ///< Guarded by mutex_, as is what follows.
  enum class State { unsettled, active, stopped } state_ = State::unsettled;
  FileVersion version_;  ///< Of what is fetched, once active.
  PieceTrial trial_;
  FetchPlan plan_;
  ExtentSet declared_;
  ExtentSet fetched_{most_fetched_apart};
  std::optional<FetchPiece> upcoming_;  ///< Cut from the plan, not begun.
  bool is_cut_ = false;                 ///< The plan is, by end_before().
  bool by_pattern_ = false;             ///< It is a guess.
  AccessPattern pattern_;
  Confidence confidence_;
  FetchWindow window_;
  const std::size_t most_live_;
  RequestTuner tuner_;
  std::deque<Live> live_;  ///< In the order of fetching.
  std::uint64_t next_tag_ = 0;
  ReadingFront<ReadingPlace> front_;
  std::deque<Extent> resident_;  ///< Left out lately, since the page cache had them.
  int misses_ = 0;               ///< In a row.
  bool was_right_ = false;       ///< Something was read that a plan foresaw.
  int strays_ = 0;               ///< Reads outside the plan before that.
  std::chrono::steady_clock::time_point last_in_vain_;
  int waits_in_vain_ = 0;  ///< In a row, as long as a read may wait, and nothing came.
  PrefetchFigures figures_;
};

}  // namespace forebay
