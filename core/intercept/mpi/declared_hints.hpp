#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "core/engine/collective/exchange.hpp"
#include "core/model/hints.hpp"

namespace forebay {

/// What the user declared about a file, as rank 0 knows it: ranks must not differ in what decides
/// where collective messages go.
struct DeclaredHints {
  Hints hints;
  std::vector<std::string> problems;  ///< Ready to show. Rank 0 has shown them already.
};

/// At open: the intent file, FOREBAY_HINTS and `info`, in rising priority. Collective.
DeclaredHints declare_at_open(Exchange& exchange, const std::string& path, MPI_Info info);

/// Later, by MPI_File_set_info or MPI_File_set_view: `info` on top of `hints`. Collective.
DeclaredHints declare_later(Exchange& exchange, Hints hints, MPI_Info info);

}  // namespace forebay
