#include "core/engine/collective/copy_runs.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace forebay {
namespace {

/// Shorter blocks are mostly partial lines, of which stores past the caches make slow writes.
constexpr Bytes least_uncached_block = 512;

#ifdef __SSE2__
/// memcpy with stores past the caches. finish_uncached() orders them before what follows.
void copy_uncached(std::byte* to, const std::byte* from, Bytes length) {
  constexpr Bytes line = 64;
  const Bytes head = -reinterpret_cast<std::intptr_t>(to) & (line - 1);
  std::memcpy(to, from, static_cast<std::size_t>(head));
  Bytes at = head;
  for (; at + line <= length; at += line) {
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    const __m128i first = _mm_loadu_si128(source);
    const __m128i second = _mm_loadu_si128(source + 1);
    const __m128i third = _mm_loadu_si128(source + 2);
    const __m128i fourth = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, first);
    _mm_stream_si128(target + 1, second);
    _mm_stream_si128(target + 2, third);
    _mm_stream_si128(target + 3, fourth);
  }
  std::memcpy(to + at, from + at, static_cast<std::size_t>(length - at));
}
void finish_uncached() { _mm_sfence(); }
#else
void copy_uncached(std::byte* to, const std::byte* from, Bytes length) {
  std::memcpy(to, from, static_cast<std::size_t>(length));
}
void finish_uncached() {}
#endif

/// One side of a copy: `left` equal blocks, of the first of which `within` bytes are done.
struct Side {
  std::byte* at = nullptr;  ///< The first block.
  Bytes block = 0;
  Bytes stride = 0;
  std::int64_t left = 0;
  Bytes within = 0;

  Bytes rest() const { return block - within; }
  std::byte* next() const { return at + within; }

  void skip_blocks(std::int64_t count) {
    at += count * stride;
    left -= count;
  }
  /// At most rest().
  void skip_bytes(Bytes count) {
    within += count;
    if (within == block) {
      within = 0;
      skip_blocks(1);
    }
  }
};

/// With the length known to the compiler, a block is a few moves instead of a call.
template <std::size_t length>
void copy_blocks_of(std::byte* to, Bytes to_stride, const std::byte* from, Bytes from_stride,
                    std::int64_t count) {
  for (; count > 0; --count) {
    std::memcpy(to, from, length);
    to += to_stride;
    from += from_stride;
  }
}

void copy_blocks(std::byte* to, Bytes to_stride, const std::byte* from, Bytes from_stride,
                 Bytes length, std::int64_t count) {
  if (count == 1 || (to_stride == length && from_stride == length)) {
    std::memcpy(to, from, static_cast<std::size_t>(length * count));
    return;
  }
  switch (length) {
    case 1:
      return copy_blocks_of<1>(to, to_stride, from, from_stride, count);
    case 2:
      return copy_blocks_of<2>(to, to_stride, from, from_stride, count);
    case 4:
      return copy_blocks_of<4>(to, to_stride, from, from_stride, count);
    case 8:
      return copy_blocks_of<8>(to, to_stride, from, from_stride, count);
    case 12:
      return copy_blocks_of<12>(to, to_stride, from, from_stride, count);
    case 16:
      return copy_blocks_of<16>(to, to_stride, from, from_stride, count);
    case 24:
      return copy_blocks_of<24>(to, to_stride, from, from_stride, count);
    case 32:
      return copy_blocks_of<32>(to, to_stride, from, from_stride, count);
    case 40:  // A cell of NAS BT-IO.
      return copy_blocks_of<40>(to, to_stride, from, from_stride, count);
    case 48:
      return copy_blocks_of<48>(to, to_stride, from, from_stride, count);
    case 64:
      return copy_blocks_of<64>(to, to_stride, from, from_stride, count);
    default:
      for (; count > 0; --count) {
        std::memcpy(to, from, static_cast<std::size_t>(length));
        to += to_stride;
        from += from_stride;
      }
  }
}

void copy_blocks_uncached(std::byte* to, Bytes to_stride, const std::byte* from, Bytes from_stride,
                          Bytes length, std::int64_t count) {
  if (to_stride == length && from_stride == length) {
    length *= count;
    count = 1;
  }
  if (length < least_uncached_block) {
    copy_blocks(to, to_stride, from, from_stride, length, count);
    return;
  }
  for (; count > 0; --count) {
    copy_uncached(to, from, length);
    to += to_stride;
    from += from_stride;
  }
}

/// How many blocks of `length` fit into `room`, at most `count`. A division costs as much as
/// copying several small blocks, and mostly they all fit.
std::int64_t blocks_in(Bytes room, Bytes length, std::int64_t count) {
  return count * length <= room ? count : room / length;
}

/// Copies until one side is used up.
void copy_sides(Side& memory, Side& file, Direction direction) {
  const auto copy = [&](Bytes memory_stride, Bytes file_stride, Bytes length, std::int64_t count) {
    if (direction == Direction::gather) {
      copy_blocks(file.next(), file_stride, memory.next(), memory_stride, length, count);
    } else if (direction == Direction::scatter) {
      copy_blocks(memory.next(), memory_stride, file.next(), file_stride, length, count);
    } else {
      copy_blocks_uncached(memory.next(), memory_stride, file.next(), file_stride, length, count);
    }
  };
  while (memory.left > 0 && file.left > 0) {
    if (memory.within == 0 && file.within == 0 && memory.block == file.block) {
      const std::int64_t count = std::min(memory.left, file.left);
      copy(memory.stride, file.stride, file.block, count);
      memory.skip_blocks(count);
      file.skip_blocks(count);
    } else if (file.within == 0 && memory.rest() >= file.block) {
      // The memory block holds several blocks of the file.
      const std::int64_t count = blocks_in(memory.rest(), file.block, file.left);
      copy(file.block, file.stride, file.block, count);
      file.skip_blocks(count);
      memory.skip_bytes(count * file.block);
    } else if (memory.within == 0 && file.rest() >= memory.block) {
      const std::int64_t count = blocks_in(file.rest(), memory.block, memory.left);
      copy(memory.stride, memory.block, memory.block, count);
      memory.skip_blocks(count);
      file.skip_bytes(count * memory.block);
    } else {
      const Bytes length = std::min(memory.rest(), file.rest());
      copy(0, 0, length, 1);
      memory.skip_bytes(length);
      file.skip_bytes(length);
    }
  }
}

}  // namespace

std::byte* address_of(Bytes offset) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): in a buffer's tree, offsets are addresses.
  return reinterpret_cast<std::byte*>(static_cast<std::intptr_t>(offset));
}

void copy_run(TreeCursor& memory, const Run& file_run, std::byte* image, Bytes image_origin,
              Direction direction) {
  const Bytes end = memory.data_position() + file_run.bytes();
  Side file{image + (file_run.offset - image_origin), file_run.block, file_run.stride,
            file_run.count};
  for (Run run; file.left > 0 && memory.next(end, run);) {
    Side piece{address_of(run.offset), run.block, run.stride, run.count};
    copy_sides(piece, file, direction);
  }
  if (direction == Direction::scatter_uncached) finish_uncached();
}

void copy_contiguous(TreeCursor& memory, std::byte* buffer, Bytes length, Direction direction) {
  if (length > 0) copy_run(memory, {0, length, 0, 1}, buffer, 0, direction);
}

}  // namespace forebay
