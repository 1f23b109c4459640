#pragma once

#include <sys/uio.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/model/counters.hpp"
#include "core/model/error.hpp"
#include "core/model/extent.hpp"
#include "core/model/stripe_layout.hpp"
#include "core/storage/descriptor.hpp"

namespace forebay {

/// What a file is known by, whatever it is called.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  auto operator<=>(const FileId&) const = default;
};

/// A file, as the engine sees storage. Implementations: PosixFile; for tests MemoryFile, FaultyFile
/// and VolatileFile. All calls may be made from several threads at once. Every error names what was
/// being done and the path.
class StorageFile {
 public:
  virtual ~StorageFile() = default;

  /// Writes all of `pieces`, which lie one behind the other in the file from `offset` on, resuming
  /// after short writes; or an error, after which any prefix may have reached the file. Any number
  /// of pieces (implementations respect IOV_MAX).
  virtual Status write_pieces(std::span<const iovec> pieces, Bytes offset) = 0;

  /// Reads up to the length of all `pieces` from `offset` on; fewer only where the file ends.
  /// Returns the count.
  virtual Result<Bytes> read_pieces(std::span<const iovec> pieces, Bytes offset) = 0;

  /// The same for one buffer.
  Status write_at(std::span<const std::byte> data, Bytes offset) {
    // iovec has no const; a write does not touch the buffer.
    const iovec piece{const_cast<std::byte*>(data.data()), data.size()};
    return write_pieces({&piece, 1}, offset);
  }
  Result<Bytes> read_at(std::span<std::byte> data, Bytes offset) {
    const iovec piece{data.data(), data.size()};
    return read_pieces({&piece, 1}, offset);
  }

  virtual Result<Bytes> size() = 0;
  virtual Status resize(Bytes size) = 0;
  /// Makes sure that the first `size` bytes have storage behind them; the file grows to `size` if
  /// it was shorter. What is in the file stays.
  virtual Status allocate(Bytes size) = 0;
  /// The file grows to `size` if it was shorter, where the file system can do that without cutting
  /// what somebody else appends meanwhile; else nothing happens, and it is no error. Ahead of
  /// writes in no order: on many file systems (FUSE, ext4) a write that makes the file longer keeps
  /// all others away until it is done.
  virtual void lengthen(Bytes /*size*/) {}

  /// The system begins to fetch `extent` for reads to come, or to write what is in it back to the
  /// device, where it has a page cache that can do so, and goes on with it after the return; else
  /// nothing happens, and it is no error. Nothing is durable before sync().
  virtual void read_ahead(Extent /*extent*/) {}
  virtual void start_writeback(Extent /*extent*/) {}

  /// Durable on return (fdatasync).
  virtual Status sync() = 0;

  /// An exclusive or shared advisory lock on `range`, waited for; it is against other processes and
  /// other StorageFiles (open file description locks), and compatible with the fcntl locks of stock
  /// MPI libraries. Released by unlock of the same range.
  enum class LockKind { shared, exclusive };
  virtual Status lock(Extent range, LockKind kind) = 0;
  virtual Status unlock(Extent range) = 0;

  virtual StripeLayout layout() const = 0;
  virtual const std::string& path() const = 0;

  /// The same for all openings of one file, in this process; none if it cannot be told.
  virtual std::optional<FileId> id() const { return std::nullopt; }
};

/// How a file is opened; the union of what MPI_File_open's amode can say about data access.
enum class OpenMode { read_only, write_only, read_write };

/// Opens an existing file through POSIX calls and finds out its layout. Storage calls and bytes are
/// counted in `counters`, which must outlive the file.
Result<std::unique_ptr<StorageFile>> open_posix_file(const std::string& path, OpenMode mode,
                                                     Counters& counters);

/// The file behind `descriptor`, which was opened for `mode`. `path` is for messages. For files
/// that are reached through a directory that was checked (openat), not by name. Not striped.
std::unique_ptr<StorageFile> adopt_posix_file(Descriptor descriptor, OpenMode mode,
                                              std::string path, Counters& counters);

/// The layout of `path` (a file, or a directory in which one will be made): Lustre's lov attribute,
/// the testbed's `user.forebay.stripe` attribute ("size=65536,count=4,lock=1"), else not striped.
StripeLayout detect_layout(const std::string& path);

}  // namespace forebay
