// Open files and their bytes. Bytes go to or come from the backing file at once; what waits is the
// reply.

#include <fcntl.h>
#include <linux/fuse.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "testbed/file_system.hpp"
#include "testbed/open_file.hpp"

namespace forebay::testbed {
namespace {

/// What of the requester's flags the backing file is opened with. Not O_APPEND (the kernel has
/// resolved the offset), not O_DIRECT (our buffers need not be aligned), not O_SYNC (the kernel
/// follows each write with an fsync).
constexpr int passed_flags = O_ACCMODE | O_TRUNC | O_EXCL;

fuse_open_out open_reply(std::uint64_t handle, std::uint32_t flags) {
  fuse_open_out out{};
  out.fh = handle;
  out.open_flags = flags;
  return out;
}

fuse_attr attributes_of(const struct stat& status) {
  fuse_attr attr{};
  attr.ino = status.st_ino;
  attr.size = static_cast<std::uint64_t>(status.st_size);
  attr.blocks = static_cast<std::uint64_t>(status.st_blocks);
  attr.atime = static_cast<std::uint64_t>(status.st_atim.tv_sec);
  attr.mtime = static_cast<std::uint64_t>(status.st_mtim.tv_sec);
  attr.ctime = static_cast<std::uint64_t>(status.st_ctim.tv_sec);
  attr.atimensec = static_cast<std::uint32_t>(status.st_atim.tv_nsec);
  attr.mtimensec = static_cast<std::uint32_t>(status.st_mtim.tv_nsec);
  attr.ctimensec = static_cast<std::uint32_t>(status.st_ctim.tv_nsec);
  attr.mode = status.st_mode;
  attr.nlink = static_cast<std::uint32_t>(status.st_nlink);
  attr.uid = status.st_uid;
  attr.gid = status.st_gid;
  attr.rdev = static_cast<std::uint32_t>(status.st_rdev);
  attr.blksize = static_cast<std::uint32_t>(status.st_blksize);
  return attr;
}

}  // namespace

template <typename Decide, typename Reply>
void FileSystem::reply_when_due(Decide&& decide, Reply&& reply) {
  Time now;
  Time due;
  {
    // The clock is read under the lock: the cluster's time never goes back.
    const std::lock_guard lock(cluster_mutex_);
    now = ReplyTimer::now();
    due = decide(now);
  }
  if (due <= now) {
    reply();
  } else {
    timer_->at(due, std::forward<Reply>(reply));
  }
}

void FileSystem::reply_after_metadata(std::function<void()> reply) {
  reply_when_due([&](Time now) { return cluster_.metadata(now); }, std::move(reply));
}

std::uint32_t FileSystem::open_flags(fuse_ino_t ino) const {
  // The counters say that they have no bytes, so the page cache would ask for none.
  const bool page_cache = parameters_.page_cache && ino != counters_node;
  return page_cache ? FOPEN_KEEP_CACHE : FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES;
}

std::optional<Bytes> FileSystem::answered(Extent read) const {
  Bytes most = std::min(read.length, parameters_.longest_read.value_or(read.length));
  for (const Extent& broken : parameters_.unreadable) {
    if (intersect({read.offset, most}, broken).empty()) continue;
    // To the page cache a short answer is the end of the file.
    if (parameters_.page_cache || broken.offset <= read.offset) return std::nullopt;
    most = broken.offset - read.offset;
  }
  return most;
}

ClientId FileSystem::client_of(fuse_req_t req) {
  return thread_groups_.process_of(fuse_req_ctx(req)->pid, ReplyTimer::now());
}

void FileSystem::count_open(NodeId id) {
  const std::lock_guard lock(cluster_mutex_);
  open_counts_[id] += 1;
}

void FileSystem::truncated(NodeId id, Bytes size) {
  const std::lock_guard lock(cluster_mutex_);
  cluster_.truncate(id, size);
}

void FileSystem::create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
                        fuse_file_info* info) {
  const auto directory = nodes_.find(parent);
  if (!directory) {
    fuse_reply_err(req, EPERM);
    return;
  }
  const int directory_fd = directory->fd.get();
  const int flags = (info->flags & passed_flags) | O_NOFOLLOW | O_CLOEXEC;
  // Exclusive first, to know whether the file is ours to give away.
  FileDescriptor fd(::openat(directory_fd, name, flags | O_CREAT | O_EXCL, mode));
  if (fd.valid()) {
    give_to_requester(req, directory_fd, name);
  } else if (errno == EEXIST && !(info->flags & O_EXCL)) {
    fd = FileDescriptor(::openat(directory_fd, name, flags | O_CREAT, mode));
  }
  fuse_entry_param entry{};
  int error = fd.valid() ? 0 : errno;
  if (error == 0) error = enter(*directory, name, entry);
  if (error != 0) {
    fuse_reply_err(req, error);
    return;
  }
  if (info->flags & O_TRUNC) truncated(entry.ino, 0);
  count_open(entry.ino);

  struct {
    fuse_entry_out entry;
    fuse_open_out open;
  } out{};
  out.entry.nodeid = entry.ino;  // valid for no time: names and attributes are asked for each time
  out.entry.attr = attributes_of(entry.attr);
  info->fh = to_kernel(std::make_unique<OpenFile>(OpenFile{std::move(fd), {}}));
  out.open = open_reply(info->fh, open_flags(entry.ino));
  reply_after_metadata([this, req, out, opened = *info, ino = entry.ino]() mutable {
    if (fuse_reply_buf(req, reinterpret_cast<const char*>(&out), sizeof out) == 0) return;
    // The requester is gone: the kernel counts neither the look-up nor the opening.
    closed(ino, &opened);
    nodes_.forget(ino, 1);
  });
}

