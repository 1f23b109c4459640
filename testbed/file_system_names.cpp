// Names and attributes: passed through to the backing directory, answered at once but for what
// takes the metadata server's time.

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "testbed/file_system.hpp"
#include "testbed/open_file.hpp"

namespace forebay::testbed {
namespace {

bool is_virtual(fuse_ino_t ino) { return ino == control_directory_node || ino == counters_node; }

struct stat virtual_status(fuse_ino_t ino) {
  struct stat status{};
  status.st_ino = ino;
  status.st_mode = ino == control_directory_node ? S_IFDIR | 0555 : S_IFREG | 0444;
  status.st_nlink = 1;
  status.st_uid = ::geteuid();
  status.st_gid = ::getegid();
  return status;
}

bool is_reserved(fuse_ino_t parent, std::string_view name) {
  return parent == root_node && name == control_directory_name;
}

}  // namespace

/// The stripe is what a file system of this kind prefers to be asked for; stdio buffers follow it.
void FileSystem::present(struct stat& status) const {
  status.st_blksize = parameters_.cluster.stripe_size;
}

int FileSystem::enter(const Node& parent, const char* name, fuse_entry_param& entry) {
  FileDescriptor fd(::openat(parent.fd.get(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return errno;
  if (::fstat(fd.get(), &entry.attr) != 0) return errno;
  entry.ino = nodes_.enter(std::move(fd), entry.attr)->id;
  present(entry.attr);
  return 0;
}

void FileSystem::reply_with_entry(fuse_req_t req, const Node& parent, const char* name) {
  fuse_entry_param entry{};
  const int error = enter(parent, name, entry);
  if (error != 0) {
    fuse_reply_err(req, error);
  } else if (fuse_reply_entry(req, &entry) != 0) {
    nodes_.forget(entry.ino, 1);  // the requester is gone, and the kernel counted nothing
  }
}

void FileSystem::give_to_requester(fuse_req_t req, int directory_fd, const char* name) const {
  if (::geteuid() != 0) return;
  const fuse_ctx* context = fuse_req_ctx(req);
  struct stat directory{};
  // A directory with the set-group-ID bit gave the file its own group already.
  const bool inherits = ::fstat(directory_fd, &directory) == 0 && (directory.st_mode & S_ISGID);
  const gid_t group = inherits ? static_cast<gid_t>(-1) : context->gid;
  // As root it cannot fail for want of permission; where the backing file system keeps no owners,
  // the file stays root's.
  [[maybe_unused]] const int ignored =
      ::fchownat(directory_fd, name, context->uid, group, AT_SYMLINK_NOFOLLOW);
}

int FileSystem::status_of(fuse_ino_t ino, struct stat& status) const {
  if (is_virtual(ino)) {
    status = virtual_status(ino);
    return 0;
  }
  const auto node = nodes_.find(ino);
  if (!node) return ESTALE;
  if (::fstat(node->fd.get(), &status) != 0) return errno;
  present(status);
  return 0;
}

void FileSystem::lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  const bool directory = is_reserved(parent, name);
  if (directory || (parent == control_directory_node && std::string_view(name) == counters_name)) {
    fuse_entry_param entry{};
    entry.ino = directory ? control_directory_node : counters_node;
    entry.attr = virtual_status(entry.ino);
    fuse_reply_entry(req, &entry);
    return;
  }
  const auto node = nodes_.find(parent);
  if (!node) {
    fuse_reply_err(req, parent == control_directory_node ? ENOENT : ESTALE);
    return;
  }
  reply_with_entry(req, *node, name);
}

void FileSystem::forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups) {
  nodes_.forget(ino, lookups);
  fuse_reply_none(req);
}

void FileSystem::forget_multi(fuse_req_t req, size_t count, fuse_forget_data* forgets) {
  for (size_t i = 0; i < count; ++i) nodes_.forget(forgets[i].ino, forgets[i].nlookup);
  fuse_reply_none(req);
}

void FileSystem::getattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info*) {
  struct stat status{};
  const int error = status_of(ino, status);
  if (error != 0) {
    fuse_reply_err(req, error);
  } else {
    fuse_reply_attr(req, &status, 0.0);
  }
}

void FileSystem::setattr(fuse_req_t req, fuse_ino_t ino, struct stat* attributes, int which,
                         fuse_file_info* info) {
  const auto node = nodes_.find(ino);
  if (!node) {
    fuse_reply_err(req, is_virtual(ino) ? EPERM : ESTALE);
    return;
  }
  const int fd = node->fd.get();
  const auto apply = [&]() -> int {
    if ((which & FUSE_SET_ATTR_MODE) && ::chmod(node->proc_path().c_str(), attributes->st_mode)) {
      return errno;
    }
    if (which & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) {
      const uid_t uid = which & FUSE_SET_ATTR_UID ? attributes->st_uid : static_cast<uid_t>(-1);
      const gid_t gid = which & FUSE_SET_ATTR_GID ? attributes->st_gid : static_cast<gid_t>(-1);
      if (::fchownat(fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) return errno;
    }
    if (which & FUSE_SET_ATTR_SIZE) {
      const int failed = info != nullptr
                             ? ::ftruncate(handle_of<OpenFile>(info).fd.get(), attributes->st_size)
                             : ::truncate(node->proc_path().c_str(), attributes->st_size);
      if (failed) return errno;
      truncated(ino, attributes->st_size);
    }
    if (which & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME)) {
      const auto time = [&](int set, int set_now, const timespec& value) {
        if (which & set_now) return timespec{0, UTIME_NOW};
        return which & set ? value : timespec{0, UTIME_OMIT};
      };
      const timespec times[] = {
          time(FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, attributes->st_atim),
          time(FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, attributes->st_mtim)};
      if (::utimensat(fd, "", times, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) return errno;
    }
    return 0;
  };
  const int error = apply();
  if (error != 0) {
    fuse_reply_err(req, error);
  } else {
    getattr(req, ino, info);
  }
}

void FileSystem::readlink(fuse_req_t req, fuse_ino_t ino) {
  const auto node = nodes_.find(ino);
  std::array<char, PATH_MAX + 1> target{};
  const ssize_t length =
      node ? ::readlinkat(node->fd.get(), "", target.data(), target.size() - 1) : -1;
  if (length < 0) {
    fuse_reply_err(req, node ? errno : ESTALE);
  } else {
    fuse_reply_readlink(req, target.data());
  }
}

void FileSystem::mknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
                       dev_t device) {
  const auto node = nodes_.find(parent);
  if (!node || ::mknodat(node->fd.get(), name, mode, device) != 0) {
    fuse_reply_err(req, node ? errno : EPERM);
    return;
  }
  give_to_requester(req, node->fd.get(), name);
  reply_with_entry(req, *node, name);
}

void FileSystem::mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  const auto node = nodes_.find(parent);
  if (!node || ::mkdirat(node->fd.get(), name, mode) != 0) {
    fuse_reply_err(req, node ? errno : EPERM);
    return;
  }
  give_to_requester(req, node->fd.get(), name);
  reply_with_entry(req, *node, name);
}

