#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/model/extent.hpp"
#include "core/model/read_intent.hpp"

namespace forebay {

/// `pattern` of a section against the absolute path of a file, or against its last component if the
/// pattern has no slash.
bool section_matches(const std::string& pattern, const char* file_path);

/// Sections by what they are for: a recording has one for each of thousands of files, and each file
/// that is opened asks for its own.
class SectionIndex {
 public:
  /// Of `sections`, which stay where they are.
  explicit SectionIndex(std::span<const ReadSection> sections);

  /// Those, in their order, for a file of `size` bytes with these absolute paths: whose pattern
  /// matches one of them, or its last component if the pattern has no slash. If none of those has a
  /// `willneed`, also the one with one and this `same_size` whose pattern is most like the name of
  /// the file at both ends: of `mesh_001` and `field_001`, `field_001` for `field_002`.
  std::vector<const ReadSection*> sections_for(std::span<const char* const> file_paths,
                                               Bytes size) const;

 private:
  const ReadSection* most_like(const char* file_path, Bytes size) const;

  std::vector<const ReadSection*> wild_;     ///< Whose patterns match more than themselves.
  std::vector<const ReadSection*> literal_;  ///< The others, by their patterns.
  std::vector<const ReadSection*> sized_;    ///< With `same_size` and `willneed`, by the former.
};

}  // namespace forebay
