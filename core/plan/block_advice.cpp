#include "core/plan/block_advice.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/model/direct_io.hpp"

namespace forebay {
namespace {

/// Each block that is announced is looked for among these.
constexpr Bytes most_kept = 4096;

}  // namespace

BlockAdvice::Shape BlockAdvice::shape_of(const ReadIntent& wishes) {
  Shape shape;
  shape.block =
      round_up(std::clamp<Bytes>(wishes.block.value_or(shape.block), 1, GiB), direct_alignment);
  if (wishes.budget) {
    shape.cached = static_cast<int>(std::clamp<Bytes>(*wishes.budget / shape.block, 1, most_kept));
  }
  shape.ahead = std::clamp(wishes.ahead.value_or(shape.ahead), 0, shape.cached - 1);
  return shape;
}

BlockAdvice::BlockAdvice(std::vector<Extent> willneed, Bytes file_size, Shape shape)
    : willneed_(std::move(willneed)),
      file_size_(file_size),
      plan_(willneed_, file_size),
      shape_(shape) {
  assert(shape.block > 0 && shape.cached > 0 && shape.ahead >= 0);
}

Extent BlockAdvice::block_at(Bytes index) const {
  return intersect({index * shape_.block, shape_.block}, {0, file_size_});
}

bool BlockAdvice::is_declared(Extent block) const {
  return willneed_.empty() || std::ranges::any_of(willneed_, [&](const Extent& given) {
           return !intersect(in_file(given, file_size_), block).empty();
         });
}

std::vector<ReadAdvice::Item> BlockAdvice::observe(Extent read) {
  const Extent inside = intersect(read, {0, file_size_});
  if (inside.empty()) return {};
  std::vector<Item> result;
  const Bytes last = (inside.end() - 1) / shape_.block;
  Bytes index = inside.offset / shape_.block;
  const Bytes last_of_file = (file_size_ - 1) / shape_.block;
  for (int beyond = 0; beyond <= shape_.ahead && index <= last_of_file; ++index) {
    const Extent block = block_at(index);
    if (index >= last) ++beyond;
    if (!is_declared(block) || std::ranges::find(announced_, index) != announced_.end()) continue;
    announced_.push_back(index);
    result.push_back({block, true});
  }
  while (announced_.size() > static_cast<std::size_t>(shape_.cached)) {
    result.push_back({block_at(announced_.front()), false});
    announced_.pop_front();
  }
  return result;
}

Bytes BlockAdvice::held() const {
  Bytes bytes = 0;
  for (const Bytes index : announced_) bytes += block_at(index).length;
  return bytes;
}

}  // namespace forebay
