#include "toolkit/native/progress_printer.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace forebay {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds period{200};

}  // namespace

void print_line(const json& value) {
  std::puts(value.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

void ProgressPrinter::print(const char* phase, const std::string& file, Bytes done, Bytes all) {
  const std::scoped_lock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now - printed_ < period && done < all) return;
  printed_ = now;
  print_line({{"event", "progress"},
              {"phase", phase},
              {"file", file},
              {"done_bytes", done},
              {"all_bytes", all}});
}

}  // namespace forebay
