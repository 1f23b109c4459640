#include "core/intercept/posix/followed.hpp"

#include "core/intercept/posix/prefetch_record.hpp"
#include "core/intercept/posix/trace_record.hpp"

namespace forebay::posix {

void write_record(const Followed& followed) {
  if (followed.file != nullptr) {
    write_prefetch_record(followed.file->path(), followed.file->figures());
  }
  if (followed.advised != nullptr) {
    followed.advised->finish();
    write_prefetch_record(followed.advised->path(), followed.advised->figures());
  }
  if (followed.trace != nullptr && followed.trace->reads() > 0) {
    write_trace_record(followed.path, followed.version.size, *followed.trace);
  }
}

}  // namespace forebay::posix
