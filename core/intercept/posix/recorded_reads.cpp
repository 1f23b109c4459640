#include "core/intercept/posix/recorded_reads.hpp"

#include <unistd.h>

#include <cerrno>
#include <memory>
#include <mutex>

#include "core/intercept/posix/managed_files.hpp"
#include "core/intercept/posix/read_ahead.hpp"
#include "core/intercept/posix/registry.hpp"
#include "core/model/read_trace.hpp"

namespace forebay::posix {

void record(int descriptor, const FileVersion& version, const char* path) {
  close_listed(descriptor);  // If it was closed behind our back.
  Registry& state = *registry.load();
  const std::lock_guard lock(state.mutex);
  follow(state, descriptor,
         {.trace = std::make_shared<ReadTrace>(), .path = path, .version = version});
}

off_t position_for_trace(int descriptor) {
  return recording ? ::lseek(descriptor, 0, SEEK_CUR) : -1;
}

void was_read(int descriptor, off_t offset, ssize_t moved) {
  if (!recording || moved <= 0 || inside) return;
  ManagedFile* managed = listed(descriptor);
  if (managed == nullptr) return;
  if (!is_own_process(*registry.load())) return;
  const int before = errno;
  const Inside guard;
  {
    const std::lock_guard lock(managed->mutex);
    const off_t from = offset >= 0 ? offset : ::lseek(descriptor, 0, SEEK_CUR) - moved;
    if (managed->followed.trace != nullptr && from >= 0)
      managed->followed.trace->add({from, moved});
  }
  errno = before;
}

}  // namespace forebay::posix
