#pragma once

#include <cstdint>

#include "core/engine/collective/exchange.hpp"
#include "core/model/error.hpp"

namespace forebay {

/// An error as one number, ordered by severity, for the reduction over ranks; 0 for none.
inline std::int64_t pack(const Error& error) {
  return (static_cast<std::int64_t>(error.kind) << 32) | static_cast<std::int64_t>(error.os_errno);
}

/// What the most severe of all ranks' errors, packed, means on a rank whose own is `mine`.
inline Error agreed_error(std::int64_t worst, const Error& mine) {
  Error error = mine;
  error.kind = static_cast<ErrorKind>(worst >> 32);
  error.os_errno = static_cast<int>(worst & 0xffffffff);
  if (mine.kind == ErrorKind::none) error.what = "a storage call of another rank failed";
  return error;
}

/// The most severe of all ranks' errors, on every rank. `mine`: kind none if there is none.
/// Collective.
inline Status worst_of_all(Exchange& exchange, const Error& mine) {
  std::int64_t worst = pack(mine);
  exchange.all_reduce({&worst, 1}, Reduce::max);
  return worst == 0 ? Status{} : tl::unexpected(agreed_error(worst, mine));
}

}  // namespace forebay
