#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/engine/prefetch/named_memory.hpp"
#include "core/engine/prefetch/window_state.hpp"
#include "core/model/extent.hpp"
#include "core/storage/file_version.hpp"

namespace forebay {

/// Readers of other kinds have other windows.
struct WindowKind {
  FileVersion version;
  std::uint64_t plan = 0;  ///< Tells plans apart, and what else shapes the requests.
  Bytes bytes = 0;         ///< Of the memory; a multiple of direct_alignment.
};

/// The memory of a SharedWindow: its state and, in large pages where the kernel makes such, room
/// for pieces of the file, in at most 64 units.
class WindowMemory {
 public:
  explicit WindowMemory(const WindowKind& kind);
  ~WindowMemory();
  WindowMemory(const WindowMemory&) = delete;
  WindowMemory& operator=(const WindowMemory&) = delete;

  /// Has it mapped from now on; none: it is not to be had, or what lies there is none of this kind.
  /// Nobody else joins or removes it while what is returned stands.
  std::optional<NamedMemory> open();
  /// What lies there is not to be used any more; the next open() makes another.
  void discard();
  /// Once more after open(): its name goes if `is_unused()`.
  template <typename IsUnused>
  void remove_if(IsUnused is_unused) const {
    NamedMemory::remove_if(name_.data(), inode_, is_unused);
  }

  /// Null before open().
  WindowState* state() const { return state_; }
  bool is_maker() const { return is_maker_; }
  Bytes bytes() const { return bytes_; }
  Bytes unit() const { return unit_; }
  /// Of these units, which lie side by side, a bit each.
  std::span<std::byte> at(std::uint64_t units, Bytes length) const;

 private:
  bool map(const NamedMemory& memory);
  void prepare();
  bool is_of_kind() const;
  void unmap();

  const WindowKind kind_;
  const Bytes unit_;
  const Bytes bytes_;
  const NamedMemory::Name name_;
  std::uint64_t inode_ = 0;
  WindowState* state_ = nullptr;
  std::byte* reserved_ = nullptr;  ///< Addresses, of which the room is a part.
  Bytes reserved_bytes_ = 0;
  std::byte* room_ = nullptr;
  bool is_maker_ = false;
};

}  // namespace forebay
