#include "core/intercept/posix/followed.hpp"

#include <utility>

#include "core/intercept/posix/prefetch_record.hpp"
#include "core/intercept/posix/trace_record.hpp"

namespace forebay::posix {
namespace {

/// With the reads that the kernel carried out.
PrefetchFigures whole(PrefetchFigures figures, const KernelReads& more) {
  KernelReads all = figures.by_kernel.value_or(KernelReads{});
  all += more;
  figures.reads += all.reads_unfollowed;
  figures.bytes_asked += all.bytes_unfollowed;
  figures.bytes_unfollowed += all.bytes_unfollowed;
  figures.by_kernel = all;
  return figures;
}

}  // namespace

bool is_advised(const Followed& followed) { return followed.advised != nullptr; }

bool is_left_alone(const Followed& followed) {
  return followed.file == nullptr && followed.advised == nullptr && followed.trace == nullptr;
}

bool has_to_be_told(const Followed& followed) {
  return is_left_alone(followed) && (followed.by_kernel.calls > 0 || !followed.left_alone.empty());
}

std::string why_left_alone(const Followed& followed) {
  if (!followed.left_alone.empty()) return followed.left_alone;
  return "some openings read elsewhere than was declared, or little";
}

void write_record(const Followed& followed) {
  if (followed.file != nullptr) {
    write_prefetch_record(followed.file->path(), followed.openings,
                          whole(followed.file->figures(), followed.by_kernel));
  }
  if (followed.advised != nullptr) {
    followed.advised->finish();
    write_prefetch_record(followed.advised->path(), followed.openings,
                          whole(followed.advised->figures(), followed.by_kernel));
  }
  if (has_to_be_told(followed)) {
    auto figures = PrefetchFigures::of_nothing(why_left_alone(followed));
    // Without a call that was seen nothing is known of any.
    if (followed.by_kernel.calls > 0) figures = whole(std::move(figures), followed.by_kernel);
    write_prefetch_record(followed.path, followed.openings, figures);
  }
  if (followed.trace != nullptr && followed.trace->reads() > 0) {
    write_trace_record(followed.path, followed.version.size, *followed.trace);
  }
}

}  // namespace forebay::posix
