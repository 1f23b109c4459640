#include "core/engine/redundancy/parity_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/engine/redundancy/parity_writer.hpp"

namespace forebay {
namespace {

/// The stripe that records of one generation are; they are in the order in which they were written.
Result<StoredStripe> assemble(std::span<const LogEntry> entries) {
  StoredStripe stored;
  std::vector<std::byte> header;
  std::vector<std::byte> buffer;
  Bytes end = 0;
  for (const LogEntry& entry : entries) {
    const Extent extent = entry.record.extent();
    const Bytes in_header = extent.offset - stripe_header_offset;
    if (entry.record.kind != RecordKind::data) {
      return tl::unexpected(Error{ErrorKind::io, 0, "it holds a record of another kind"});
    }
    if (in_header < 0 && header.empty() && extent.offset == end) {
      stored.parts.push_back(entry);
      end = extent.end();
      continue;
    }
    if (in_header != static_cast<Bytes>(header.size())) {
      return tl::unexpected(Error{ErrorKind::io, 0, "a part of it is missing"});
    }
    const auto bytes = verified_bytes(entry.place, extent.length, buffer);
    if (!bytes) return tl::unexpected(bytes.error());
    header.insert(header.end(), bytes->begin(), bytes->end());
  }
  auto stripe = parse_stripe(header);
  if (!stripe) return tl::unexpected(stripe.error());
  if (stripe->length() != end) {
    return tl::unexpected(Error{ErrorKind::io, 0, "its parts are not as long as its header says"});
  }
  stored.stripe = std::move(*stripe);
  return stored;
}

}  // namespace

Result<ParityContents> read_parity_log(LogStore& store, ReadDepth depth,
                                       const ScanProgress& progress) {
  const auto log = read_log(store, depth, progress);
  if (!log) return tl::unexpected(log.error());
  if (log->identity.purpose != LogPurpose::protection) {
    return tl::unexpected(
        Error{ErrorKind::invalid_argument, 0, store.path() + " holds no parity of other logs"});
  }
  ParityContents contents;
  contents.identity = log->identity;
  for (const LogDamage& damage : log->damage) contents.problems.push_back(damage.what);
  std::span<const LogEntry> rest = log->complete;
  while (!rest.empty()) {
    const std::uint64_t generation = rest.front().record.epoch;
    const auto end = std::ranges::find_if(
        rest, [&](const LogEntry& entry) { return entry.record.epoch != generation; });
    const auto count = static_cast<std::size_t>(end - rest.begin());
    const auto entries = rest.first(count);
    rest = rest.subspan(count);
    // One without a header was given up, and another one was begun behind it.
    const bool finished = entries.back().record.extent().offset >= stripe_header_offset;
    if (!finished) continue;
    auto stripe = assemble(entries);
    if (stripe && stripe->stripe.generation == generation) {
      contents.stripes.push_back(std::move(*stripe));
      continue;
    }
    contents.problems.push_back(
        fmt::format("stripe {} of {} cannot be used: {}", generation, store.path(),
                    stripe ? "its header is of another one" : stripe.error().what));
  }
  return contents;
}

Status read_piece(const StoredStripe& stripe, Bytes offset, std::span<std::byte> to) {
  std::vector<std::byte> buffer;
  auto part = std::ranges::upper_bound(
      stripe.parts, offset, {}, [](const LogEntry& entry) { return entry.record.extent().end(); });
  while (!to.empty()) {
    if (part == stripe.parts.end()) {
      return tl::unexpected(Error{ErrorKind::io, 0, "a parity piece ends too early"});
    }
    const Extent extent = part->record.extent();
    const Bytes length = std::min(extent.end() - offset, static_cast<Bytes>(to.size()));
    const auto bytes = verified_bytes(part->place.from(offset - extent.offset), length, buffer);
    if (!bytes) return tl::unexpected(bytes.error());
    std::memcpy(to.data(), bytes->data(), bytes->size());
    to = to.subspan(bytes->size());
    offset += length;
    ++part;
  }
  return {};
}

}  // namespace forebay
