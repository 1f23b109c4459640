#include "core/engine/cache/log_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/engine/cache/flush_mark.hpp"

namespace forebay {
namespace {

constexpr int directory_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr mode_t others = S_IRWXG | S_IRWXO;

tl::unexpected<Error> refuse(const std::string& path, const std::string& why) {
  return tl::unexpected(Error{ErrorKind::access, 0, "the cache does not use " + path + ": " + why});
}

constexpr const char* lock_name = "lock";

/// Sets or asks for the lock on the whole of a lock file.
bool lock_call(int descriptor, int command, struct flock& lock, short type = F_WRLCK) {
  lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return ::fcntl(descriptor, command, &lock) == 0;
}

std::string user_directory_name() { return "forebay-cache-" + std::to_string(::geteuid()); }

/// What `descriptor` is open on must be this user's, and nobody else's to open.
Status check_own(int descriptor, const std::string& path) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return fail(errno, "look at " + path);
  if (status.st_uid != ::geteuid()) return refuse(path, "it belongs to another user");
  if ((status.st_mode & others) != 0) return refuse(path, "it is open to other users");
  return {};
}

/// A directory that anybody may rename entries of is no place for ours.
Status check_parent(int descriptor, const std::string& path) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return fail(errno, "look at " + path);
  const bool open_to_all = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (open_to_all && (status.st_mode & S_ISVTX) == 0) {
    return refuse(path, "others may write there and it is not sticky");
  }
  if (status.st_uid != 0 && status.st_uid != ::geteuid() && (status.st_mode & S_ISVTX) == 0) {
    return refuse(path, "it belongs to another user");
  }
  return {};
}

Result<Descriptor> open_own_directory(int parent, const std::string& name,
                                      const std::string& path) {
  Descriptor directory(::openat(parent, name.c_str(), directory_flags));
  if (!directory.valid()) {
    // Linux says ENOTDIR of a link that O_DIRECTORY | O_NOFOLLOW met.
    if (errno == ELOOP || errno == ENOTDIR) {
      return refuse(path, "it is a symbolic link or no directory");
    }
    return fail(errno, "open " + path);
  }
  if (auto own = check_own(directory.get(), path); !own) return tl::unexpected(own.error());
  return directory;
}

Result<std::vector<std::string>> names_in(int directory, const std::string& path,
                                          unsigned char wanted_type) {
  // A directory stream takes its descriptor over, and shares the position with copies of it.
  const int own = ::openat(directory, ".", directory_flags);
  DIR* stream = own < 0 ? nullptr : ::fdopendir(own);
  if (stream == nullptr) {
    const int failure = errno;
    if (own >= 0) ::close(own);
    return fail(failure, "list " + path);
  }
  std::vector<std::string> names;
  errno = 0;
  for (const dirent* entry = ::readdir(stream); entry != nullptr; entry = ::readdir(stream)) {
    const std::string name = entry->d_name;
    const bool itself = name == "." || name == "..";
    if (!itself && (entry->d_type == wanted_type || entry->d_type == DT_UNKNOWN)) {
      names.push_back(name);
    }
    errno = 0;
  }
  const int failure = errno;
  ::closedir(stream);
  if (failure != 0) return fail(failure, "list " + path);
  std::ranges::sort(names);
  return names;
}

/// Of the file system that the directory is on. One without a limit has no size.
bool half_free(int directory) {
  struct statfs file_system{};
  return ::fstatfs(directory, &file_system) == 0 &&
         file_system.f_bavail >= file_system.f_blocks / 2;
}

/// Still without its storage: the first `size` bytes as they lie in memory, if they can be mapped.
LogFile mapped(int descriptor, Bytes size, int protection) {
  const auto length = static_cast<std::size_t>(size);
  void* address = ::mmap(nullptr, length, protection, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) return {};
  const auto unmap = [length](std::byte* at) { ::munmap(at, length); };
  return {nullptr, {static_cast<std::byte*>(address), unmap}, size};
}

}  // namespace

CacheDirectory::CacheDirectory(Descriptor directory, std::string path)
    : directory_(std::move(directory)), path_(std::move(path)) {}

