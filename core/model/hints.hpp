#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"

namespace forebay {

/// A three-way switch as ROMIO spells it: enable, disable, automatic.
enum class Toggle { automatic, enable, disable };

/// When what the write-behind cache holds goes on from its logs to the file. A full log is flushed
/// in any case.
enum class CacheFlush {
  immediate,  ///< As soon as it is committed.
  onsync,     ///< When somebody syncs, and at close.
  onclose,    ///< The same: MPI has a sync mean that others see the data.
  deferred,   ///< In the background; a sync waits for it, a close need not.
  none,       ///< Never, for measurements: the log is kept, and a recovery may replay it.
};

/// How write-behind logs are protected against the loss of nodes: of each `members` logs of
/// different nodes there are `parities` parity pieces on other nodes, and so many nodes may be
/// lost. A copy is the parity of one log. No parities: nothing is protected.
struct CacheRedundancy {
  int members = 0;
  int parities = 0;

  /// Members and parities together: elements of the field that parity is computed in.
  static constexpr int most_pieces = 256;
  bool operator==(const CacheRedundancy&) const = default;
};

/// What the user declared about one file: the one value that intent files, FOREBAY_HINTS and
/// MPI_Info all become. A field without value leaves the choice to Forebay. MPI's and ROMIO's
/// spellings appear only in the table in hints.cpp that parses them.
struct Hints {
  std::optional<int> aggregators;  ///< cb_nodes: aggregators of the file, all nodes together.
  std::optional<int> aggregators_per_node;  ///< forebay_aggregators_per_node; cb_config_list "*:n".
  std::optional<Bytes> buffer_size;         ///< cb_buffer_size: bytes an aggregator moves a round.
  std::optional<Bytes> stripe_size;         ///< striping_unit.
  std::optional<int> stripe_count;          ///< striping_factor.
  std::optional<int> first_server;          ///< start_iodevice: of the first stripe, from 0.
  std::optional<Bytes> independent_read_buffer;   ///< ind_rd_buffer_size.
  std::optional<Bytes> independent_write_buffer;  ///< ind_wr_buffer_size.
  Toggle collective_write = Toggle::automatic;    ///< romio_cb_write: exchange | direct.
  Toggle collective_read = Toggle::automatic;     ///< romio_cb_read.
  Toggle sieve_write = Toggle::automatic;         ///< romio_ds_write.
  Toggle sieve_read = Toggle::automatic;          ///< romio_ds_read.
  bool no_independent = false;                    ///< romio_no_indep_rw.
  Toggle compress = Toggle::automatic;            ///< forebay_compress: messages between nodes.
  std::optional<int> io_depth;                    ///< forebay_io_depth: storage calls in flight.
  std::optional<bool> cache;                  ///< e10_cache: writes go to a log on the node first.
  std::optional<std::string> cache_path;      ///< e10_cache_path: the node-local directory of logs.
  std::optional<CacheFlush> cache_flush;      ///< e10_cache_flush_flag.
  std::optional<Bytes> cache_capacity;        ///< forebay_cache_capacity: of all logs on a node.
  std::optional<bool> cache_sync_to_node;     ///< forebay_cache_sync: a sync makes the log durable.
  std::optional<bool> cache_discard;          ///< e10_cache_discard_flag: no log is left at close.
  std::optional<int> cache_threads;           ///< e10_cache_threads: that flush, on each rank.
  Toggle cache_compress = Toggle::automatic;  ///< forebay_cache_compress: what logs hold.
  std::optional<CacheRedundancy> cache_redundancy;  ///< forebay_cache_redundancy.
  std::optional<bool> delayed;  ///< forebay_delayed: nothing is protected from begin to end.
  bool passthrough = false;     ///< forebay=disable: leave the file to the MPI.
};

/// A hint that was not understood, ready to be shown: where it came from, the key, the value, and
/// what is accepted.
struct HintProblem {
  std::string source;  ///< "MPI_Info", "FOREBAY_HINTS", or the intent file's path and line.
  std::string key;
  std::string value;
  std::string accepted;  ///< "a size in bytes such as 4194304 or 4MiB".
};
std::string to_string(const HintProblem& problem);

using HintPairs = std::vector<std::pair<std::string, std::string>>;

/// Applies `pairs` on top of `hints`; later pairs win. Unknown keys are ignored, as MPI 4.0 section
/// 14.2.8 asks, except misspelt `forebay_*` keys, which are reported. Wrong values leave the field
/// as it was and are reported.
std::vector<HintProblem> apply_hints(Hints& hints, const HintPairs& pairs, std::string_view source);

/// "key=value;key=value" as in FOREBAY_HINTS.
Result<HintPairs> parse_hint_list(std::string_view text);

/// The hints of `path` in the intent file with content `toml` (docs/formats/intent.md): sections
/// `[[file]]` with `path = "glob"`, applied in order, later wins. Never throws.
struct IntentHints {
  Hints hints;
  std::vector<HintProblem> problems;
};
Result<IntentHints> intent_for(std::string_view toml, std::string_view intent_path,
                               std::string_view file_path, Hints base);

/// All that is wrong in the intent file with content `toml`, whatever files it is for: as those who
/// read it tell it, with its line. Error: as there, of the whole file. Never throws.
Result<std::vector<HintProblem>> intent_problems(std::string_view toml,
                                                 std::string_view intent_path);

/// What MPI_File_get_info returns for these hints, in ROMIO's spelling where it has one.
HintPairs to_pairs(const Hints& hints);

/// What the MPI library is to be told of these hints when it creates the file: those that say
/// something, in plain numbers, and the striping in OMPIO's spelling as well as in MPI's. What is
/// Forebay's own is left out.
HintPairs creation_pairs(const Hints& hints);

/// Every key that is understood, with its accepted form and meaning: the hints reference and
/// `forebay doctor` are made from it.
struct HintKey {
  std::string_view key;
  std::string_view accepted;
  std::string_view meaning;
};
std::span<const HintKey> known_hints();
bool is_known_hint(std::string_view key);

}  // namespace forebay
