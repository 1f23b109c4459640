#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/model/extent.hpp"
#include "core/plan/fetch_piece.hpp"
#include "core/plan/fetch_plan.hpp"
#include "core/plan/fetch_window.hpp"
#include "core/plan/read_advice.hpp"
#include "core/plan/reading_front.hpp"
#include "core/plan/request_tuner.hpp"

namespace forebay {

/// Declared extents, brought into the page cache in their order for a reader that the kernel
/// serves. What was told to be needed and not given up since never exceeds the budget; what the
/// reader has passed makes room for what comes next. Where the reads are known but roughly, any
/// byte of a piece says that the pieces before it were passed. How fast the reader gets on says
/// whether gaps should be brought, too.
class ExtentAdvice final : public ReadAdvice {
 public:
  /// The largest piece that kernels take at their usual read-ahead of 128 KiB from a descriptor of
  /// which FADV_SEQUENTIAL was said: a longer WILLNEED is cut short.
  static constexpr Bytes most_piece = 256 * KiB;

  /// `willneed` as in FetchPlan. `budget`: bytes of the page cache, whole units of transfer. `gap`
  /// as in RequestTuner.
  ExtentAdvice(const std::vector<Extent>& willneed, Bytes file_size, Bytes budget,
               std::optional<Bytes> gap = std::nullopt);

  std::vector<Item> begin() override;
  void tell_time(std::int64_t now_ns) override { now_ns_ = now_ns; }
  void keep_ahead(Ahead ahead) override { ahead_most_ = ahead; }
  std::vector<Item> observe(Extent read) override;
  std::vector<Item> glimpse(Extent read) override;
  std::vector<Item> go_on() override { return begin(); }
  Bytes held() const override { return held_; }
  std::vector<Item> end() override;
  void was_there(bool already) override;
  std::optional<Bytes> gap() const override { return tuner_.gap_for_others(); }
  void take_gap(std::optional<Bytes> gap) override;
  bool foresaw(Extent extent) const override;
  std::vector<Extent> expected() const override;
  bool is_given_up() const override { return is_given_up_; }
  bool is_done() override;

  const FetchPlan& plan() const override { return plan_; }

 private:
  struct Told {
    FetchPiece piece;
    int trial;  ///< Of the tuner.
  };

  Bytes most_held() const;
  void fill(std::vector<Item>& items);
  void drop_oldest(std::vector<Item>& items);
  void pass_current(std::vector<Item>& items);
  void pass_ahead();
  void give_up(std::vector<Item>& items);
  std::vector<Item> follow(Extent read, bool is_glimpse);
  void advance(Extent read, bool is_glimpse);
  bool take_ahead(Extent read);
  bool take_upcoming(Extent read);
  bool find(Extent read);
  bool go_to(Extent read, Kind past);
  bool was_taken(Extent read) const;
  void measure(const Told& told);
  /// What upcoming_ is, cut from the plan if need be.
  std::optional<FetchPiece>& next_piece();

  const Bytes budget_;
  const bool is_ordered_;  ///< The user has said what the gap is.
  FetchPlan plan_;
  RequestTuner tuner_;
  std::int64_t now_ns_ = 0;
  std::optional<FetchPiece> upcoming_;  ///< Cut from the plan, not told.
  std::deque<Told> ahead_;              ///< Told, not read.
  std::deque<FetchPiece> current_;      ///< Being read: must stay.
  std::vector<Item> untold_;            ///< Being read or skipped, and was never told.
  std::deque<FetchPiece> behind_;       ///< Passed, still in the page cache.
  ReadingFront<ReadingPlace> front_;
  Bytes held_ = 0;     ///< Of what was told, as transfers.
  Bytes taken_ = 0;    ///< Of what was told, by those who came to it,
  Bytes in_vain_ = 0;  ///< and left, by those who jumped elsewhere.
  Confidence confidence_;
  bool was_there_ = false;  ///< The last piece,
  int alike_ = 0;           ///< and how many in a row were, or were not.
  int misses_ = 0;          ///< In a row.
  int strays_ = 0;          ///< Reads outside the plan before the first that it foresaw.
  bool was_right_ = false;
  Ahead ahead_most_ = Ahead::all;
  bool is_given_up_ = false;
};

}  // namespace forebay
