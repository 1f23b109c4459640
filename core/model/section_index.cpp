#include "core/model/section_index.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

namespace forebay {
namespace {

/// `path` from its last slash on, without it.
std::string_view last_component(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// What it matches, whatever the locale, are the same bytes.
bool is_literal(std::string_view pattern) {
  return pattern.find_first_of("*?[\\") == std::string_view::npos;
}

std::string_view pattern_text(const ReadSection* section) { return section->pattern; }
const std::optional<Bytes>& named_size(const ReadSection* section) { return section->same_size; }

/// Of `sorted` by it, those whose `property` is `key`. (clang 14 has no equal_range with this C++
/// library.)
template <typename Key, typename Property>
std::span<const ReadSection* const> those_with(const std::vector<const ReadSection*>& sorted,
                                               const Key& key, Property property) {
  return {std::ranges::lower_bound(sorted, key, {}, property),
          std::ranges::upper_bound(sorted, key, {}, property)};
}

/// Characters that two names have in common at their beginnings and at their ends.
std::ptrdiff_t likeness(std::string_view a, std::string_view b) {
  // Not by views: clang 14 has no reversed ones with this C++ library.
  const auto front = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  const auto back = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin();
  return front + back;
}

}  // namespace

bool section_matches(const std::string& pattern, const char* file_path) {
  const bool is_name = pattern.find('/') == std::string::npos;
  const char* name = is_name ? last_component(file_path).data() : file_path;
  return ::fnmatch(pattern.c_str(), name, 0) == 0;
}

SectionIndex::SectionIndex(std::span<const ReadSection> sections) {
  for (const ReadSection& section : sections) {
    (is_literal(section.pattern) ? literal_ : wild_).push_back(&section);
    if (section.same_size && !section.intent.willneed.empty()) sized_.push_back(&section);
  }
  std::ranges::stable_sort(literal_, {}, pattern_text);
  std::ranges::stable_sort(sized_, {}, named_size);
}

std::vector<const ReadSection*> SectionIndex::sections_for(std::span<const char* const> file_paths,
                                                           Bytes size) const {
  std::vector<const ReadSection*> result;
  for (const char* path : file_paths) {
    // A pattern with a slash is no last component, and one without is no absolute path.
    for (const std::string_view name : {std::string_view(path), last_component(path)}) {
      const auto found = those_with(literal_, name, pattern_text);
      result.insert(result.end(), found.begin(), found.end());
    }
  }
  for (const ReadSection* section : wild_) {
    const bool is_for_it = std::ranges::any_of(
        file_paths, [&](const char* path) { return section_matches(section->pattern, path); });
    if (is_for_it) result.push_back(section);
  }
  // In the order of the file; a file may have the same name twice.
  std::ranges::sort(result);
  result.erase(std::unique(result.begin(), result.end()), result.end());
  const bool declared = std::ranges::any_of(
      result, [](const ReadSection* section) { return !section->intent.willneed.empty(); });
  const ReadSection* like = declared ? nullptr : most_like(file_paths.front(), size);
  if (like != nullptr) result.insert(std::ranges::upper_bound(result, like), like);
  return result;
}

/// The one that was recorded of a file like this one; null: none was.
const ReadSection* SectionIndex::most_like(const char* file_path, Bytes size) const {
  const ReadSection* best = nullptr;
  std::ptrdiff_t most = -1;
  for (const ReadSection* section : those_with(sized_, std::optional(size), named_size)) {
    const auto like = likeness(last_component(section->pattern), last_component(file_path));
    if (like > most) best = section;
    most = std::max(most, like);
  }
  return best;
}

}  // namespace forebay
