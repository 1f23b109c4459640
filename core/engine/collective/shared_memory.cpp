#include "core/engine/collective/shared_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace forebay {

SharedMemory::SharedMemory(std::string name, std::span<std::byte> bytes, bool owns_name)
    : name_(std::move(name)), bytes_(bytes), owns_name_(owns_name) {}

SharedMemory::~SharedMemory() {
  unlink();
  ::munmap(bytes_.data(), bytes_.size());
}

void SharedMemory::unlink() {
  if (owns_name_) ::shm_unlink(name_.c_str());
  owns_name_ = false;
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::map(int descriptor, const std::string& name,
                                                        Bytes size, bool owns_name) {
  void* address = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE,
                         MAP_SHARED, descriptor, 0);
  const int failure = errno;
  ::close(descriptor);
  if (address == MAP_FAILED) {
    if (owns_name) ::shm_unlink(name.c_str());
    return fail(failure, "map shared memory " + name);
  }
  const std::span<std::byte> bytes(static_cast<std::byte*>(address),
                                   static_cast<std::size_t>(size));
  return std::unique_ptr<SharedMemory>(new SharedMemory(name, bytes, owns_name));
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::create(Bytes size) {
  std::uint64_t salt = 0;
  if (::getrandom(&salt, sizeof salt, 0) != sizeof salt) salt = 0;
  const std::string name = fmt::format("/forebay-{}-{:016x}", ::getpid(), salt);
  const int descriptor = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    return fail(errno, "make shared memory " + name);
  }
  // posix_fallocate returns its error and does not set errno.
  if (const int failure = ::posix_fallocate(descriptor, 0, size); failure != 0) {
    ::close(descriptor);
    ::shm_unlink(name.c_str());
    return fail(failure, fmt::format("reserve {} bytes of shared memory in /dev/shm", size));
  }
  return map(descriptor, name, size, true);
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::attach(const std::string& name, Bytes size) {
  const int descriptor = ::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    return fail(errno, "attach to shared memory " + name);
  }
  return map(descriptor, name, size, false);
}

}  // namespace forebay
