#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"
#include "core/storage/file_version.hpp"

namespace forebay {

/// A file that is read ahead of the program that has it open: an opening of our own, so that
/// neither the program's position nor its advice to the kernel is touched. Thread-safe.
class FetchSource {
 public:
  virtual ~FetchSource() = default;

  /// One transfer, whose address, offset and length are multiples of direct_alignment; returns the
  /// count, which is less than asked where the file ends, and may be less elsewhere.
  virtual Result<Bytes> read(std::span<std::byte> into, Bytes offset) = 0;
  /// The same, for the time that it takes; nanoseconds, 0 if it waited for nothing.
  virtual Result<std::int64_t> time_read(std::span<std::byte> into, Bytes offset);

  virtual std::optional<FileVersion> version() = 0;

  /// Bytes of `extent` that the program gets at the speed of memory without us; 0 if nobody tells.
  virtual Bytes resident(Extent extent) = 0;
  /// Whether the kernel tells.
  virtual bool tells_residence() const { return true; }

  /// Tells the kernel that `extent` will be read soon, or will not be needed any more
  /// (posix_fadvise), and a parallel file system beside it. How much of it these then read is their
  /// own affair.
  virtual Status advise(Extent extent, bool is_needed) = 0;

  /// Brings what was stored in `extent` to the file, as far as its reads do not do so by
  /// themselves: those past the page cache do, but for those that a file system takes as such and
  /// does not carry out so (ext4 with its data in the journal), which it does not tell before
  /// Linux 6.1. Error: io, no_space or quota, which whoever opens the file later is not told any
  /// more.
  virtual Status write_out(Extent /*extent*/) { return {}; }

  /// Advice brings more than the kernel's page cache shows.
  virtual bool advises_servers() const { return false; }

  /// For requests that the kernel carries out by itself; -1: there is none.
  virtual int descriptor() const = 0;

  /// Whether its reads pass the page cache by.
  virtual bool is_direct() const { return false; }
};

enum class Through {
  page_cache,
  widened_page_cache,  ///< One announcement, or read, brings twice as much as usual, at most.
  direct,              ///< Past the page cache, where the file system can do that; else widened.
};

/// Opens the file behind `descriptor` once more, for reading. `path` is for messages.
Result<std::unique_ptr<FetchSource>> open_fetch_source(int descriptor, const std::string& path,
                                                       Through way = Through::direct);

}  // namespace forebay
