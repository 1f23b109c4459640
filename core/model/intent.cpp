// toml++ is compiled in here and nowhere else: without its exceptions, and not as the shared
// library of the distribution, which has no business in a stranger's process.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <fnmatch.h>
#include <toml++/toml.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/model/hints.hpp"

// The format is docs/formats/intent.md.

namespace forebay {
namespace {

constexpr std::int64_t format_version = 1;
constexpr const char* reference = "a key of the hints reference, docs/guide/hints.md";

std::string place(std::string_view intent_path, const toml::source_position& position) {
  return std::string(intent_path) + ":" + std::to_string(position.line);
}

tl::unexpected<Error> invalid(std::string what) {
  return tl::make_unexpected(Error{ErrorKind::invalid_argument, 0, std::move(what)});
}

/// A value as a hint spells it; no value for what no hint can be: numbers with a fraction, dates,
/// arrays, tables.
std::optional<std::string> hint_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* boolean = node.as_boolean()) return boolean->get() ? "true" : "false";
  return std::nullopt;
}

/// What to show of a value that is not one of a hint.
std::string kind_of(const toml::node& node) {
  if (node.is_table()) return "(table)";
  if (node.is_array()) return "(array)";
  if (const auto text = hint_text(node)) return *text;
  return "(number with a fraction, date or time)";
}

/// `pattern` against the absolute path, or against the last component if it has no slash.
bool matches(const std::string& pattern, const std::string& file_path) {
  const char* name = file_path.c_str();
  if (pattern.find('/') == std::string::npos) name += file_path.rfind('/') + 1;  // npos + 1 == 0
  return ::fnmatch(pattern.c_str(), name, 0) == 0;
}

/// A table in the order in which it was written: toml++ sorts it by key.
std::vector<std::pair<const toml::key*, const toml::node*>> in_file_order(
    const toml::table& table) {
  std::vector<std::pair<const toml::key*, const toml::node*>> items;
  for (const auto& [key, node] : table) items.emplace_back(&key, &node);
  std::ranges::sort(items, [](const auto& a, const auto& b) {
    return a.first->source().begin < b.first->source().begin;
  });
  return items;
}

class IntentReader {
 public:
  IntentReader(std::string_view intent_path, std::string_view file_path, Hints base)
      : intent_path_(intent_path), file_path_(file_path), result_{base, {}} {}

  Result<IntentHints> read(const toml::table& document) {
    for (const auto& [key, node] : in_file_order(document)) {
      if (key->str() == "version") {
        if (auto known = check_version(*node); !known) return tl::make_unexpected(known.error());
      } else if (key->str() != "file" || !read_sections(*node)) {
        report(*key, *node, "[[file]] sections and version = 1");
      }
    }
    return std::move(result_);
  }

 private:
  Status check_version(const toml::node& node) const {
    const auto* number = node.as_integer();
    if (number != nullptr && number->get() == format_version) return {};
    return invalid(place(intent_path_, node.source().begin) + ": version " + kind_of(node) +
                   " of the intent file is not known here; write version = 1, or use a Forebay "
                   "that knows it");
  }

  /// False if `node` is not an array of tables.
  bool read_sections(const toml::node& node) {
    const auto* sections = node.as_array();
    if (sections == nullptr || !sections->is_homogeneous(toml::node_type::table)) return false;
    for (const auto& section : *sections) read_section(*section.as_table());
    return true;
  }

  void read_section(const toml::table& section) {
    const auto* pattern = section.get_as<std::string>("path");
    if (pattern == nullptr) {
      const auto* wrong = section.get("path");
      add_problem((wrong != nullptr ? wrong->source() : section.source()).begin, "path",
                  wrong != nullptr ? kind_of(*wrong) : "",
                  "a string with the pattern of the files that the section is for");
      return;
    }
    if (pattern->get().find('\0') != std::string::npos) {
      add_problem(pattern->source().begin, "path", pattern->get().c_str(),
                  "a pattern without NUL characters, which no path has");
      return;
    }
    if (!matches(pattern->get(), file_path_)) return;
    for (const auto& [key, node] : in_file_order(section)) {
      if (key->str() != "path") read_hint(*key, *node);
    }
  }

  void read_hint(const toml::key& key, const toml::node& node) {
    const auto known =
        std::ranges::find(known_hints(), key.str(), [](const HintKey& hint) { return hint.key; });
    if (known == known_hints().end()) {
      report(key, node, reference);
      return;
    }
    const auto text = hint_text(node);
    if (!text) {
      report(key, node, std::string(known->accepted));
      return;
    }
    const auto problems = apply_hints(result_.hints, {{std::string(key.str()), *text}},
                                      place(intent_path_, key.source().begin));
    result_.problems.insert(result_.problems.end(), problems.begin(), problems.end());
  }

  void report(const toml::key& key, const toml::node& node, std::string accepted) {
    add_problem(key.source().begin, std::string(key.str()), kind_of(node), std::move(accepted));
  }

  void add_problem(const toml::source_position& where, std::string key, std::string value,
                   std::string accepted) {
    result_.problems.push_back(
        {place(intent_path_, where), std::move(key), std::move(value), std::move(accepted)});
  }

  const std::string_view intent_path_;
  const std::string file_path_;
  IntentHints result_;
};

}  // namespace

Result<IntentHints> intent_for(std::string_view toml, std::string_view intent_path,
                               std::string_view file_path, Hints base) {
  const toml::parse_result document = toml::parse(toml);
  if (!document) {
    const toml::parse_error& error = document.error();
    const auto& at = error.source().begin;
    return invalid(place(intent_path, at) + ", column " + std::to_string(at.column) + ": " +
                   std::string(error.description()) +
                   "; correct the line, the whole intent file is left out until then");
  }
  return IntentReader(intent_path, file_path, base).read(document.table());
}

}  // namespace forebay
