#include "core/engine/cache/kept_payload.hpp"

namespace forebay {

Status KeptPayload::read(const DirtyMap::Piece& piece, std::vector<std::byte>& buffer,
                         const Use& use) {
  const LogPlace& place = piece.place;
  const Bytes length = piece.extent.length;
  const bool whole = length == static_cast<Bytes>(place.length);
  // Who comes while another thread reads here has a buffer of its own.
  std::unique_lock lock(mutex_, std::defer_lock);
  if (whole || !lock.try_lock()) {
    const auto bytes = verified_bytes(place, length, buffer);
    if (!bytes) return tl::unexpected(bytes.error());
    use(*bytes);
    return {};
  }
  if (order_ != piece.order) {
    if (auto kept = keep(piece); !kept) return kept;
  }
  use(payload_.subspan(static_cast<std::size_t>(place.skip), static_cast<std::size_t>(length)));
  return {};
}

/// Reads and verifies all of the payload. With mutex_ held.
Status KeptPayload::keep(const DirtyMap::Piece& piece) {
  order_ = 0;
  LogPlace all = piece.place;
  all.skip = 0;
  const auto payload = verified_bytes(all, static_cast<Bytes>(all.length), bytes_);
  if (!payload) return tl::unexpected(payload.error());
  payload_ = *payload;
  order_ = piece.order;
  return {};
}

}  // namespace forebay
