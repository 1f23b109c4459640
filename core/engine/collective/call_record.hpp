#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"
#include "core/plan/storage_cost.hpp"

namespace forebay {

/// What a rank says of its part in a collective call (docs/formats/messages.md, "Call record").
struct CallRecord {
  std::uint64_t tree = 0;  ///< Fingerprint of the view's tree.
  Bytes displacement = 0;
  Bytes extent = 0;
  Bytes start = 0;        ///< The first data position of the view that is moved.
  Bytes length = 0;       ///< 0: the rank moves nothing; displacement, extent and start are 0 too.
  bool seamless = false;  ///< The view is, also where length is 0.

  bool operator==(const CallRecord&) const = default;
};

constexpr std::size_t call_record_bytes = 48;
using CallRecordWire = std::array<std::byte, call_record_bytes>;

/// `cost` goes with the record and is no part of the call: calls that differ in it alone are alike.
CallRecordWire encode_call_record(const CallRecord& record, const CostWord& cost);

/// What all ranks said, by rank.
struct CallRecords {
  std::vector<CallRecord> calls;
  std::vector<CostWord> costs;
};

/// Reads records that lie one behind the other as a gather leaves them. Error: internal, with the
/// rank and what is wrong, where one is not what encode_call_record makes.
Result<CallRecords> decode_call_records(std::span<const std::byte> wire);

}  // namespace forebay
