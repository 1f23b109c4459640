#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/engine/prefetch/piece_trial.hpp"
#include "core/engine/prefetch/request_memory.hpp"
#include "core/engine/prefetch/served_file.hpp"
#include "core/engine/prefetch/shared_window.hpp"
#include "core/model/extent_set.hpp"
#include "core/model/read_intent.hpp"
#include "core/plan/fetch_piece.hpp"
#include "core/plan/fetch_plan.hpp"
#include "core/plan/fetch_window.hpp"
#include "core/plan/plan_places.hpp"
#include "core/plan/reading_front.hpp"
#include "core/plan/request_tuner.hpp"
#include "core/plan/shared_reading.hpp"
#include "core/storage/fetch_source.hpp"

namespace forebay {

/// Read ahead together with other processes of the node that read the same file by the same plan,
/// into memory that they share. One of them fetches, all are served. Who reads something else, or
/// cannot keep up, goes on without the others.
class SharedFile final : public ServedFile {
 public:
  /// The window for a file that is read by `intent`, in requests of up to `block` and `bytes` of
  /// memory. Null: there is none for it, nothing is declared, or the file has not settled. Another
  /// `group` is for those who are too far from the first one, and so on.
  static std::unique_ptr<SharedWindow> window_for(const FileVersion& version,
                                                  const ReadIntent& intent, Bytes block,
                                                  Bytes bytes, std::int64_t now_ns, int group = 0);

  /// `window`: of this version, intent and block. `before`: what the program has read of it until
  /// now; if the others are too far from there, is_done(). `wake`, `memory`: as for PrefetchedFile.
  SharedFile(std::string path, std::unique_ptr<FetchSource> source, ReadIntent intent,
             std::unique_ptr<SharedWindow> window, const FileVersion& version, Bytes block,
             const SharedWindow::Before& before, std::function<void()> wake,
             std::shared_ptr<RequestMemory> memory = std::make_shared<RequestMemory>());
  ~SharedFile() override;
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  /// Nothing is fetched for it before its first read: others are not to wait for one that has the
  /// file open and does not read.
  void start(const FileVersion&, std::int64_t) override {}
  Served serve(std::span<std::byte> into, Bytes offset, const FileVersion& version,
               std::int64_t now_ns) override;
  void took(Bytes bytes, std::int64_t ns) override;
  std::optional<ReadRequest> next_request() override;
  void ended(const ReadOutcome& outcome) override;
  void count_cpu(std::int64_t nanoseconds) override;
  void end_before(Bytes offset) override;
  void stop(const char* why) override;
  void close_source() override;
  void wake() const override { wake_(); }
  bool is_done() override;
  bool foresees(Bytes offset) override;
  /// The process ends: nobody shares anything with it any more. Waits until `deadline` for what is
  /// on its way; if that comes no more, it is as if it had been killed.
  void finish(std::chrono::steady_clock::time_point deadline);
  PrefetchFigures figures() const override;
  const std::string& path() const override { return path_; }
  const ReadIntent& intent() const override { return intent_; }

 private:
  /// What this one has on its way.
  struct UnderWay {
    std::uint64_t number;  ///< Of the window's piece.
    FetchPiece wanted;
    Extent held;
    int trial;  ///< Of the tuner.
    FetchWindow::Departure departure{};
  };

  void answer_others();
  bool stops_answering(std::chrono::steady_clock::time_point deadline);
  void end_answering();
  void halt(const char* why);
  enum class Leaves { alone, behind };
  void leave(const char* why, Leaves how = Leaves::alone);
  bool begin(Extent read);
  Bytes copy(std::span<std::byte> into, Bytes offset, bool& passes,
             std::unique_lock<std::mutex>& lock);
  bool is_coming(Bytes place) const;
  bool is_in_reach(Bytes place) const;
  bool wait(std::unique_lock<std::mutex>& lock, std::uint32_t seen,
            std::chrono::steady_clock::time_point deadline, std::optional<Bytes> place);
  void wait_for_others(Bytes place, std::int64_t now_ns);
  void judge(Extent read, Bytes served);
  bool is_first_at(Bytes offset) const;
  bool is_declared(Extent read) const;
  std::optional<Bytes> place_of(Extent read, Bytes from) const;
  bool come_to(Extent read);
  void pass(Extent read, bool passes);
  void pass_to_front();
  void give_up_plan();

  void follow_plan(FetchPlan plan);
  bool lacks_fetching() const;
  bool is_over_for_this_one() const;
  bool begin_fetching();
  void follow_cursor();
  std::optional<FetchPiece>& next_piece();
  void take_out_what_is_held(FetchPiece& piece) const;
  bool go_past();
  bool leave_to_page_cache(const FetchPiece& piece, Extent held);
  bool has_room_for(const FetchPiece& piece, Bytes begin);
  std::optional<ReadRequest> fetch(const FetchPiece& piece, Bytes begin);

  const std::string path_;
  const ReadIntent intent_;
  std::unique_ptr<FetchSource> source_;  ///< Used by who fetches; null after close_source().
  const FileVersion version_;            ///< Of what is fetched.
  const Bytes block_;
  const SharedWindow::Before before_;
  const std::function<void()> wake_;
  const std::shared_ptr<RequestMemory> memory_;
  const std::unique_ptr<SharedWindow> window_;

  mutable std::mutex mutex_;
  /// Guarded by mutex_, as is what follows.
  enum class State { waiting, reading, left, stopped } state_ = State::waiting;
  FetchPlan plan_;
  PlanPlaces places_;
  ExtentSet fetched_{most_fetched_apart};
  ReadingFront<Bytes> front_;
  Confidence confidence_;
  Leaves how_left_ = Leaves::alone;
  int misses_ = 0;  ///< In a row: declared, but not where the others read, or it waits.
  int strays_ = 0;  ///< Reads outside the plan before the first one inside.
  std::optional<Bytes> first_place_;  ///< Of the last read of the plan, while it waits.
  LaggardPatience patience_;
  std::chrono::steady_clock::time_point last_in_vain_;
  int waits_in_vain_ = 0;     ///< In a row.
  int looks_for_itself_ = 0;  ///< In a row.

  // While it is this one that fetches.
  Bytes cursor_ = -1;                   ///< Where plan_ is; -1: it has to go where the others are.
  std::optional<FetchPiece> upcoming_;  ///< Cut from the plan, not begun.
  RequestTuner tuner_;
  FetchWindow measured_;  ///< For the figures.
  std::vector<UnderWay> under_way_;
  int resident_ = 0;  ///< Pieces in a row that the page cache had.
  PieceTrial trial_;

  PrefetchFigures figures_;
  std::atomic<bool> is_ending_{false};
  std::atomic<bool> has_answered_{false};  ///< Its thread looks at the window no more.
  /// Others ask whether this process goes on, and wake its fetching. There is none before that.
  std::thread answering_;
};

}  // namespace forebay
