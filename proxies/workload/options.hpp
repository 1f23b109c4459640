// The options that all workloads of MPI share. All ranks parse the same words and come to the same
// verdict; only rank 0 speaks.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "proxies/workload/command_line.hpp"

namespace workload {

class Options {
 public:
  /// Adds the shared options to `line`, whose own may follow. Both must live until it is parsed.
  explicit Options(CommandLine& line);
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  /// The file that iteration `iteration` writes: PATH, or PATH.k with more than one file.
  std::string file_of(int iteration) const;

  /// The last iteration that writes file number `file`: its data is what a read finds.
  int last_iteration_of(int file) const;

  /// `collective` or `independent`.
  const char* call_kind() const { return independent ? "independent" : "collective"; }

  int iterations() const { return iterations_ > 0 ? iterations_ : files; }

  std::string path;
  int files = 1;
  bool verify = true;
  bool verify_only = false;  ///< Do not write: read back what an earlier run left.
  bool read = true;
  bool independent = false;  ///< Independent in place of collective data calls.
  bool sync = false;         ///< Sync what was written before it is closed.
  bool cold = false;         ///< Drop the file from the page cache before it is read.
  double compute_seconds = 0;
  std::uint64_t seed = 1;
  std::vector<std::pair<std::string, std::string>> hints;  ///< For MPI_Info.

 private:
  int iterations_ = 0;
  std::vector<std::string> hint_words_;
};

}  // namespace workload
