#include "core/engine/redundancy/parity_writer.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/engine/cache/crc32c.hpp"
#include "core/engine/redundancy/erasure_code.hpp"

namespace forebay {
namespace {

/// Parity of what is compressed, or of data that differ, does not shrink.
LogSettings plain(LogSettings settings) {
  settings.compress = Toggle::disable;
  return settings;
}

}  // namespace

ParityWriter::ParityWriter(std::unique_ptr<LogStore> store, LogIdentity identity,
                           LogSettings settings, std::unique_ptr<ResourceHolder> capacity)
    : log_(std::move(store), std::move(identity), plain(std::move(settings)), std::move(capacity),
           [](const LogRecord&, const LogPlace&) {}) {
  assert(log_.identity().purpose == LogPurpose::protection);
}

Status ParityWriter::append(Stripe stripe, const Source& source) {
  assert(stripe.generation > generation_);
  generation_ = stripe.generation;
  const auto code = ErasureCode::make(static_cast<int>(stripe.members.size()), stripe.parities);
  if (!code) return tl::unexpected(code.error());
  const Bytes length = stripe.length();
  for (StripeMember& member : stripe.members) member.checksum = 0;
  std::vector<std::byte> buffer;
  std::vector<std::byte> piece;
  for (Bytes offset = 0; offset < length; offset += part_bytes) {
    piece.assign(static_cast<std::size_t>(std::min(part_bytes, length - offset)), std::byte{0});
    for (std::size_t i = 0; i < stripe.members.size(); ++i) {
      StripeMember& member = stripe.members[i];
      const Bytes part = std::min(part_bytes, member.length() - offset);
      if (part <= 0) continue;
      const auto bytes = source(i, offset, part, buffer);
      if (!bytes) return tl::unexpected(bytes.error());
      assert(static_cast<Bytes>(bytes->size()) == part);
      member.checksum = crc32c(*bytes, member.checksum);
      code->fold(stripe.piece, static_cast<int>(i), *bytes, piece);
    }
    if (auto written = write(piece, offset, stripe.generation); !written) return written;
  }
  const auto header = encode_stripe(stripe);
  if (auto written = write(header, stripe_header_offset, stripe.generation); !written) {
    return written;
  }
  const auto committed = log_.commit(stripe.generation);
  if (!committed) return tl::unexpected(committed.error());
  sequences_[stripe.generation] = *committed;
  return {};
}

Status ParityWriter::write(std::span<const std::byte> bytes, Bytes offset,
                           std::uint64_t generation) {
  const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  const auto outcome = log_.append({&piece, 1}, offset, generation);
  if (!outcome.full) return outcome.status;
  return tl::unexpected(
      Error{ErrorKind::no_space, 0, "the capacity of the cache is exhausted at " + log_.path()});
}

Status ParityWriter::release(std::uint64_t generation) {
  const auto end = sequences_.upper_bound(generation);
  if (end == sequences_.begin()) return {};
  const std::uint64_t sequence = std::prev(end)->second;
  sequences_.erase(sequences_.begin(), end);
  return log_.flushed(generation_, sequence);
}

}  // namespace forebay
