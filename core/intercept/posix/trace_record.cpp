#include "core/intercept/posix/trace_record.hpp"

#include "core/intercept/posix/record_file.hpp"
#include "core/intercept/posix/record_text.hpp"
#include "core/model/bytes_beyond_utf8.hpp"

namespace forebay::posix {

void write_trace_record(const std::string& path, Bytes size, const ReadTrace& trace) {
  std::string extents = "[";
  for (const Extent& extent : trace.extents()) {
    if (extents.size() > 1) extents += ',';
    extents += "[" + std::to_string(extent.offset) + "," + std::to_string(extent.length) + "]";
  }
  RecordText record;
  record.add("version", 1);
  record.add("path", path);  // For people, where it is no UTF-8.
  record.add("size", size);
  record.add("reads", trace.reads());
  record.add("bytes", trace.bytes());
  record.add("left_out", trace.left_out());
  record.add_written("extents", extents + "]");
  if (const std::string bytes = bytes_beyond_utf8(path); !bytes.empty()) {
    record.add("path_bytes", bytes);
  }
  leave_record(record.take(), ".trace");
}

}  // namespace forebay::posix
