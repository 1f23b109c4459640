#include "core/intercept/posix/prefetch_record.hpp"

#include <unistd.h>

#include <cstdint>
#include <string>

#include "core/intercept/posix/complaint.hpp"
#include "core/intercept/posix/record_file.hpp"
#include "core/intercept/posix/record_text.hpp"

namespace forebay::posix {
namespace {

constexpr double seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e9;
}

std::string content_of(const std::string& path, const PrefetchFigures& figures) {
  RecordText record;
  record.add("version", 1);
  record.add("path", path);
  record.add("reads", figures.reads);
  record.add("reads_served", figures.reads_served);
  record.add("bytes_asked", figures.bytes_asked);
  record.add("bytes_asked_declared", figures.bytes_asked_declared);
  record.add("bytes_served", figures.bytes_served);
  record.add("stalls", figures.stalls);
  record.add("seconds_waited", seconds(figures.waited_ns));
  record.add("requests", figures.requests);
  record.add("requests_failed", figures.requests_failed);
  record.add("bytes_fetched", figures.bytes_fetched);
  record.add("bytes_refetched", figures.bytes_refetched);
  record.add("bytes_between", figures.bytes_between);
  record.add("gap_found", figures.gap_found);
  record.add("bytes_unused", figures.bytes_unused);
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

void write_prefetch_record(const std::string& path, const PrefetchFigures& figures) {
  leave_record(content_of(path, figures), ".reads");
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
