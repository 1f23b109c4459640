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
  HintPairs for_mpi;                  ///< In FOREBAY_HINTS, of no meaning to Forebay.
  std::vector<std::string> problems;  ///< Ready to show. Rank 0 has shown each once already.
};

/// Says each problem once, however many files it concerns: at the first of them, on rank 0.
void show(Exchange& exchange, const std::vector<std::string>& problems, const std::string& path);

/// What this process can declare at open, packed for declare_at_open: `info`, FOREBAY_HINTS and the
/// intent file. Empty if there is none of it.
std::vector<std::uint8_t> pack_declarations(MPI_Info info);

/// At open: the intent file, FOREBAY_HINTS and MPI_Info as rank 0 packed them, in rising priority.
/// Collective; `packed` matters on rank 0.
DeclaredHints declare_at_open(Exchange& exchange, const std::string& path,
                              std::span<const std::uint8_t> packed);

/// The info for the MPI to create a file with: what the program gave on this rank, and what else is
/// declared. The MPI sets the striping of a new file, and wants all ranks to say the same of it:
/// what is added is rank 0's word.
HintPairs pairs_for_creation(HintPairs given, const DeclaredHints& declared);

/// Later, by MPI_File_set_info or MPI_File_set_view: `info` on top of `hints`. Collective.
DeclaredHints declare_later(Exchange& exchange, const std::string& path, Hints hints,
                            MPI_Info info);

}  // namespace forebay
