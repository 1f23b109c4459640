#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/engine/collective/exchange.hpp"
#include "core/model/hints.hpp"

namespace forebay {

/// What the user declared about a file, as rank 0 knows it: ranks must not differ in what decides
/// where collective messages go.
struct DeclaredHints {
  Hints hints;
  HintPairs given;                    ///< In MPI_Info, by rank 0.
  std::vector<std::string> problems;  ///< Ready to show. Rank 0 has shown each once already.
};

/// What this process can declare at open, packed for declare_at_open: `info`, FOREBAY_HINTS and the
/// intent file. Empty if there is none of it.
std::vector<std::uint8_t> pack_declarations(MPI_Info info);

/// At open: the intent file, FOREBAY_HINTS and MPI_Info as rank 0 packed them, in rising priority.
/// Collective; `packed` matters on rank 0.
DeclaredHints declare_at_open(Exchange& exchange, const std::string& path,
                              std::span<const std::uint8_t> packed);

/// Later, by MPI_File_set_info or MPI_File_set_view: `info` on top of `hints`. Collective.
DeclaredHints declare_later(Exchange& exchange, const std::string& path, Hints hints,
                            MPI_Info info);

}  // namespace forebay
