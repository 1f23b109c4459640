#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "core/storage/file.hpp"
#include "core/storage/piece_walk.hpp"

namespace forebay {
namespace {

static_assert(sizeof(off_t) == sizeof(Bytes), "offsets are 64 bits");

/// Linux transfers at most 0x7ffff000 bytes a call (pwrite(2)); a round limit below that keeps the
/// pieces of a huge transfer aligned.
constexpr Bytes max_transfer = GiB;

/// Repeats a system call until a signal does not interrupt it.
template <typename Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class PosixFile final : public StorageFile {
 public:
  PosixFile(Descriptor fd, bool readable, bool writable, std::string path, StripeLayout layout,
            Counters& counters)
      : fd_(std::move(fd)),
        readable_(readable),
        writable_(writable),
        path_(std::move(path)),
        layout_(layout),
        counters_(counters) {}

  /// Closing any descriptor of a file drops the process's classic fcntl locks on it (fcntl(2)), the
  /// MPI library's among them; MPI libraries hold theirs only inside a call, and the file is closed
  /// outside of calls. Errors of close(2) say nothing that sync() has not said.
  ~PosixFile() override = default;

  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override {
    if (!writable_) {
      return refuse(ErrorKind::read_only, EBADF,
                    describe("write", total_bytes(pieces), "to", offset));
    }
    PieceWalk walk(pieces, max_transfer);
    Bytes position = offset;
    for (auto batch = walk.next(); !batch.empty(); batch = walk.next()) {
      const ssize_t moved = timed(counters_.storage_writes, counters_.storage_bytes_written, [&] {
        // The kernel takes the plain call faster.
        return batch.size() == 1
                   ? ::pwrite(fd_.get(), batch[0].iov_base, batch[0].iov_len, position)
                   : ::pwritev(fd_.get(), batch.data(), static_cast<int>(batch.size()), position);
      });
      if (moved <= 0) {
        // A write of zero bytes would be tried for ever: it is a failure of the file system.
        return fail(moved == 0 ? EIO : errno, describe("write", total_bytes(pieces), "to", offset));
      }
      walk.advance(moved);
      position += moved;
    }
    return {};
  }

  Result<Bytes> read_pieces(std::span<const iovec> pieces, Bytes offset) override {
    if (!readable_) {
      return refuse(ErrorKind::access, EBADF,
                    describe("read", total_bytes(pieces), "from", offset));
    }
    PieceWalk walk(pieces, max_transfer);
    Bytes position = offset;
    for (auto batch = walk.next(); !batch.empty(); batch = walk.next()) {
      const ssize_t moved = timed(counters_.storage_reads, counters_.storage_bytes_read, [&] {
        return batch.size() == 1
                   ? ::pread(fd_.get(), batch[0].iov_base, batch[0].iov_len, position)
                   : ::preadv(fd_.get(), batch.data(), static_cast<int>(batch.size()), position);
      });
      if (moved < 0) return fail(errno, describe("read", total_bytes(pieces), "from", offset));
      if (moved == 0) break;  // Only this is the end of the file; fewer bytes than asked is not.
      walk.advance(moved);
      position += moved;
    }
    return position - offset;
  }

  Result<Bytes> size() override {
    struct stat status{};
    if (::fstat(fd_.get(), &status) != 0) return fail(errno, "find the size of " + path_);
    return status.st_size;
  }

  Status resize(Bytes size) override {
    const std::string doing = "set the size of " + path_ + " to " + std::to_string(size);
    if (!writable_) return refuse(ErrorKind::read_only, EBADF, doing);
    if (uninterrupted([&] { return ::ftruncate(fd_.get(), size); }) != 0) return fail(errno, doing);
    return {};
  }

  Status allocate(Bytes size) override {
    const std::string doing = "allocate " + std::to_string(size) + " bytes of " + path_;
    if (!writable_) return refuse(ErrorKind::read_only, EBADF, doing);
    if (size == 0) return {};  // posix_fallocate refuses it.
    // It returns the error and leaves errno alone; where the file system cannot allocate, it
    // writes.
    int failed = 0;
    do {
      failed = ::posix_fallocate(fd_.get(), 0, size);
    } while (failed == EINTR);
    return failed == 0 ? Status{} : fail(failed, doing);
  }

  void lengthen(Bytes size) override {
    struct stat status{};
    if (!writable_ || ::fstat(fd_.get(), &status) != 0 || status.st_size >= size) return;
    (void)::fallocate(fd_.get(), 0, size - 1, 1);
  }

  void read_ahead(Extent extent) override {
    // A length of 0 would be the rest of the file, for both calls.
    if (extent.empty()) return;
    (void)::posix_fadvise(fd_.get(), extent.offset, extent.length, POSIX_FADV_WILLNEED);
  }

  void start_writeback(Extent extent) override {
    if (extent.empty()) return;
    // Without a flag that waits it takes no error away that fdatasync has to tell.
    (void)::sync_file_range(fd_.get(), extent.offset, extent.length, SYNC_FILE_RANGE_WRITE);
  }

  Status sync() override {
    if (uninterrupted([&] { return ::fdatasync(fd_.get()); }) == 0) return {};
    // EINVAL: a file without storage behind it (/dev/full, a pipe); there is nothing to lose.
    if (errno == EINVAL) return {};
    return fail(errno, "make durable " + path_);
  }

  Status lock(Extent range, LockKind kind) override {
    if (range.empty()) return {};
    if (kind == LockKind::exclusive && !writable_) {
      return refuse(ErrorKind::access, EBADF, "lock exclusively, without write access, " + path_);
    }
    // A shared lock needs read access; where the file gives none, the stronger lock serves.
    const bool shared = kind == LockKind::shared && readable_;
    return set_lock(range, shared ? F_RDLCK : F_WRLCK, "lock");
  }

  Status unlock(Extent range) override {
    if (range.empty()) return {};
    return set_lock(range, F_UNLCK, "unlock");
  }

  StripeLayout layout() const override { return layout_; }
  const std::string& path() const override { return path_; }

  std::optional<FileId> id() const override {
    // What identifies a file does not change: no server needs to be asked.
    struct statx status{};
    if (::statx(fd_.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &status) != 0) {
      return std::nullopt;
    }
    return FileId{::gnu_dev_makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino};
  }

 private:
  static tl::unexpected<Error> refuse(ErrorKind kind, int os_errno, const std::string& doing) {
    return tl::make_unexpected(Error{kind, os_errno, doing});
  }

  std::string describe(const char* verb, Bytes bytes, const char* preposition, Bytes offset) const {
    return std::string(verb) + " " + std::to_string(bytes) + " bytes at " + std::to_string(offset) +
           " " + preposition + " " + path_;
  }

  /// One system call (again after a signal), counted with its bytes and its time.
  template <typename Call>
  ssize_t timed(std::atomic<std::int64_t>& calls, std::atomic<std::int64_t>& bytes, Call call) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const ssize_t moved = uninterrupted([&] {
      Counters::add(calls, 1);
      return call();
    });
    const int call_errno = errno;
    const auto elapsed = std::chrono::nanoseconds(Clock::now() - start);
    Counters::add(counters_.storage_ns, elapsed.count());
    if (moved > 0) Counters::add(bytes, moved);
    errno = call_errno;
    return moved;
  }

