#include "core/engine/prefetch/block_buffer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <limits>
#include <utility>

#include "core/plan/fetch_plan.hpp"

namespace forebay {

void BlockBuffer::Unmap::operator()(std::byte* memory) const {
  ::munmap(memory, static_cast<std::size_t>(bytes));
}

Result<BlockBuffer> BlockBuffer::make(Bytes bytes, Bytes block) {
  assert(block > 0 && block % direct_alignment == 0);
  const Bytes count = bytes / block;
  if (count < 1 || count > std::numeric_limits<int>::max()) {
    return fail(ENOMEM, "take memory for reading ahead");
  }
  const Bytes length = count * block;
  void* memory = ::mmap(nullptr, static_cast<std::size_t>(length), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return fail(errno, "take memory for reading ahead");
  }
  // A child has no use for it: the thread that fills it is not there.
  ::madvise(memory, static_cast<std::size_t>(length), MADV_DONTFORK);
  return BlockBuffer(
      std::unique_ptr<std::byte, Unmap>(static_cast<std::byte*>(memory), Unmap{length}), block,
      static_cast<int>(count));
}

BlockBuffer::BlockBuffer(std::unique_ptr<std::byte, Unmap> memory, Bytes block, int blocks)
    : memory_(std::move(memory)),
      block_(block),
      blocks_(blocks),
      used_(static_cast<std::size_t>(blocks)) {}

std::optional<int> BlockBuffer::take() {
  const auto place = std::ranges::find(used_, false);
  if (place == used_.end()) return std::nullopt;
  *place = true;
  peak_ = std::max(peak_, ++taken_);
  return static_cast<int>(place - used_.begin());
}

void BlockBuffer::give_back(int index) {
  assert(used_[static_cast<std::size_t>(index)]);
  used_[static_cast<std::size_t>(index)] = false;
  --taken_;
}

std::span<std::byte> BlockBuffer::operator[](int index) const {
  assert(index >= 0 && index < blocks_);
  return {memory_.get() + index * block_, static_cast<std::size_t>(block_)};
}

}  // namespace forebay
