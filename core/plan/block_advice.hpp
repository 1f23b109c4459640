#pragma once

#include <deque>
#include <vector>

#include "core/model/extent.hpp"
#include "core/model/read_intent.hpp"
#include "core/plan/read_advice.hpp"

namespace forebay {

/// The advice of [MERCURY]: as the program reads, the blocks that follow are announced to the
/// kernel, and those announced longest ago are given up, so that what a reader takes of the page
/// cache stays the same. Blocks of which nothing was declared are left out.
class BlockAdvice final : public ReadAdvice {
 public:
  struct Shape {
    Bytes block = 4 * MiB;  ///< BlockSize.
    int cached = 8;         ///< CacheSize: blocks announced and not given up, at most.
    int ahead = 4;          ///< ReadAheadSize: blocks announced beyond those that are read.
  };

  /// As declared, or as above: blocks of whole pages, of 1 GiB at most, no more ahead than are
  /// kept.
  static Shape shape_of(const ReadIntent& wishes);

  /// `willneed` as in FetchPlan; none is the whole file.
  BlockAdvice(std::vector<Extent> willneed, Bytes file_size, Shape shape);

  const FetchPlan& plan() const override { return plan_; }
  std::vector<Item> observe(Extent read) override;
  Bytes held() const override;

 private:
  Extent block_at(Bytes index) const;
  bool is_declared(Extent block) const;

  const std::vector<Extent> willneed_;
  const Bytes file_size_;
  const FetchPlan plan_;
  const Shape shape_;
  std::deque<Bytes> announced_;  ///< Indices of blocks, in the order of their announcement.
};

}  // namespace forebay
