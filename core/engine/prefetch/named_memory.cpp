#include "core/engine/prefetch/named_memory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "core/engine/prefetch/process_life.hpp"
#include "core/storage/file_limit.hpp"

namespace forebay {
namespace {

/// Who holds the lock of a join may be stopped; then one reads alone. Or it waits for a core: on a
/// busy node that takes many times as long as the join.
constexpr int lock_attempts = 1000;
constexpr int removal_attempts = 50;  ///< It stays then, for whoever comes next.
constexpr std::chrono::milliseconds between_attempts{1};

}  // namespace

NamedMemory::Name NamedMemory::name_for(const char* kind, const FileVersion& version,
                                        std::optional<std::uint64_t> more) {
  Name name{};
  const auto space = space_of_known_life();
  if (!space) return name;
  std::array<char, 18> told_apart{};
  if (more) {
    std::snprintf(told_apart.data(), told_apart.size(), "-%llx",
                  static_cast<unsigned long long>(*more));
  }
  std::snprintf(name.data(), name.size(), "/forebay-%s-%u-%llx-%llx-%llx-%llx%s-%llx", kind,
                ::geteuid(), static_cast<unsigned long long>(version.id.device),
                static_cast<unsigned long long>(version.id.inode),
                static_cast<unsigned long long>(version.size),
                static_cast<unsigned long long>(version.changed_ns), told_apart.data(),
                static_cast<unsigned long long>(*space));
  return name;
}

std::optional<NamedMemory> NamedMemory::open(const char* name, Bytes bytes) {
  if (!may_make_file(bytes)) return std::nullopt;
  Descriptor memory;
  struct stat status{};
  for (int attempt = 0; status.st_nlink == 0; ++attempt) {
    if (attempt == lock_attempts) return std::nullopt;
    // Its last reader may have removed it before it was locked.
    if (!memory.valid()) memory = Descriptor(::shm_open(name, O_RDWR | O_CREAT, 0600));
    if (!memory.valid()) return std::nullopt;
    if (::flock(memory.get(), LOCK_EX | LOCK_NB) != 0) {
      std::this_thread::sleep_for(between_attempts);
      continue;
    }
    if (::fstat(memory.get(), &status) != 0) return std::nullopt;
    if (status.st_nlink == 0) memory = {};
  }
  // Who owns it could cut it under us.
  if (status.st_uid != ::geteuid()) return std::nullopt;
  // What has another length is somebody else's, and may be mapped.
  const bool is_new = status.st_size == 0;
  if (!is_new && status.st_size != bytes) return std::nullopt;
  if (is_new && ::ftruncate(memory.get(), bytes) != 0) {
    remove(name);
    return std::nullopt;
  }
  return NamedMemory(std::move(memory), status.st_ino, is_new);
}

NamedMemory::NamedMemory(Descriptor memory, std::uint64_t inode, bool is_new)
    : memory_(std::move(memory)), inode_(inode), is_new_(is_new) {}

NamedMemory::~NamedMemory() {
  if (memory_.valid()) unlock(memory_);
}

/// Closing it is not enough: a mapping keeps what is open, and with it the lock; and so does a
/// child that the program forks meanwhile.
void NamedMemory::unlock(const Descriptor& memory) { ::flock(memory.get(), LOCK_UN); }

bool NamedMemory::back(Extent part) const {
  return ::fallocate(memory_.get(), 0, part.offset, part.length) == 0;
}

bool NamedMemory::leaves_room(Bytes bytes) const {
  constexpr Bytes part = 4;
  struct statvfs status{};
  // Where there is no limit but the memory itself there are no blocks to count.
  if (::fstatvfs(memory_.get(), &status) != 0 || status.f_blocks == 0) return true;
  return bytes <= static_cast<Bytes>(status.f_bavail) * static_cast<Bytes>(status.f_frsize) / part;
}

Descriptor NamedMemory::try_lock(const char* name, std::uint64_t inode) {
  Descriptor memory(::shm_open(name, O_RDWR, 0));
  struct stat status{};
  if (!memory.valid() || ::fstat(memory.get(), &status) != 0 || status.st_ino != inode) return {};
  // Another may be leaving at the same time, and have looked before this one left.
  for (int attempt = 0; ::flock(memory.get(), LOCK_EX | LOCK_NB) != 0; ++attempt) {
    if (attempt == removal_attempts) return {};
    std::this_thread::sleep_for(between_attempts);
  }
  return memory;
}

void NamedMemory::remove(const char* name) { ::shm_unlink(name); }

}  // namespace forebay
