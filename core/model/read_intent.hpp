#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"
#include "core/model/hints.hpp"

namespace forebay {

/// How what will be read is brought near.
enum class ReadPolicy {
  automatic,   ///< Fetched into memory of the process, in the order that was declared or is found
               ///< out.
  page_cache,  ///< Brought into the page cache, in the order that was declared, where all processes
               ///< of the node find it.
  mercury,     ///< Announced to the kernel in blocks, as in [MERCURY]: for comparison.
};

/// What may lie between two extents that are fetched by one request, along with them.
struct GapChoice {
  std::optional<Bytes> bytes;  ///< None: what is measured decides.
};

/// What an intent file declares of the reads of a file. A field without value leaves the choice to
/// Forebay.
struct ReadIntent {
  /// What will be read, in that order, as it was written: not checked against any file. A length of
  /// 0 is to the end of the file. Empty: the order is to be found out.
  std::vector<Extent> willneed;
  std::optional<Bytes> block;   ///< The unit of buffer and request.
  std::optional<Bytes> budget;  ///< Memory for what was fetched of one opening.
  std::optional<int> ahead;     ///< Blocks fetched ahead at most.
  std::optional<GapChoice> gap;
  std::optional<ReadPolicy> policy;
};

/// Where what will be read is known from, what counts most first.
enum class ReadOrigin {
  format,     ///< The index that the file itself has.
  person,     ///< Who wrote the intent file.
  recording,  ///< A run of the program.
};

/// One `[[file]]` section that says something of reads.
struct ReadSection {
  std::string pattern;
  ReadIntent intent;
  /// None: of a person, or, if it has a `same_size`, of a recording.
  std::optional<ReadOrigin> named_origin;
  /// It is also for other files of this size: what was recorded of one holds for the next.
  std::optional<Bytes> same_size;
  std::vector<HintProblem> problems;      ///< Mistakes in it, to be told for the files it is for.
  std::string written_in = {};            ///< The intent file.
  std::vector<std::uint32_t> lines = {};  ///< There, of each pair of `willneed`.
  std::uint32_t same_size_line = 0;
  std::vector<HintProblem> unknown = {};  ///< Keys that are of nothing; who reads hints tells, too.
};

/// The sections of an intent file with content `toml` (docs/formats/intent.md) that speak of reads,
/// in the order of the file. Never throws.
/// Error: invalid_argument, ready to show, if it is no TOML or of another version.
Result<std::vector<ReadSection>> read_sections(std::string_view toml, std::string_view intent_path);

/// Of those for one file (SectionIndex), the one whose `willneed` counts: of what counts most the
/// last. Null: none has one, and the order of the reads is to be found out.
const ReadSection* declaring(std::span<const ReadSection* const> sections);

/// What the sections together say of a file that matches all of `sections`: the `willneed` of the
/// declaring() one, of each other key the last.
ReadIntent combined(std::span<const ReadSection* const> sections);

/// What `sections`, all of them for one file of `size` bytes, say of its reads that does not fit
/// the file, or each other: extents outside the file or over its end, extents that overlap the one
/// before, extents that a later section takes back, a `same_size` that is not the file's. Ready to
/// show, with the line of the intent file; after the first 16 only how many more there are.
std::vector<std::string> unfit_reads(std::span<const ReadSection* const> sections, Bytes size);

/// Whether a key of a section speaks of reads: willneed, from, same_size, block, budget, ahead,
/// gap, policy; and `cache`, the paper's word for the budget, unless it is the table of the
/// write-behind cache.
bool is_read_key(std::string_view key, bool is_table);

}  // namespace forebay