Result<std::shared_ptr<CacheDirectory>> CacheDirectory::open(const std::string& local_path,
                                                             Access access) {
  std::string base = local_path;
  while (base.size() > 1 && base.ends_with('/')) base.pop_back();
  if (base.ends_with("/" + user_directory_name())) base.resize(base.rfind('/'));
  if (base.empty()) base = "/";
  const Descriptor parent(::open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent.valid()) return fail(errno, "open " + base);
  if (auto fit = check_parent(parent.get(), base); !fit) return tl::unexpected(fit.error());

  const std::string name = user_directory_name();
  std::error_code unknown;
  const std::filesystem::path real = std::filesystem::canonical(base, unknown);
  std::string path = (unknown ? base : real.string()) + "/" + name;
  if (access == Access::create) {
    if (::mkdirat(parent.get(), name.c_str(), S_IRWXU) == 0) {
      if (auto durable = make_names_durable(parent.get(), base); !durable) {
        return tl::unexpected(durable.error());
      }
    } else if (errno != EEXIST) {
      return fail(errno, "make " + path);
    }
  }
  auto directory = open_own_directory(parent.get(), name, path);
  if (!directory) return tl::unexpected(directory.error());
  return std::shared_ptr<CacheDirectory>(
      new CacheDirectory(std::move(*directory), std::move(path)));
}

bool CacheDirectory::in_memory() const {
  struct statfs file_system{};
  return ::fstatfs(directory_.get(), &file_system) == 0 && file_system.f_type == TMPFS_MAGIC;
}

Result<std::vector<std::string>> CacheDirectory::logs() const {
  auto names = names_in(directory_.get(), path_, DT_DIR);
  if (names) std::erase_if(*names, [](const std::string& name) { return name.starts_with('.'); });
  return names;
}

LogDirectory::LogDirectory(std::shared_ptr<CacheDirectory> parent, std::string name,
                           Descriptor directory)
    : parent_(std::move(parent)),
      name_(std::move(name)),
      path_(parent_->path() + "/" + name_),
      directory_(std::move(directory)),
      in_memory_(parent_->in_memory()) {}

