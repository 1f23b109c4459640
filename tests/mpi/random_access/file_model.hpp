#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace random_access {

/// What the file holds, by the definitions of MPI 4.0 chapter 14, and who must synchronise before
/// touching which byte (section 14.6.1: a rank sees its own accesses in order, those of others
/// after sync-barrier-sync).
class FileModel {
 public:
  /// `open_holes`: what nobody wrote before the end of the file may hold anything. MPI leaves it
  /// open; ROMIO's data sieving writes what its buffer held. POSIX says zero, and so does Forebay.
  explicit FileModel(bool open_holes) : open_holes_(open_holes) {}

  std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size()); }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }
  std::uint8_t byte(std::int64_t offset) const { return bytes_[static_cast<std::size_t>(offset)]; }

  /// Whether MPI says what the byte is: not after MPI_File_preallocate, until it is written, nor in
  /// open holes.
  bool defined(std::int64_t offset) const { return defined_[static_cast<std::size_t>(offset)]; }

  void write(int rank, std::int64_t offset, std::uint8_t value) {
    if (const std::int64_t before = size(); offset >= before) {
      resize(offset + 1);
      if (open_holes_) std::fill(defined_.begin() + before, defined_.end(), false);
    }
    bytes_[static_cast<std::size_t>(offset)] = value;
    writer_[static_cast<std::size_t>(offset)] = rank;
    defined_[static_cast<std::size_t>(offset)] = true;
  }

  /// New bytes are zero: MPI leaves them open, POSIX does not.
  void resize(std::int64_t size) {
    bytes_.resize(static_cast<std::size_t>(size));
    writer_.resize(static_cast<std::size_t>(size), nobody);
    defined_.resize(static_cast<std::size_t>(size), true);
  }

  /// New bytes may hold anything: OMPIO writes what its buffer held.
  void preallocate(std::int64_t size) {
    const std::int64_t before = this->size();
    if (size <= before) return;
    resize(size);
    std::fill(defined_.begin() + before, defined_.end(), false);
  }

  /// Whether `rank` touches a byte that another rank wrote, or an end of the file that anybody
  /// moved, since the last synchronisation.
  bool needs_sync(int rank, std::span<const std::int64_t> offsets) const {
    for (const std::int64_t offset : offsets) {
      if (offset >= synced_size_) return true;
      const int writer = offset < size() ? writer_[static_cast<std::size_t>(offset)] : nobody;
      if (writer != nobody && writer != rank) return true;
    }
    return false;
  }

  void synchronise() {
    writer_.assign(bytes_.size(), nobody);
    synced_size_ = size();
  }

 private:
  static constexpr int nobody = -1;
  bool open_holes_;
  std::vector<std::uint8_t> bytes_;
  std::vector<int> writer_;
  std::vector<bool> defined_;
  std::int64_t synced_size_ = 0;
};

}  // namespace random_access
