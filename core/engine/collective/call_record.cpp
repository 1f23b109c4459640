#include "core/engine/collective/call_record.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string>

#include "core/engine/collective/exchange_protocol.hpp"

namespace forebay {
namespace {

/// "FC" in the memory of a little-endian machine.
constexpr std::uint16_t magic = 0x4346;
constexpr std::uint8_t known_flags = 1;
static_assert(exchange_protocol_version < 256);

/// In the byte order of the machine: an MPI job of this engine runs on machines of one kind.
struct Layout {
  std::uint16_t magic;
  std::uint8_t version;
  std::uint8_t flags;  ///< 1: seamless.
  CostWord cost;
  std::uint64_t tree;
  std::int64_t displacement;
  std::int64_t extent;
  std::int64_t start;
  std::int64_t length;
};
static_assert(sizeof(Layout) == call_record_bytes);

/// What is wrong with a record; empty if nothing is.
std::string problem_of(const Layout& layout) {
  if (layout.magic != magic) return "it is no call record";
  if (layout.version != exchange_protocol_version) {
    return fmt::format("it is of version {}, not {}: all ranks must run the same Forebay",
                       layout.version, exchange_protocol_version);
  }
  if ((layout.flags & ~known_flags) != 0) return "it has an unknown flag";
  Bytes end = 0;
  if (layout.start < 0 || layout.length < 0 ||
      __builtin_add_overflow(layout.start, layout.length, &end)) {
    return "its range is impossible";
  }
  if (layout.length == 0 && (layout.start != 0 || layout.displacement != 0 || layout.extent != 0)) {
    return "it tells of a view and moves nothing";
  }
  return {};
}

}  // namespace

CallRecordWire encode_call_record(const CallRecord& record, const CostWord& cost) {
  const Layout layout{.magic = magic,
                      .version = static_cast<std::uint8_t>(exchange_protocol_version),
                      .flags = static_cast<std::uint8_t>(record.seamless ? 1 : 0),
                      .cost = cost,
                      .tree = record.tree,
                      .displacement = record.displacement,
                      .extent = record.extent,
                      .start = record.start,
                      .length = record.length};
  CallRecordWire wire;
  std::memcpy(wire.data(), &layout, sizeof layout);
  return wire;
}

Result<CallRecords> decode_call_records(std::span<const std::byte> wire) {
  CallRecords records;
  records.calls.reserve(wire.size() / call_record_bytes);
  records.costs.reserve(wire.size() / call_record_bytes);
  for (; !wire.empty(); wire = wire.subspan(call_record_bytes)) {
    const auto damaged = [&records](const std::string& problem) {
      return tl::unexpected(Error{
          ErrorKind::internal, 0,
          fmt::format("agree on a call: record of rank {}: {}", records.calls.size(), problem)});
    };
    if (wire.size() < call_record_bytes) return damaged("it is cut short");
    Layout layout;
    std::memcpy(&layout, wire.data(), sizeof layout);
    if (const std::string problem = problem_of(layout); !problem.empty()) return damaged(problem);
    records.costs.push_back(layout.cost);
    records.calls.push_back({.tree = layout.tree,
                             .displacement = layout.displacement,
                             .extent = layout.extent,
                             .start = layout.start,
                             .length = layout.length,
                             .seamless = (layout.flags & 1) != 0});
  }
  return records;
}

}  // namespace forebay