Result<std::unique_ptr<LogDirectory>> LogDirectory::create(std::shared_ptr<CacheDirectory> parent,
                                                           const std::string& name) {
  const std::string path = parent->path() + "/" + name;
  if (::mkdirat(parent->directory_.get(), name.c_str(), S_IRWXU) != 0) {
    return fail(errno, "make " + path);
  }
  auto log = open(std::move(parent), name, Use::look);
  if (!log) return log;
  LogDirectory& made = **log;
  made.lock_ =
      Descriptor(::openat(made.directory_.get(), lock_name,
                          O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!made.lock_.valid()) return fail(errno, "make " + made.path_of(lock_name));
  if (auto locked = made.take_lock(); !locked) return tl::unexpected(locked.error());
  return log;
}

Result<std::unique_ptr<LogDirectory>> LogDirectory::open(std::shared_ptr<CacheDirectory> parent,
                                                         const std::string& name, Use use) {
  const std::string path = parent->path() + "/" + name;
  auto directory = open_own_directory(parent->directory_.get(), name, path);
  if (!directory) return tl::unexpected(directory.error());
  std::unique_ptr<LogDirectory> log(
      new LogDirectory(std::move(parent), name, std::move(*directory)));
  log->lock_ =
      Descriptor(::openat(log->directory_.get(), lock_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  // Without a lock file its maker died before it wrote anything.
  if (use == Use::replace && log->lock_.valid()) {
    if (auto locked = log->take_lock(); !locked) return tl::unexpected(locked.error());
  }
  return log;
}

Status LogDirectory::take_lock() {
  struct flock lock;
  if (lock_call(lock_.get(), F_OFD_SETLK, lock)) return {};
  if (errno != EAGAIN && errno != EACCES) return fail(errno, "lock " + path_);
  return tl::unexpected(
      Error{ErrorKind::exists, 0, "a running process uses the write-behind log " + path_});
}

Status LogDirectory::rename_log(const std::string& name) {
  const int parent = parent_->directory_.get();
  const std::string path = parent_->path() + "/" + name;
  if (::renameat2(parent, name_.c_str(), parent, name.c_str(), RENAME_NOREPLACE) != 0) {
    return fail(errno, "rename " + path_ + " to " + path);
  }
  name_ = name;
  path_ = path;
  return {};
}

LogDirectory::User LogDirectory::user() const {
  struct flock lock;
  if (!lock_.valid() || !lock_call(lock_.get(), F_OFD_GETLK, lock)) return User::nobody;
  if (lock.l_type == F_UNLCK) return User::nobody;
  return lock.l_type == F_RDLCK ? User::recovery : User::program;
}

Status LogDirectory::say_recovering() {
  struct flock lock;
  // Without a lock file its maker died before it wrote anything, and nobody holds it.
  if (!lock_.valid() || lock_call(lock_.get(), F_OFD_SETLK, lock, F_RDLCK)) return {};
  return fail(errno, "lock " + path_);
}

Result<LogFile> LogDirectory::create(const std::string& name, Bytes size) {
  return make(name, size, Storage::now);
}

Result<LogFile> LogDirectory::lay_out(const std::string& name, Bytes size) {
  const bool plenty = in_memory_ && half_free(directory_.get());
  return make(name, size, plenty ? Storage::later : Storage::now);
}

Result<LogFile> LogDirectory::make(const std::string& name, Bytes size, Storage storage) {
  const std::string path = path_of(name);
  Descriptor descriptor(::openat(directory_.get(), name.c_str(),
                                 O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                 S_IRUSR | S_IWUSR));
  if (!descriptor.valid()) return fail(errno, "make " + path);
  LogFile file;
  if (in_memory_) file = mapped(descriptor.get(), size, PROT_READ | PROT_WRITE);
  file.zeroed = in_memory_ && storage == Storage::now;
  file.storage = adopt_posix_file(std::move(descriptor), OpenMode::read_write, path, counters_);
  if (auto sized =
          storage == Storage::now ? file.storage->allocate(size) : file.storage->resize(size);
      !sized) {
    ::unlinkat(directory_.get(), name.c_str(), 0);
    return tl::unexpected(sized.error());
  }
  return file;
}

Result<std::unique_ptr<StorageFile>> LogDirectory::open(const std::string& name) {
  auto descriptor = open_file(name);
  if (!descriptor) return tl::unexpected(descriptor.error());
  return adopt_posix_file(std::move(*descriptor), OpenMode::read_write, path_of(name), counters_);
}

Result<LogFile> LogDirectory::open_contents(const std::string& name) {
  auto descriptor = open_file(name);
  if (!descriptor) return tl::unexpected(descriptor.error());
  LogFile file;
  const off_t filled = in_memory_ ? ::lseek(descriptor->get(), 0, SEEK_HOLE) : 0;
  if (filled > 0) file = mapped(descriptor->get(), filled, PROT_READ);
  file.storage =
      adopt_posix_file(std::move(*descriptor), OpenMode::read_write, path_of(name), counters_);
  return file;
}

Result<Descriptor> LogDirectory::open_file(const std::string& name) const {
  const std::string path = path_of(name);
  Descriptor descriptor(
      ::openat(directory_.get(), name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!descriptor.valid()) {
    if (errno == ELOOP) return refuse(path, "it is a symbolic link");
    return fail(errno, "open " + path);
  }
  struct stat status{};
  if (::fstat(descriptor.get(), &status) != 0) return fail(errno, "look at " + path);
  if (!S_ISREG(status.st_mode)) return refuse(path, "it is no regular file");
  if (auto own = check_own(descriptor.get(), path); !own) return tl::unexpected(own.error());
  return descriptor;
}

Result<std::vector<std::string>> LogDirectory::list() {
  auto names = names_in(directory_.get(), path_, DT_REG);
  if (names) std::erase(*names, lock_name);
  return names;
}

Status LogDirectory::rename(const std::string& from, const std::string& to) {
  if (::renameat(directory_.get(), from.c_str(), directory_.get(), to.c_str()) == 0) return {};
  return fail(errno, "rename " + path_of(from) + " to " + to);
}

Status LogDirectory::move_to(LogStore& other, const std::string& name, const std::string& as) {
  const auto* const to = dynamic_cast<LogDirectory*>(&other);
  if (to == nullptr) return fail(EXDEV, "move " + path_of(name) + " to " + other.path());
  if (::renameat2(directory_.get(), name.c_str(), to->directory_.get(), as.c_str(),
                  RENAME_NOREPLACE) == 0) {
    return {};
  }
  return fail(errno, "move " + path_of(name) + " to " + to->path_of(as));
}

Status LogDirectory::remove(const std::string& name) {
  if (::unlinkat(directory_.get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return fail(errno, "remove " + path_of(name));
}

Status LogDirectory::sync() {
  if (auto durable = make_names_durable(directory_.get(), path_); !durable) return durable;
  if (is_found_) return {};
  // Its own name is no better than what it holds.
  auto found = make_names_durable(parent_->directory_.get(), parent_->path());
  is_found_ = found.has_value();
  return found;
}

Status LogDirectory::destroy() {
  auto names = list();
  if (!names) return tl::unexpected(names.error());
  // The mark goes last: without it, what is left is replayed.
  std::stable_partition(names->begin(), names->end(),
                        [](const auto& name) { return name != flush_mark_name; });
  for (const std::string& name : *names) {
    if (auto removed = remove(name); !removed) return removed;
  }
  if (auto removed = remove(lock_name); !removed) return removed;
  const int parent = parent_->directory_.get();
  if (::unlinkat(parent, name_.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  return fail(errno, "remove " + path_);
}

}  // namespace forebay
