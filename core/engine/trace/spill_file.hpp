#pragma once

#include <array>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/engine/trace/ring.hpp"
#include "core/model/trace_event.hpp"

namespace forebay::trace {

/// Where a process spills its rings (docs/formats/trace-spill.md). It holds no descriptor that the
/// program could close: each piece is appended by an opening of its own.
class SpillFile {
 public:
  /// False: the path is too long for the names in it.
  bool set_directory(const char* path);

  /// The file of a process that begins. It is made with the first piece.
  void begin(const ProcessStart& start);

  /// A piece in one write. Whether it is there wholly, but for events that are counted as lost:
  /// those for which the process may make no file so long. By several threads.
  bool append(Ring& ring, std::span<const std::byte> definitions,
              std::span<const TraceEvent> events);

  /// Of threads that have no ring.
  void lose(std::uint64_t count) { lost_.fetch_add(count, std::memory_order_relaxed); }

 private:
  /// Whether the file may be longer by `length` bytes, and `more` in the end. Else nothing happens.
  bool grow(std::size_t length, std::size_t more);

  std::array<char, PATH_MAX> path_{};
  std::size_t directory_length_ = 0;
  std::atomic<std::uint64_t> sequence_{0};
  std::atomic<std::uint64_t> length_{0};  ///< Bytes of all pieces.
  std::atomic<std::uint64_t> lost_{0};    ///< Told with the next piece.
};

}  // namespace forebay::trace
