#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/model/extent.hpp"
#include "core/storage/descriptor.hpp"
#include "core/storage/file_version.hpp"

namespace forebay {

/// A file of POSIX shared memory of this user by which processes meet. While this stands nobody
/// else joins or removes it: the lock is that of its descriptor, which the kernel gives back for a
/// process that dies.
class NamedMemory {
 public:
  /// Of processes that can tell of each other whether they live (process_life.hpp). Empty: of none.
  using Name = std::array<char, 160>;
  /// What readers of a file share: `kind` of it, and of this version what `more` tells apart. No
  /// memory is taken for it.
  static Name name_for(const char* kind, const FileVersion& version,
                       std::optional<std::uint64_t> more = std::nullopt);

  /// Opens it, or makes it, zero-filled, and gives it this length; none where that cannot be had,
  /// also where its last user has removed it at the same time. Whoever else joins is waited for,
  /// for 1 s.
  static std::optional<NamedMemory> open(const char* name, Bytes bytes);
  NamedMemory(NamedMemory&&) = default;
  ~NamedMemory();
  NamedMemory& operator=(NamedMemory&&) = delete;

  /// Memory for a part of it; false: there is none. To touch what has none behind it ends the
  /// program, by SIGBUS, where the memory is full.
  bool back(Extent part) const;
  /// Whether so much may be taken: at most a quarter of what is free there, where programs have
  /// memory of their own to share, and end where there is none left.
  bool leaves_room(Bytes bytes) const;
  int descriptor() const { return memory_.get(); }
  /// Nobody has it yet but who opened this.
  bool is_new() const { return is_new_; }
  /// Another one may have the name later.
  std::uint64_t inode() const { return inode_; }

  /// Removes the name, if it is still that of `inode`, `is_unused()` says so, and nobody is
  /// joining, to whom it is left then.
  template <typename IsUnused>
  static void remove_if(const char* name, std::uint64_t inode, IsUnused is_unused) {
    const Descriptor held = try_lock(name, inode);
    if (!held.valid()) return;
    if (is_unused()) remove(name);
    unlock(held);
  }
  /// Whoever has it mapped keeps it.
  static void remove(const char* name);

 private:
  NamedMemory(Descriptor memory, std::uint64_t inode, bool is_new);
  static Descriptor try_lock(const char* name, std::uint64_t inode);
  static void unlock(const Descriptor& memory);

  Descriptor memory_;
  std::uint64_t inode_;
  bool is_new_;
};

}  // namespace forebay
