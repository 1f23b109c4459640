#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/engine/collective/claims.hpp"
#include "core/model/error.hpp"
#include "core/model/extent.hpp"

// docs/formats/claims.md

namespace forebay {

/// Who has it may take part in the claims of one file: random, and told to its ranks alone.
using ClaimsToken = std::array<std::byte, 16>;

/// What a rank and the process that keeps the claims of a file send each other over TCP.
struct ClaimsMessage {
  enum class Kind : std::uint8_t {
    // From the rank. All but `answer` and `leave` are answered by a `reply` of their number.
    greeting = 1,
    foreign,
    claim,
    release,
    release_all,
    ask,
    next_open,
    open,
    close,
    end,
    set_end,
    set_flag,
    clear_flag,
    count_conflict,
    answer,  ///< To the question of that number of the rank named.
    leave,
    // To the rank.
    reply,
    question,
  };
  static constexpr Kind last_kind = Kind::question;

  Kind kind = Kind::greeting;
  bool yes = false;          ///< Something was found, or was dirty.
  std::uint64_t number = 0;  ///< Of the call or the question.
  int rank = 0;
  std::uint32_t flags = 0;  ///< Those of the claims, or of the call.
  Claims::Wish wish = Claims::Wish::none;
  std::uint32_t count = 0;
  Extent extent = {};
  std::uint64_t epoch = 0;
  ErrorKind error = ErrorKind::none;
  int os_errno = 0;
  ClaimsToken token = {};  ///< Of a greeting, which has no extent.

  bool operator==(const ClaimsMessage&) const = default;
};

constexpr std::size_t claims_message_bytes = 72;
using ClaimsMessageWire = std::array<std::byte, claims_message_bytes>;

ClaimsMessageWire encode_claims_message(const ClaimsMessage& message);
/// Errors: unsupported (another version), io (damaged, or none of these). What comes back is within
/// the bounds of its types; which ranks there are, the caller knows.
Result<ClaimsMessage> decode_claims_message(std::span<const std::byte, claims_message_bytes> wire);

}  // namespace forebay
