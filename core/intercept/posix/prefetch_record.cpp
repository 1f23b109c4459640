#include "core/intercept/posix/prefetch_record.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "core/intercept/posix/record_file.hpp"

namespace forebay::posix {
namespace {

using Json = nlohmann::ordered_json;

constexpr double seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e9;
}

std::string content_of(const std::string& path, const PrefetchFigures& figures) {
  const Json record = {{"version", 1},
                       {"path", path},
                       {"reads", figures.reads},
                       {"reads_served", figures.reads_served},
                       {"bytes_asked", figures.bytes_asked},
                       {"bytes_asked_declared", figures.bytes_asked_declared},
                       {"bytes_served", figures.bytes_served},
                       {"stalls", figures.stalls},
                       {"seconds_waited", seconds(figures.waited_ns)},
                       {"requests", figures.requests},
                       {"requests_failed", figures.requests_failed},
                       {"bytes_fetched", figures.bytes_fetched},
                       {"bytes_refetched", figures.bytes_refetched},
                       {"bytes_between", figures.bytes_between},
                       {"bytes_unused", figures.bytes_unused},
                       {"bytes_resident", figures.bytes_resident},
                       {"bytes_planned", figures.bytes_planned},
                       {"extents_outside", figures.extents_outside},
                       {"plans_given_up", figures.plans_given_up},
                       {"memory_peak", figures.memory_peak},
                       {"latency_seconds", seconds(figures.latency_ns)},
                       {"bytes_per_second", figures.bytes_per_second},
                       {"helper_cpu_seconds", seconds(figures.helper_cpu_ns)},
                       {"stopped", figures.stopped}};
  // A path may hold any byte; what is no UTF-8 is replaced.
  return record.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

void write_prefetch_record(const std::string& path, const PrefetchFigures& figures) {
  leave_record(content_of(path, figures), ".reads");
}

void write_mistakes_record(const std::string& path, const std::vector<std::string>& mistakes) {
  const Json record = {{"version", 1}, {"path", path}, {"mistakes", mistakes}};
  const std::string content = record.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (leave_record(content, ".mistakes")) return;
  for (const std::string& mistake : mistakes) {
    std::fprintf(stderr, "forebay: %s: %s\n", path.c_str(), mistake.c_str());
  }
}

void write_gave_up_record(const std::string& why) {
  const Json record = {{"version", 1}, {"process", ::getpid()}, {"stopped", why}};
  leave_record(record.dump(1) + "\n", ".gave-up");
}

}  // namespace forebay::posix
