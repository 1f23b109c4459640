// Goal: no bytes, whoever sent them, make the decoder of call records misbehave; what it accepts is
// what the encoder writes. Method: the input as it is, and with the head that a record must have,
// for a random one is not found by chance.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "core/engine/collective/call_record.hpp"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void try_decode(std::span<const std::byte> wire) {
  const auto records = forebay::decode_call_records(wire);
  if (!records) return;
  require(records->calls.size() * forebay::call_record_bytes == wire.size());
  for (std::size_t i = 0; i < records->calls.size(); ++i) {
    const forebay::CallRecord& record = records->calls[i];
    require(record.start >= 0 && record.length >= 0);
    const forebay::CallRecordWire again = forebay::encode_call_record(record, records->costs[i]);
    require(std::memcmp(again.data(), wire.data(), again.size()) == 0);
    wire = wire.subspan(again.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  try_decode(input);

  constexpr std::size_t head_bytes = 3;  // Magic and version; the flags stay the input's.
  const forebay::CallRecordWire valid = forebay::encode_call_record({}, {});
  std::vector<std::byte> headed(input.begin(), input.end());
  for (std::size_t at = 0; at + head_bytes <= size; at += valid.size()) {
    std::copy_n(valid.begin(), head_bytes, headed.begin() + static_cast<std::ptrdiff_t>(at));
  }
  try_decode(headed);
  return 0;
}