  Status set_lock(Extent range, short type, const char* verb) {
    struct flock request{};
    request.l_type = type;
    request.l_whence = SEEK_SET;
    request.l_start = range.offset;
    request.l_len = range.length;
    if (uninterrupted([&] { return ::fcntl(fd_.get(), F_OFD_SETLKW, &request); }) != 0) {
      return fail(errno, describe(verb, range.length, "of", range.offset));
    }
    return {};
  }

  const Descriptor fd_;
  const bool readable_;
  const bool writable_;
  const std::string path_;
  const StripeLayout layout_;
  Counters& counters_;
};

int open_as(const std::string& path, int access) {
  return uninterrupted([&] { return ::open(path.c_str(), access | O_CLOEXEC); });
}

}  // namespace

Result<std::unique_ptr<StorageFile>> open_posix_file(const std::string& path, OpenMode mode,
                                                     Counters& counters) {
  bool readable = mode != OpenMode::write_only;
  const bool writable = mode != OpenMode::read_only;
  int fd = -1;
  if (mode == OpenMode::write_only) {
    // Filling holes needs to read; a file that may only be written is still written.
    fd = open_as(path, O_RDWR);
    readable = fd >= 0;
    if (fd < 0 && (errno == EACCES || errno == EPERM)) fd = open_as(path, O_WRONLY);
  } else {
    fd = open_as(path, mode == OpenMode::read_only ? O_RDONLY : O_RDWR);
  }
  if (fd < 0) return fail(errno, "open " + path);
  return std::make_unique<PosixFile>(Descriptor(fd), readable, writable, path, detect_layout(path),
                                     counters);
}

std::unique_ptr<StorageFile> adopt_posix_file(Descriptor descriptor, OpenMode mode,
                                              std::string path, Counters& counters) {
  return std::make_unique<PosixFile>(std::move(descriptor), mode != OpenMode::write_only,
                                     mode != OpenMode::read_only, std::move(path), StripeLayout{},
                                     counters);
}

}  // namespace forebay
