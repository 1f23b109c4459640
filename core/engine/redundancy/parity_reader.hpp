#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/engine/cache/log_contents.hpp"
#include "core/engine/redundancy/stripe.hpp"
#include "core/model/error.hpp"

// docs/formats/parity-log.md

namespace forebay {

/// A parity piece that is all there, in the log where it lies.
struct StoredStripe {
  Stripe stripe;
  std::vector<LogEntry> parts;  ///< Of the piece, one behind the other.
};

/// What a parity log holds.
struct ParityContents {
  LogIdentity identity;
  std::vector<StoredStripe> stripes;  ///< By rising generation.
  std::vector<std::string> problems;  ///< What was promised to be there and is not, for a person.
};

/// Reads a parity log. Stripes that were not finished are left out, and so are released ones.
/// Errors: those of read_log(); invalid_argument, where it is a log of another purpose.
Result<ParityContents> read_parity_log(LogStore& store, ReadDepth depth,
                                       const ScanProgress& progress = {});

/// Bytes of the piece from `offset` on, all of which it has. Error: io.
Status read_piece(const StoredStripe& stripe, Bytes offset, std::span<std::byte> to);

}  // namespace forebay
