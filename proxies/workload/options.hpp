// The command line that all proxies share: NAME [options] PATH. All ranks parse the same words and
// come to the same verdict; only rank 0 speaks.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxies/workload/session.hpp"

namespace workload {

/// Sizes of an array or a process grid, one for each dimension.
using Dimensions = std::vector<int>;

class Options {
 public:
  /// Adds the shared options to `app`, whose own may follow. `app` must outlive this object.
  explicit Options(CLI::App& app);
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
  bool cold = false;         ///< Drop the file from the page cache before it is read.
  double compute_seconds = 0;
  std::uint64_t seed = 1;
  std::vector<std::pair<std::string, std::string>> hints;  ///< For MPI_Info.

 private:
  int iterations_ = 0;
  std::vector<std::string> hint_words_;
};

/// Parses the command line. A value means that main() must return it at once: 0 after --help, 2
/// after an error, which rank 0 has explained. `app.callback` may throw CLI::ValidationError to
/// refuse options that do not fit together or do not fit the number of ranks.
std::optional<int> parse(CLI::App& app, const Session& session, int argc, char** argv);

/// Adds an option that takes `64` or `64x32x16`; one number stands for all `count` dimensions.
CLI::Option* add_dimensions(CLI::App& app, const std::string& name, Dimensions& value,
                            std::size_t count, const std::string& description);

/// Adds an option that takes bytes: `8`, `64KiB`, `1MB`.
CLI::Option* add_bytes(CLI::App& app, const std::string& name, std::uint64_t& value,
                       const std::string& description);

/// `2x1x1`
std::string to_string(const Dimensions& dimensions);

/// The product of all sizes.
std::int64_t volume(const Dimensions& dimensions);

/// The sizes of the array over a process grid: `global` as given or, where it is empty, `local` for
/// each process. Throws CLI::ValidationError unless the grid has as many processes as there are
/// ranks, and the array something for each of them.
void settle_global(Dimensions& global, const Dimensions& grid, const Dimensions& local, int ranks);

/// Splits `key=value,key=value`; a comma that no `key=` follows belongs to the value, as in
/// `cb_config_list=*:1,*:2`. Throws CLI::ValidationError if there is no `=`.
std::vector<std::pair<std::string, std::string>> parse_hints(const std::string& text);

}  // namespace workload
