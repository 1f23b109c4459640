#include "core/engine/cache/host_capacity.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

namespace forebay {
namespace {

/// The number is that of the layout of Resource's state and of what is locked.
constexpr const char* capacity_name = ".capacity-2";

/// Bytes of the file, which are locked and mean nothing else. Who comes has the door alone until
/// the state is there, and looks behind it whether anybody uses the file: so if one dies while he
/// makes the state, the next one finds nobody and makes it anew.
constexpr Extent door_lock{0, 1};
constexpr Extent users_lock{1, 1};
constexpr Extent both_locks{0, 2};

bool set_lock(int descriptor, int command, short type, Extent bytes) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = bytes.offset;
  lock.l_len = bytes.length;
  int done = 0;
  do {
    done = ::fcntl(descriptor, command, &lock);
  } while (done != 0 && errno == EINTR);
  return done == 0;
}

/// Whether it has no name any more; nothing where that cannot be told.
std::optional<bool> is_removed(int descriptor) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return std::nullopt;
  return status.st_nlink == 0;
}

/// One user's hold on the file.
struct Hold {
  std::shared_ptr<CacheDirectory> directory;
  std::string name;  ///< Of the file, in the directory.
  Descriptor file;
  std::span<std::byte> memory;
  std::optional<Resource> resource;

  Hold() = default;
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() {
    resource.reset();
    if (!memory.empty()) ::munmap(memory.data(), memory.size());
    // The last one removes it: of two that leave at a time, each has let go of it before it looks
    // whether the other has. Who has opened it already, and waits at the door, looks again. Where
    // the other has removed it already, the name may be that of a new one.
    if (file.valid() && set_lock(file.get(), F_OFD_SETLK, F_UNLCK, both_locks) &&
        set_lock(file.get(), F_OFD_SETLK, F_WRLCK, both_locks) && is_removed(file.get()) == false) {
      ::unlinkat(directory->descriptor(), name.c_str(), 0);
    }
  }
};

/// Opens the file and has its door; alone in it, and with zeros in it, if nobody else uses it.
/// False: it was removed meanwhile.
Result<bool> enter(Hold& hold, const std::string& path) {
  constexpr int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  const int directory = hold.directory->descriptor();
  hold.file = Descriptor(::openat(directory, hold.name.c_str(), flags, S_IRUSR | S_IWUSR));
  if (!hold.file.valid()) return fail(errno, "open " + path);
  const int file = hold.file.get();
  if (!set_lock(file, F_OFD_SETLKW, F_WRLCK, door_lock)) return fail(errno, "lock " + path);
  const auto removed = is_removed(file);
  if (!removed) return fail(errno, "look at " + path);
  if (*removed) return false;
  if (!set_lock(file, F_OFD_SETLK, F_WRLCK, users_lock)) return true;
  if (::ftruncate(file, 0) != 0) return fail(errno, "empty " + path);
  // posix_fallocate returns its error and does not set errno.
  const int failure = ::posix_fallocate(file, 0, Resource::state_bytes());
  if (failure != 0) return fail(failure, "reserve " + path);
  return true;
}

/// By the file of that name in `directory`.
Result<std::shared_ptr<Resource>> share_by(const std::shared_ptr<CacheDirectory>& directory,
                                           const std::string& name, Bytes amount) {
  const std::string path = directory->path() + "/" + name;
  auto hold = std::make_shared<Hold>();
  hold->directory = directory;
  hold->name = name;
  for (;;) {
    const auto entered = enter(*hold, path);
    if (!entered) return tl::unexpected(entered.error());
    if (*entered) break;
  }
  const auto size = static_cast<std::size_t>(Resource::state_bytes());
  void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, hold->file.get(), 0);
  if (address == MAP_FAILED) return fail(errno, "map " + path);
  hold->memory = {static_cast<std::byte*>(address), size};
  hold->resource.emplace("cache.local", amount, hold->memory);
  if (!set_lock(hold->file.get(), F_OFD_SETLK, F_RDLCK, users_lock) ||
      !set_lock(hold->file.get(), F_OFD_SETLK, F_UNLCK, door_lock)) {
    return fail(errno, "lock " + path);
  }
  return std::shared_ptr<Resource>(hold, &*hold->resource);
}

}  // namespace

Result<std::shared_ptr<Resource>> share_host_capacity(
    const std::shared_ptr<CacheDirectory>& directory, Bytes amount) {
  auto shared = share_by(directory, capacity_name, amount);
  if (shared || shared.error().os_errno != ENODEV) return shared;
  // A file system on which nothing can be mapped: then in memory, under the directory's number.
  auto memory = CacheDirectory::open("/dev/shm", CacheDirectory::Access::create);
  if (!memory) return tl::unexpected(memory.error());
  struct stat status = {};
  if (::fstat(directory->descriptor(), &status) != 0) {
    return fail(errno, "look at " + directory->path());
  }
  return share_by(*memory,
                  std::string(capacity_name) + "-" + std::to_string(status.st_dev) + "-" +
                      std::to_string(status.st_ino),
                  amount);
}

}  // namespace forebay
