#include "core/engine/redundancy/stripe.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/engine/cache/cbor_map.hpp"
#include "core/engine/cache/sealed_block.hpp"
#include "core/engine/redundancy/erasure_code.hpp"

namespace forebay {
namespace {

using nlohmann::json;

json range_map(const StripeRange& range) {
  return {{"segment", range.segment}, {"first_sequence", range.first_sequence},
          {"salt", range.salt},       {"segment_bytes", range.segment_bytes},
          {"begin", range.begin},     {"end", range.end}};
}

bool get_range(const json& map, StripeRange& range) {
  return map.is_object() && get_field(map, "segment", range.segment) &&
         get_field(map, "first_sequence", range.first_sequence) &&
         get_field(map, "salt", range.salt) &&
         get_field(map, "segment_bytes", range.segment_bytes) &&
         get_field(map, "begin", range.begin) && get_field(map, "end", range.end) &&
         range.first_sequence > 0 && range.begin >= superblock_bytes && range.begin < range.end &&
         range.end <= range.segment_bytes;
}

json member_map(const StripeMember& member) {
  json ranges = json::array();
  for (const StripeRange& range : member.ranges) ranges.push_back(range_map(range));
  return {{"identity", identity_map(member.identity)},
          {"ranges", std::move(ranges)},
          {"last_sequence", member.last_sequence},
          {"flushed", member.flushed},
          {"checksum", member.checksum}};
}

bool get_member(const json& map, StripeMember& member) {
  if (!map.is_object()) return false;
  const auto identity = map.find("identity");
  const auto ranges = map.find("ranges");
  if (identity == map.end() || !identity->is_object() || ranges == map.end() ||
      !ranges->is_array()) {
    return false;
  }
  const bool fields = get_identity(*identity, member.identity) &&
                      get_field(map, "last_sequence", member.last_sequence) &&
                      get_field(map, "flushed", member.flushed) &&
                      get_field(map, "checksum", member.checksum);
  if (!fields) return false;
  Bytes sum = 0;
  for (const json& entry : *ranges) {
    StripeRange range;
    if (!get_range(entry, range)) return false;
    if (!member.ranges.empty() && member.ranges.back().segment >= range.segment) return false;
    if (range.length() > std::numeric_limits<Bytes>::max() - sum) return false;
    sum += range.length();
    member.ranges.push_back(range);
  }
  return true;
}

}  // namespace

Bytes StripeMember::length() const {
  return std::accumulate(ranges.begin(), ranges.end(), Bytes{0},
                         [](Bytes sum, const StripeRange& range) { return sum + range.length(); });
}

Bytes Stripe::length() const {
  Bytes longest = 0;
  for (const StripeMember& member : members) longest = std::max(longest, member.length());
  return longest;
}

bool Stripe::same_stripe(const Stripe& other) const {
  return group == other.group && generation == other.generation && parities == other.parities &&
         members == other.members;
}

Superblock superblock_of(const StripeMember& member, const StripeRange& range) {
  return {.identity = member.identity,
          .segment = range.segment,
          .first_sequence = range.first_sequence,
          .segment_bytes = range.segment_bytes,
          .salt = range.salt};
}

std::vector<StripeRange> ranges_of(std::span<const LogRun> runs) {
  std::vector<StripeRange> ranges;
  ranges.reserve(runs.size());
  for (const LogRun& run : runs) {
    const Superblock& superblock = run.segment->superblock();
    ranges.push_back({.segment = superblock.segment,
                      .first_sequence = superblock.first_sequence,
                      .salt = superblock.salt,
                      .segment_bytes = superblock.segment_bytes,
                      .begin = run.begin,
                      .end = run.end});
  }
  return ranges;
}

Result<std::span<const std::byte>> read_runs(std::span<const LogRun> runs, Bytes offset,
                                             Bytes length, std::vector<std::byte>& buffer) {
  while (!runs.empty() && offset >= runs.front().length()) {
    offset -= runs.front().length();
    runs = runs.subspan(1);
  }
  if (!runs.empty() && offset + length <= runs.front().length()) {
    return runs.front().segment->bytes(runs.front().begin + offset, length, buffer);
  }
  buffer.clear();
  std::vector<std::byte> part;
  for (const LogRun& run : runs) {
    if (length == 0) break;
    const Bytes taken = std::min(run.length() - offset, length);
    const auto bytes = run.segment->bytes(run.begin + offset, taken, part);
    if (!bytes) return bytes;
    buffer.insert(buffer.end(), bytes->begin(), bytes->end());
    length -= taken;
    offset = 0;
  }
  if (length == 0) return std::span<const std::byte>(buffer);
  return tl::unexpected(Error{ErrorKind::io, 0, "a block of a stripe ends too early"});
}

std::vector<std::byte> encode_stripe(const Stripe& stripe) {
  json members = json::array();
  for (const StripeMember& member : stripe.members) members.push_back(member_map(member));
  const std::vector<std::uint8_t> value = json::to_cbor(json{{"group", stripe.group},
                                                             {"generation", stripe.generation},
                                                             {"piece", stripe.piece},
                                                             {"parities", stripe.parities},
                                                             {"members", std::move(members)}});
  const auto bytes = std::as_bytes(std::span(value));
  return {bytes.begin(), bytes.end()};
}

Result<Stripe> parse_stripe(std::span<const std::byte> bytes) {
  const auto parsed = parse_cbor_map(bytes);
  const auto wrong = [] {
    return tl::unexpected(
        Error{ErrorKind::io, 0, "the header of a parity stripe lacks a field or has a wrong one"});
  };
  if (!parsed) return wrong();
  const json& map = *parsed;
  Stripe stripe;
  const bool fields =
      get_field(map, "group", stripe.group) && get_field(map, "generation", stripe.generation) &&
      get_field(map, "piece", stripe.piece) && get_field(map, "parities", stripe.parities);
  const auto members = map.find("members");
  if (!fields || members == map.end() || !members->is_array()) return wrong();
  for (const json& entry : *members) {
    StripeMember member;
    if (!get_member(entry, member)) return wrong();
    stripe.members.push_back(std::move(member));
  }
  const bool coded = stripe.members.size() < ErasureCode::most_pieces &&
                     ErasureCode::make(static_cast<int>(stripe.members.size()), stripe.parities);
  if (!coded || stripe.piece < 0 || stripe.piece >= stripe.parities) return wrong();
  return stripe;
}

}  // namespace forebay
