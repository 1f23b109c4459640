#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "core/model/extent.hpp"
#include "core/storage/descriptor.hpp"
#include "core/storage/file_version.hpp"
#include "core/storage/shown_memory.hpp"

namespace forebay {

/// How far a program has come in a file whose reads are not seen: by C streams, or through a
/// mapping. look() and let_go() are for one thread at a time.
class ReadProgress {
 public:
  virtual ~ReadProgress() = default;

  /// A byte of `read` was read since the last call; or, if `sought` is not empty, perhaps the
  /// program only went there, and reads a byte of that next.
  struct Seen {
    Extent read;
    Extent sought = {};
    bool operator==(const Seen&) const = default;
  };
  /// None: nothing is known to have been read. `expected`: what will be read, in that order.
  virtual std::optional<Seen> look(std::span<const Extent> expected) = 0;

  /// The program has passed `extent`: the kernel should not find it in use by it. Others may want
  /// it, and find it in the page cache.
  virtual void let_go(Extent) {}

  /// The program is about to close `descriptor`. True: it was the one that is looked at, and there
  /// is nothing to be seen behind what is now.
  virtual bool end(int) { return false; }
  virtual bool has_ended() const { return false; }

  /// Its own, that nobody else may close; -1: there is none.
  virtual int descriptor() const { return -1; }
};

/// Of reads at the position of `descriptor`, the program's, as long as `file` is behind it, from
/// where it is now. A position says where the program has read or where it will read: it cannot be
/// told which, but by what is expected.
class PositionProgress final : public ReadProgress {
 public:
  /// Bytes by which a position may lie behind the last byte that the program asked for, or in front
  /// of the first one: C streams read whole buffers, and seek to where one would begin. glibc's are
  /// as large as the file system's blocks, and no larger than this.
  static constexpr Bytes longest_buffer = 8 * KiB;

  /// `asked`: what the kernel says of the position of a descriptor.
  PositionProgress(int descriptor, FileId file, std::function<Bytes(int)> asked = position_of);
  std::optional<Seen> look(std::span<const Extent> expected) override;
  bool end(int descriptor) override;
  bool has_ended() const override { return end_.load() >= 0; }

 private:
  static Bytes position_of(int descriptor);
  Bytes position() const;

  const int program_;
  const FileId file_;
  const std::function<Bytes(int)> asked_;
  std::atomic<Bytes> end_{-1};  ///< Where it was closed.
  Bytes position_;              ///< At the last look.
};

/// Memory of the program that shows `length` bytes of a file from `offset` on.
struct Mapping {
  std::uintptr_t address = 0;
  Bytes length = 0;
  Bytes offset = 0;
};

/// Of a mapping: the page tables say which pages were touched (proc(5), pagemap).
class MappedProgress final : public ReadProgress {
 public:
  /// `place`: of the mapping, which nobody can store in while it is there, or which is shared.
  MappedProgress(const Mapping& mapping, ShownMemory::Place place);
  std::optional<Seen> look(std::span<const Extent> expected) override;
  void let_go(Extent extent) override;
  int descriptor() const override { return pagemap_.get(); }

 private:
  struct Pages;

  bool entries_from(std::uintptr_t address, std::span<std::uint64_t> entries) const;
  bool is_touched(Bytes offset) const;
  Pages pages_of(Extent extent) const;
  bool let_go_of(const Pages& pages) const;

  const Mapping mapping_;
  ShownMemory::Place place_;
  bool is_shown_ = true;  ///< Not that other memory is there.
  const Bytes page_;
  const Descriptor pagemap_;
};

}  // namespace forebay
