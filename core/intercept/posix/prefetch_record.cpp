#include "core/intercept/posix/prefetch_record.hpp"

#include <unistd.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/intercept/posix/complaint.hpp"
#include "core/intercept/posix/record_file.hpp"
#include "core/intercept/posix/record_text.hpp"

namespace forebay::posix {
namespace {

constexpr double seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e9;
}

std::string content_of(const std::string& path, std::int64_t openings,
                       const PrefetchFigures& figures) {
  RecordText record;
  const auto add_known = [&record](bool is_known, const char* key, const nlohmann::json& value) {
    if (is_known) return record.add(key, value);
    record.add_written(key, "null");
  };
  const bool is_served = !figures.is_by_page_cache;
  const bool is_timed = figures.by_kernel.has_value();
  const KernelReads by_kernel = figures.by_kernel.value_or(KernelReads{});
  record.add("version", 2);
  record.add("path", path);
  record.add("openings", openings);
  record.add("reads", figures.reads);
  record.add("reads_served", figures.reads_served);
  record.add("bytes_asked", figures.bytes_asked);
  record.add("bytes_asked_declared", figures.bytes_asked_declared);
  record.add("bytes_unfollowed", figures.bytes_unfollowed);
  record.add("bytes_served", figures.bytes_served);
  add_known(is_served, "stalls", figures.stalls);
  add_known(is_served, "seconds_waited", seconds(figures.waited_ns));
  add_known(is_timed, "kernel_reads", by_kernel.calls);
  add_known(is_timed, "kernel_stalls", by_kernel.stalls);
  add_known(is_timed, "kernel_seconds", seconds(by_kernel.ns));
  record.add("has_unseen_reads", figures.has_unseen_reads);
  record.add("requests", figures.requests);
  record.add("requests_failed", figures.requests_failed);
  record.add("bytes_fetched", figures.bytes_fetched);
  record.add("bytes_refetched", figures.bytes_refetched);
  record.add("bytes_between", figures.bytes_between);
  record.add("gap_found", figures.gap_found);
  add_known(is_served, "bytes_unused", figures.bytes_unused);
  record.add("bytes_resident", figures.bytes_resident);
  record.add("bytes_planned", figures.bytes_planned);
  record.add("extents_outside", figures.extents_outside);
  record.add("plans_given_up", figures.plans_given_up);
  record.add("memory_peak", figures.memory_peak);
  record.add("latency_seconds", seconds(figures.latency_ns));
  record.add("bytes_per_second", figures.bytes_per_second);
  record.add("helper_cpu_seconds", seconds(figures.helper_cpu_ns));
  record.add("stopped", figures.stopped);
  return record.take();
}

}  // namespace

void write_prefetch_record(const std::string& path, std::int64_t openings,
                           const PrefetchFigures& figures) {
  leave_record(content_of(path, openings, figures), ".reads");
}

void write_left_alone_record(std::int64_t openings, const KernelReads& by_kernel,
                             const std::string& why) {
  RecordText record;
  record.add("version", 1);
  record.add("openings", openings);
  record.add("kernel_reads", by_kernel.calls);
  record.add("kernel_stalls", by_kernel.stalls);
  record.add("kernel_seconds", seconds(by_kernel.ns));
  record.add("reads", by_kernel.reads_unfollowed);
  record.add("bytes_asked", by_kernel.bytes_unfollowed);
  record.add("stopped", why);
  leave_record(record.take(), ".left-alone");
}

void write_mistakes_record(const std::string& path, const std::vector<std::string>& mistakes) {
  std::string sentences;
  for (const std::string& mistake : mistakes) {
    sentences += sentences.empty() ? "[" : ", ";
    sentences += RecordText::written(mistake);
  }
  RecordText record;
  record.add("version", 1);
  record.add("path", path);
  record.add_written("mistakes", sentences + "]");
  if (leave_record(record.take(), ".mistakes")) return;
  const std::string about = path + ": ";
  for (const std::string& mistake : mistakes) complain(about + mistake);
}

void write_gave_up_record(const std::string& why) {
  RecordText record;
  record.add("version", 1);
  record.add("process", ::getpid());
  record.add("stopped", why);
  leave_record(record.take(), ".gave-up");
}

}  // namespace forebay::posix
