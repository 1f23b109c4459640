#pragma once

#include <chrono>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/model/extent.hpp"

namespace forebay {

/// One line of what forebay-cache says. Paths may be no UTF-8; JSON is.
void print_line(const nlohmann::json& value);

/// Prints how far it has got, now and then. Thread-safe.
class ProgressPrinter {
 public:
  void print(const char* phase, const std::string& file, Bytes done, Bytes all);

 private:
  std::mutex mutex_;
  std::chrono::steady_clock::time_point printed_;
};

}  // namespace forebay