void FileSystem::symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name) {
  const auto node = nodes_.find(parent);
  if (!node || ::symlinkat(target, node->fd.get(), name) != 0) {
    fuse_reply_err(req, node ? errno : EPERM);
    return;
  }
  give_to_requester(req, node->fd.get(), name);
  reply_with_entry(req, *node, name);
}

void FileSystem::link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char* new_name) {
  const auto node = nodes_.find(ino);
  const auto parent = nodes_.find(new_parent);
  if (!node || !parent ||
      ::linkat(AT_FDCWD, node->proc_path().c_str(), parent->fd.get(), new_name,
               AT_SYMLINK_FOLLOW) != 0) {
    fuse_reply_err(req, node && parent ? errno : EPERM);
    return;
  }
  reply_with_entry(req, *parent, new_name);
}

void FileSystem::unlink(fuse_req_t req, fuse_ino_t parent, const char* name) {
  const auto node = nodes_.find(parent);
  if (!node || ::unlinkat(node->fd.get(), name, 0) != 0) {
    fuse_reply_err(req, node ? errno : EPERM);
    return;
  }
  reply_after_metadata([req] { fuse_reply_err(req, 0); });
}

void FileSystem::rmdir(fuse_req_t req, fuse_ino_t parent, const char* name) {
  const auto node = nodes_.find(parent);
  if (!node || is_reserved(parent, name)) {
    fuse_reply_err(req, EPERM);
  } else {
    fuse_reply_err(req, ::unlinkat(node->fd.get(), name, AT_REMOVEDIR) == 0 ? 0 : errno);
  }
}

void FileSystem::rename(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
                        const char* new_name, unsigned int flags) {
  const auto from = nodes_.find(parent);
  const auto to = nodes_.find(new_parent);
  if (!from || !to || is_reserved(parent, name) || is_reserved(new_parent, new_name)) {
    fuse_reply_err(req, EPERM);
    return;
  }
  const int failed = ::renameat2(from->fd.get(), name, to->fd.get(), new_name, flags);
  fuse_reply_err(req, failed ? errno : 0);
}

void FileSystem::opendir(fuse_req_t req, fuse_ino_t ino, fuse_file_info* info) {
  DIR* stream = nullptr;
  if (ino != control_directory_node) {
    const auto node = nodes_.find(ino);
    stream = node ? ::opendir(node->proc_path().c_str()) : nullptr;
    if (stream == nullptr) {
      fuse_reply_err(req, node ? errno : ESTALE);
      return;
    }
  }
  info->fh = to_kernel(std::make_unique<OpenDirectory>(stream));
  if (fuse_reply_open(req, info) != 0) delete &handle_of<OpenDirectory>(info);
}

