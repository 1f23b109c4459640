#include "core/engine/prefetch/fetch_buffer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "core/storage/own_mapping.hpp"

namespace forebay {

void FetchBuffer::Unmap::operator()(std::byte* memory) const {
  unmap_own(memory, static_cast<std::size_t>(bytes));
}

Result<FetchBuffer> FetchBuffer::make(Bytes bytes) {
  const Bytes usable = round_down(bytes, direct_alignment);
  if (usable <= 0) return fail(ENOMEM, "take memory for reading ahead");
  const bool has_large = usable >= large_page;
  const Bytes length = usable + (has_large ? large_page : 0);
  void* memory = ::mmap(nullptr, static_cast<std::size_t>(length), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return fail(errno, "take memory for reading ahead");
  // A child has no use for it: the thread that fills it is not there.
  ::madvise(memory, static_cast<std::size_t>(length), MADV_DONTFORK);
  auto* begin = static_cast<std::byte*>(memory);
  if (has_large) {
    const auto address = static_cast<Bytes>(reinterpret_cast<std::uintptr_t>(begin));
    begin += round_up(address, large_page) - address;
    ::madvise(begin, static_cast<std::size_t>(round_down(usable, large_page)), MADV_HUGEPAGE);
  }
  return FetchBuffer(
      std::unique_ptr<std::byte, Unmap>(static_cast<std::byte*>(memory), Unmap{length}), begin,
      usable);
}

FetchBuffer::FetchBuffer(std::unique_ptr<std::byte, Unmap> memory, std::byte* begin, Bytes bytes)
    : memory_(std::move(memory)), begin_(begin), bytes_(bytes) {}

std::optional<Bytes> FetchBuffer::place_for(Bytes length) const {
  Bytes place = 0;
  for (const auto& [from, held] : taken_) {
    if (from - place >= length) return place;
    place = from + held;
  }
  if (bytes_ - place < length) return std::nullopt;
  return place;
}

std::optional<Bytes> FetchBuffer::take(Bytes length) {
  assert(length > 0);
  const Bytes rounded = round_up(length, direct_alignment);
  const auto place = place_for(rounded);
  if (!place) return std::nullopt;
  taken_.emplace(*place, rounded);
  held_ += rounded;
  peak_ = std::max(peak_, held_);
  return place;
}

void FetchBuffer::give_back(Bytes place) {
  const auto range = taken_.find(place);
  assert(range != taken_.end());
  held_ -= range->second;
  taken_.erase(range);
}

std::span<std::byte> FetchBuffer::at(Bytes place, Bytes length) const {
  assert(place >= 0 && place + length <= bytes_);
  return {begin_ + place, static_cast<std::size_t>(length)};
}

}  // namespace forebay
