#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/engine/cache/bell.hpp"
#include "core/model/extent.hpp"

namespace forebay {

// What the readers of a SharedWindow have in common beside the pieces of the file. All of it is
// valid as zeros.

constexpr Bytes nowhere = std::numeric_limits<Bytes>::max();  ///< As a place.

/// Of a piece.
enum class Stage : std::uint64_t {
  free = 0,
  claimed = 1,  ///< Somebody is about to describe it.
  under_way = 2,
  ready = 3,
  abandoned = 4,  ///< Under way still, and nobody waits for it.
};

// The state of a piece in one word: its stage, and a number that no other piece ever has.
constexpr unsigned stage_bits = 3;
constexpr Stage stage_of(std::uint64_t word) {
  return static_cast<Stage>(word & ((1U << stage_bits) - 1));
}
constexpr std::uint64_t number_of(std::uint64_t word) { return word >> stage_bits; }
constexpr std::uint64_t word_of(std::uint64_t number, Stage stage) {
  return number << stage_bits | static_cast<std::uint64_t>(stage);
}

struct alignas(64) WindowPiece {
  std::atomic<std::uint64_t> word;
  // They change only while it is claimed.
  std::atomic<Bytes> offset;
  std::atomic<Bytes> length;
  std::atomic<Bytes> begin;
  std::atomic<Bytes> end;
  std::atomic<std::uint64_t> units;
  std::atomic<std::int32_t> owner;
  /// A bit for each 64th of it: it was read by anybody, or lies between what is declared.
  std::atomic<std::uint64_t> read_parts;
};

struct alignas(64) WindowReader {
  std::atomic<std::int32_t> process;  ///< 0: free.
  std::atomic<std::uint64_t> beginning;
  std::atomic<Bytes> front_and_one;  ///< 0: it has not entered, or was left behind.
  std::atomic<std::int64_t> moved_ns;
  std::atomic<std::int64_t> asked_ns;  ///< For a sign of life of its process.
  std::atomic<std::int64_t> answered_ns;
  Bell bell;
};

struct WindowState {
  static constexpr std::size_t most_readers = 64;
  static constexpr std::size_t most_pieces = 64;

  std::atomic<std::uint64_t> magic;  ///< Written last.
  std::atomic<std::uint64_t> plan;
  std::atomic<Bytes> bytes;
  std::array<std::atomic<std::uint64_t>, 5> version;

  std::atomic<std::uint64_t> taken;    ///< Units of the memory.
  std::atomic<std::uint64_t> numbers;  ///< Given to pieces.
  /// Who fetches: the number of a reader and one, and how often that has changed.
  std::atomic<std::uint64_t> lease;
  std::atomic<Bytes> cursor;
  std::atomic<Bytes> awaited;  ///< Who fetches has no room until all have come so far.
  std::atomic<Bytes> confirmed;
  std::atomic<Bytes> gap_and_two;      ///< 0: not told, 1: nothing is joined.
  std::atomic<std::int64_t> began_ns;  ///< When its first reader began to read,
  std::atomic<Bytes> began_at;         ///< and at which place.
  std::atomic<std::uint32_t> is_retired;
  Bell arrived;
  std::array<WindowReader, most_readers> readers;
  std::array<WindowPiece, most_pieces> pieces;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share them");

}  // namespace forebay