void FileSystem::readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                         fuse_file_info* info) {
  auto& directory = handle_of<OpenDirectory>(info);
  if (directory.stream == nullptr) {
    fuse_reply_buf(req, nullptr, 0);
    return;
  }
  std::vector<char> buffer(size);
  size_t filled = 0;
  int error = 0;
  {
    const std::lock_guard lock(directory.mutex);
    // An offset of 0 is a rewinddir: entries made since the opening appear.
    if (offset == 0) {
      ::rewinddir(directory.stream);
    } else {
      ::seekdir(directory.stream, offset);
    }
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(directory.stream);
      if (entry == nullptr) {
        error = errno;
        break;
      }
      if (is_reserved(ino, entry->d_name)) continue;
      struct stat status{};
      status.st_ino = entry->d_ino;
      status.st_mode = DTTOIF(entry->d_type);
      const size_t needed = fuse_add_direntry(req, buffer.data() + filled, size - filled,
                                              entry->d_name, &status, entry->d_off);
      if (needed > size - filled) break;
      filled += needed;
    }
  }
  // With the reply the kernel may release the directory, and its mutex, on another thread.
  if (error != 0 && filled == 0) {
    fuse_reply_err(req, error);
  } else {
    fuse_reply_buf(req, buffer.data(), filled);
  }
}

void FileSystem::releasedir(fuse_req_t req, fuse_ino_t, fuse_file_info* info) {
  delete &handle_of<OpenDirectory>(info);
  fuse_reply_err(req, 0);
}

void FileSystem::statfs(fuse_req_t req, fuse_ino_t) {
  struct statvfs status{};
  if (::fstatvfs(nodes_.find(root_node)->fd.get(), &status) != 0) {
    fuse_reply_err(req, errno);
  } else {
    fuse_reply_statfs(req, &status);
  }
}

void FileSystem::getxattr(fuse_req_t req, fuse_ino_t ino, const char* name, size_t size) {
  std::string layout;
  if (std::string_view(name) == stripe_attribute_name) {
    const ClusterParameters& cluster = parameters_.cluster;
    layout = fmt::format("size={},count={},lock={}", cluster.stripe_size, cluster.servers,
                         cluster.lock_cost > Time{} ? 1 : 0);
  }
  std::vector<char> value(size);
  ssize_t length = 0;
  if (!layout.empty()) {
    length = static_cast<ssize_t>(layout.size());
    if (size != 0 && size < layout.size()) {
      fuse_reply_err(req, ERANGE);
      return;
    }
    std::memcpy(value.data(), layout.data(), size == 0 ? 0 : layout.size());
  } else {
    const auto node = nodes_.find(ino);
    length = node ? ::getxattr(node->proc_path().c_str(), name, value.data(), size) : -1;
    if (length < 0) {
      fuse_reply_err(req, node ? errno : ENODATA);
      return;
    }
  }
  if (size == 0) {
    fuse_reply_xattr(req, static_cast<size_t>(length));
  } else {
    fuse_reply_buf(req, value.data(), static_cast<size_t>(length));
  }
}

void FileSystem::listxattr(fuse_req_t req, fuse_ino_t ino, size_t size) {
  const auto node = nodes_.find(ino);
  std::vector<char> names(size);
  const ssize_t length = node ? ::listxattr(node->proc_path().c_str(), names.data(), size) : 0;
  if (length < 0) {
    fuse_reply_err(req, errno);
  } else if (size == 0) {
    fuse_reply_xattr(req, static_cast<size_t>(length));
  } else {
    fuse_reply_buf(req, names.data(), static_cast<size_t>(length));
  }
}

void FileSystem::setxattr(fuse_req_t req, fuse_ino_t ino, const char* name, const char* value,
                          size_t size, int flags) {
  const auto node = nodes_.find(ino);
  if (!node || std::string_view(name) == stripe_attribute_name) {
    fuse_reply_err(req, EPERM);
  } else {
    fuse_reply_err(
        req, ::setxattr(node->proc_path().c_str(), name, value, size, flags) == 0 ? 0 : errno);
  }
}

void FileSystem::removexattr(fuse_req_t req, fuse_ino_t ino, const char* name) {
  const auto node = nodes_.find(ino);
  if (!node || std::string_view(name) == stripe_attribute_name) {
    fuse_reply_err(req, EPERM);
  } else {
    fuse_reply_err(req, ::removexattr(node->proc_path().c_str(), name) == 0 ? 0 : errno);
  }
}

}  // namespace forebay::testbed