void FileSystem::open(fuse_req_t req, fuse_ino_t ino, fuse_file_info* info) {
  auto file = std::make_unique<OpenFile>();
  if (ino == counters_node) {
    if ((info->flags & O_ACCMODE) != O_RDONLY) {
      fuse_reply_err(req, EACCES);
      return;
    }
    file->content = to_json(state(true));
  } else {
    const auto node = nodes_.find(ino);
    const int flags = (info->flags & passed_flags & ~O_EXCL) | O_CLOEXEC;
    if (node) file->fd = FileDescriptor(::open(node->proc_path().c_str(), flags));
    if (!file->fd.valid()) {
      fuse_reply_err(req, node ? errno : ESTALE);
      return;
    }
    if (info->flags & O_TRUNC) truncated(ino, 0);
    count_open(ino);
  }
  info->fh = to_kernel(std::move(file));
  const fuse_open_out out = open_reply(info->fh, open_flags(ino));
  std::function<void()> reply = [this, req, out, opened = *info, ino]() mutable {
    if (fuse_reply_buf(req, reinterpret_cast<const char*>(&out), sizeof out) != 0) {
      closed(ino, &opened);
    }
  };
  if (ino == counters_node) {
    reply();  // it is on no server
  } else {
    reply_after_metadata(std::move(reply));
  }
}

/// Ends one opening of a file; the last one ends its locks.
void FileSystem::closed(fuse_ino_t ino, fuse_file_info* info) {
  delete &handle_of<OpenFile>(info);
  const std::lock_guard lock(cluster_mutex_);
  const auto count = open_counts_.find(ino);
  if (count == open_counts_.end() || --count->second > 0) return;
  open_counts_.erase(count);
  cluster_.forget(ReplyTimer::now(), ino);
}

void FileSystem::release(fuse_req_t req, fuse_ino_t ino, fuse_file_info* info) {
  closed(ino, info);
  fuse_reply_err(req, 0);
}

void FileSystem::read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                      fuse_file_info* info) {
  const OpenFile& file = handle_of<OpenFile>(info);
  if (ino == counters_node) {
    const size_t begin = std::min(static_cast<size_t>(offset), file.content.size());
    fuse_reply_buf(req, file.content.data() + begin, std::min(size, file.content.size() - begin));
    return;
  }
  const auto most = answered({offset, static_cast<Bytes>(size)});
  if (!most) {
    fuse_reply_err(req, EIO);
    return;
  }
  size = static_cast<size_t>(*most);
  std::vector<char> data(size);
  size_t filled = 0;
  while (filled < size) {
    const ssize_t count = ::pread(file.fd.get(), data.data() + filled, size - filled,
                                  offset + static_cast<off_t>(filled));
    if (count < 0 && filled == 0) {
      fuse_reply_err(req, errno);
      return;
    }
    if (count <= 0) break;
    filled += static_cast<size_t>(count);
  }
  data.resize(filled);
  const ClientId client = client_of(req);
  reply_when_due(
      [&](Time now) {
        return cluster_.read(now, ino, client, {offset, static_cast<Bytes>(filled)});
      },
      [req, data = std::move(data)] { fuse_reply_buf(req, data.data(), data.size()); });
}

void FileSystem::write(fuse_req_t req, fuse_ino_t ino, const char* data, size_t size, off_t offset,
                       fuse_file_info* info) {
  const OpenFile& file = handle_of<OpenFile>(info);
  size_t written = 0;
  while (written < size) {
    const ssize_t count = ::pwrite(file.fd.get(), data + written, size - written,
                                   offset + static_cast<off_t>(written));
    if (count < 0 && written == 0) {
      fuse_reply_err(req, errno);
      return;
    }
    if (count <= 0) break;
    written += static_cast<size_t>(count);
  }
  const ClientId client = client_of(req);
  reply_when_due(
      [&](Time now) {
        return cluster_.write(now, ino, client, {offset, static_cast<Bytes>(written)});
      },
      [req, written] { fuse_reply_write(req, written); });
}

void FileSystem::reply_when_settled(fuse_req_t req, fuse_ino_t ino) {
  const ClientId client = client_of(req);
  reply_when_due([&](Time now) { return cluster_.settled(now, ino, client); },
                 [req] { fuse_reply_err(req, 0); });
}

void FileSystem::flush(fuse_req_t req, fuse_ino_t ino, fuse_file_info*) {
  reply_when_settled(req, ino);
}

void FileSystem::fsync(fuse_req_t req, fuse_ino_t ino, int, fuse_file_info*) {
  reply_when_settled(req, ino);
}

void FileSystem::fallocate(fuse_req_t req, fuse_ino_t, int mode, off_t offset, off_t length,
                           fuse_file_info* info) {
  const int failed = ::fallocate(handle_of<OpenFile>(info).fd.get(), mode, offset, length);
  fuse_reply_err(req, failed ? errno : 0);
}

void FileSystem::lseek(fuse_req_t req, fuse_ino_t, off_t offset, int whence, fuse_file_info* info) {
  const off_t result = ::lseek(handle_of<OpenFile>(info).fd.get(), offset, whence);
  if (result < 0) {
    fuse_reply_err(req, errno);
  } else {
    fuse_reply_lseek(req, result);
  }
}

}  // namespace forebay::testbed
