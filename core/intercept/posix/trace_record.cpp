#include "core/intercept/posix/trace_record.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/intercept/posix/record_file.hpp"

namespace forebay::posix {

void write_trace_record(const std::string& path, Bytes size, const ReadTrace& trace) {
  using Json = nlohmann::ordered_json;
  auto extents = Json::array();
  for (const Extent& extent : trace.extents()) {
    extents.push_back(Json::array({extent.offset, extent.length}));
  }
  const Json record = {{"version", 1},
                       {"path", path},
                       {"size", size},
                       {"reads", trace.reads()},
                       {"bytes", trace.bytes()},
                       {"left_out", trace.left_out()},
                       {"extents", std::move(extents)}};
  // A path may hold any byte; what is no UTF-8 is replaced.
  leave_record(record.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n", ".trace");
}

}  // namespace forebay::posix
