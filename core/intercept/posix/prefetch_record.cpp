#include "core/intercept/posix/prefetch_record.hpp"

#include <unistd.h>
#define XXH_INLINE_ALL  // No library more in every process.
#include <xxhash.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace forebay::posix {
namespace {

using Json = nlohmann::ordered_json;

constexpr double seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e9;
}

std::string content_of(const PrefetchedFile& file) {
  const PrefetchFigures figures = file.figures();
  const Json record = {{"version", 1},
                       {"path", file.path()},
                       {"reads", figures.reads},
                       {"reads_served", figures.reads_served},
                       {"bytes_asked", figures.bytes_asked},
                       {"bytes_served", figures.bytes_served},
                       {"stalls", figures.stalls},
                       {"seconds_waited", seconds(figures.waited_ns)},
                       {"requests", figures.requests},
                       {"requests_failed", figures.requests_failed},
                       {"bytes_fetched", figures.bytes_fetched},
                       {"bytes_unused", figures.bytes_unused},
                       {"bytes_resident", figures.bytes_resident},
                       {"bytes_planned", figures.bytes_planned},
                       {"extents_outside", figures.extents_outside},
                       {"plans_given_up", figures.plans_given_up},
                       {"memory_peak", figures.memory_peak},
                       {"latency_seconds", seconds(figures.latency_ns)},
                       {"bytes_per_second", figures.bytes_per_second},
                       {"stopped", figures.stopped}};
  // A path may hold any byte; what is no UTF-8 is replaced.
  return record.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

void write_prefetch_record(const PrefetchedFile& file) {
  const char* directory = std::getenv("FOREBAY_REPORT_DIR");
  if (directory == nullptr || directory[0] == '\0') return;
  static std::atomic<int> sequence{0};
  const std::string content = content_of(file);
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "%d-%d-%016llx.reads", ::getpid(), sequence++,
                static_cast<unsigned long long>(XXH64(content.data(), content.size(), 0)));
  const std::filesystem::path place(directory);
  const auto hidden = place / ("." + std::string(name.data()));
  std::ofstream out(hidden, std::ios::binary);
  out << content;
  out.close();
  std::error_code failed;
  if (out) std::filesystem::rename(hidden, place / name.data(), failed);
  if (!out || failed) std::filesystem::remove(hidden, failed);
}

}  // namespace forebay::posix
