#include "core/model/hints.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "core/model/hint_values.hpp"

namespace forebay {
namespace {

constexpr std::string_view count_form = "a whole number from 1 up";
constexpr std::string_view index_form = "a whole number from 0 up";
constexpr std::string_view size_form = "a size in bytes such as 4194304 or 4MiB";
constexpr std::string_view toggle_form = "enable, disable or automatic";
constexpr std::string_view boolean_form = "true or false";
constexpr std::string_view switch_form = "enable or disable";
constexpr std::string_view path_form = "the path of a directory from the root";

/// cb_config_list "*:*": no bound on the aggregators of a node but its number of ranks.
constexpr int every_rank = std::numeric_limits<int>::max();

/// One key: how its value gets into Hints (false: the value is wrong, and nothing was changed), and
/// how it comes out again. A key that only reads is another spelling of one that does both.
struct Entry {
  HintKey key;
  bool (*set)(Hints&, std::string_view);
  std::optional<std::string> (*get)(const Hints&);
};

template <auto Field>
bool set_count(Hints& hints, std::string_view text) {
  const auto value = parse_count(text);
  if (value) hints.*Field = value;
  return value.has_value();
}

template <auto Field>
bool set_index(Hints& hints, std::string_view text) {
  const auto value = parse_index(text);
  if (value) hints.*Field = value;
  return value.has_value();
}

template <auto Field>
bool set_size(Hints& hints, std::string_view text) {
  const auto value = parse_size(text);
  if (value) hints.*Field = value;
  return value.has_value();
}

template <auto Field>
bool set_toggle(Hints& hints, std::string_view text) {
  const auto value = parse_toggle(text);
  if (value) hints.*Field = *value;
  return value.has_value();
}

template <auto Field>
bool set_boolean(Hints& hints, std::string_view text) {
  const auto value = parse_boolean(text);
  if (value) hints.*Field = *value;
  return value.has_value();
}

template <auto Field>
std::optional<std::string> get_number(const Hints& hints) {
  const auto& value = hints.*Field;
  return value ? std::optional(std::to_string(*value)) : std::nullopt;
}

template <auto Field>
std::optional<std::string> get_toggle(const Hints& hints) {
  return std::string(to_string(hints.*Field));
}

bool set_config_list(Hints& hints, std::string_view text) {
  constexpr std::string_view any_host = "*:";
  if (!text.starts_with(any_host)) return false;
  text.remove_prefix(any_host.size());
  const auto value = text == "*" ? std::optional(every_rank) : parse_count(text);
  if (value) hints.aggregators_per_node = value;
  return value.has_value();
}

std::optional<std::string> get_config_list(const Hints& hints) {
  if (!hints.aggregators_per_node) return std::nullopt;
  const int count = *hints.aggregators_per_node;
  return "*:" + (count == every_rank ? "*" : std::to_string(count));
}

/// MPI 4.0, section 14.2.8: "true" says that the file may benefit from collective buffering, which
/// is no order; "false" that it does not.
bool set_collective_buffering(Hints& hints, std::string_view text) {
  const auto value = parse_boolean(text);
  if (!value) return false;
  hints.collective_write = *value ? Toggle::automatic : Toggle::disable;
  hints.collective_read = hints.collective_write;
  return true;
}

bool set_enabled(Hints& hints, std::string_view text) {
  const auto value = parse_boolean(text);
  if (value) hints.passthrough = !*value;
  return value.has_value();
}

/// ROMIO's E10: "coherent" asks for what holds here anyway: nobody reads old bytes.
bool set_cache(Hints& hints, std::string_view text) {
  const auto value = text == "coherent" ? std::optional(true) : parse_boolean(text);
  if (value) hints.cache = value;
  return value.has_value();
}

bool set_cache_path(Hints& hints, std::string_view text) {
  if (!text.starts_with('/') || text.find('\0') != std::string_view::npos) return false;
  hints.cache_path = std::string(text);
  return true;
}

struct FlushWord {
  std::string_view word;
  CacheFlush flush;
};
constexpr std::array flush_words = {
    FlushWord{"immediate", CacheFlush::immediate}, FlushWord{"onsync", CacheFlush::onsync},
    FlushWord{"onclose", CacheFlush::onclose}, FlushWord{"deferred", CacheFlush::deferred},
    FlushWord{"none", CacheFlush::none}};

bool set_cache_flush(Hints& hints, std::string_view text) {
  const auto* found = std::ranges::find(flush_words, text, &FlushWord::word);
  if (found == flush_words.end()) return false;
  hints.cache_flush = found->flush;
  return true;
}

std::optional<std::string> get_cache_flush(const Hints& hints) {
  if (!hints.cache_flush) return std::nullopt;
  return std::string(std::ranges::find(flush_words, *hints.cache_flush, &FlushWord::flush)->word);
}

bool set_e10_flush(Hints& hints, std::string_view text) {
  constexpr std::string_view prefix = "flush_";
  if (text != "flush_immediate" && text != "flush_onclose") return false;
  return set_cache_flush(hints, text.substr(prefix.size()));
}

bool set_cache_sync(Hints& hints, std::string_view text) {
  if (text != "file" && text != "node") return false;
  hints.cache_sync_to_node = text == "node";
  return true;
}

constexpr CacheRedundancy partner{1, 1};
/// Parity takes a quarter of what the logs take, and more nodes are seldom lost at a time.
constexpr CacheRedundancy usual_parity{4, 1};
constexpr std::string_view parity_word = "parity";

bool set_cache_redundancy(Hints& hints, std::string_view text) {
  CacheRedundancy value;
  if (text == "partner") {
    value = partner;
  } else if (text == parity_word) {
    value = usual_parity;
  } else if (text != "none") {
    if (!text.starts_with(parity_word)) return false;
    text.remove_prefix(parity_word.size());
    const std::size_t plus = text.find('+');
    if (!text.starts_with(':') || plus == std::string_view::npos) return false;
    const auto members = parse_count(text.substr(1, plus - 1));
    const auto parities = parse_count(text.substr(plus + 1));
    if (!members || !parities || *members >= CacheRedundancy::most_pieces ||
        *parities > CacheRedundancy::most_pieces - *members) {
      return false;
    }
    value = {*members, *parities};
  }
  hints.cache_redundancy = value;
  return true;
}

std::optional<std::string> get_cache_redundancy(const Hints& hints) {
  if (!hints.cache_redundancy) return std::nullopt;
  const CacheRedundancy& value = *hints.cache_redundancy;
  if (value.parities == 0) return "none";
  if (value == partner) return "partner";
  return std::string(parity_word) + ":" + std::to_string(value.members) + "+" +
         std::to_string(value.parities);
}

bool set_delayed(Hints& hints, std::string_view text) {
  if (text != "begin" && text != "end") return false;
  hints.delayed = text == "begin";
  return true;
}

template <auto Field>
bool set_switch(Hints& hints, std::string_view text) {
  const auto value = parse_boolean(text);
  if (value) hints.*Field = value;
  return value.has_value();
}

template <auto Field>
std::optional<std::string> get_switch(const Hints& hints) {
  const auto& value = hints.*Field;
  return value ? std::optional<std::string>(*value ? "enable" : "disable") : std::nullopt;
}

/// The one place that knows the spellings.
constexpr std::array entries = {
    Entry{{"cb_nodes", count_form, "aggregators of the file, all nodes together"},
          set_count<&Hints::aggregators>,
          get_number<&Hints::aggregators>},
    Entry{{"cb_config_list", "*:n with n from 1 up, or *:*", "aggregators on each node, at most"},
          set_config_list,
          get_config_list},
    Entry{{"forebay_aggregators_per_node", count_form, "the same"},
          set_count<&Hints::aggregators_per_node>,
          nullptr},
    Entry{{"cb_buffer_size", size_form, "bytes that an aggregator moves in one round"},
          set_size<&Hints::buffer_size>,
          get_number<&Hints::buffer_size>},
    Entry{{"striping_unit", size_form, "stripe size of the file"},
          set_size<&Hints::stripe_size>,
          get_number<&Hints::stripe_size>},
    Entry{{"stripe_size", size_form, "the same, as OMPIO also spells it"},
          set_size<&Hints::stripe_size>,
          nullptr},
    Entry{{"striping_factor", count_form, "storage servers that the file is spread over"},
          set_count<&Hints::stripe_count>,
          get_number<&Hints::stripe_count>},
    Entry{{"stripe_width", count_form, "the same, as OMPIO also spells it"},
          set_count<&Hints::stripe_count>,
          nullptr},
    Entry{{"start_iodevice", index_form, "the server of the file's first stripe"},
          set_index<&Hints::first_server>,
          get_number<&Hints::first_server>},
    Entry{{"collective_buffering", boolean_form,
           "false: collective calls go to the file system directly; true: Forebay chooses"},
          set_collective_buffering,
          nullptr},
    Entry{{"romio_cb_write", toggle_form,
           "collective writes go through aggregators (enable) or directly (disable)"},
          set_toggle<&Hints::collective_write>,
          get_toggle<&Hints::collective_write>},
    Entry{{"romio_cb_read", toggle_form, "the same for collective reads"},
          set_toggle<&Hints::collective_read>,
          get_toggle<&Hints::collective_read>},
    Entry{{"romio_ds_write", toggle_form,
           "data sieving of writes with holes: read, modify, write back"},
          set_toggle<&Hints::sieve_write>,
          get_toggle<&Hints::sieve_write>},
    Entry{{"romio_ds_read", toggle_form, "data sieving of reads: read the holes as well"},
          set_toggle<&Hints::sieve_read>,
          get_toggle<&Hints::sieve_read>},
    Entry{{"romio_no_indep_rw", boolean_form, "the program makes no independent data calls"},
          set_boolean<&Hints::no_independent>,
          [](const Hints& hints) -> std::optional<std::string> {
            return hints.no_independent ? "true" : "false";
          }},
    Entry{{"ind_rd_buffer_size", size_form, "buffer for data sieving of independent reads"},
          set_size<&Hints::independent_read_buffer>,
          get_number<&Hints::independent_read_buffer>},
    Entry{{"ind_wr_buffer_size", size_form, "buffer for data sieving of independent writes"},
          set_size<&Hints::independent_write_buffer>,
          get_number<&Hints::independent_write_buffer>},
    Entry{{"forebay", "enable or disable", "disable: leave this file to the MPI library"},
          set_enabled,
          [](const Hints& hints) -> std::optional<std::string> {
            return hints.passthrough ? "disable" : "enable";
          }},
    Entry{{"forebay_compress", toggle_form, "compress messages between nodes"},
          set_toggle<&Hints::compress>,
          get_toggle<&Hints::compress>},
    Entry{{"forebay_io_depth", count_form, "storage calls that an aggregator keeps in flight"},
          set_count<&Hints::io_depth>,
          get_number<&Hints::io_depth>},
    Entry{{"forebay_cache", "enable, disable or coherent",
           "writes go to a write-behind log on the node first"},
          set_cache,
          get_switch<&Hints::cache>},
    Entry{{"e10_cache", "enable, disable or coherent", "the same, as E10 spells it"},
          set_cache,
          nullptr},
    Entry{{"forebay_cache_path", path_form, "where the node's logs are"},
          set_cache_path,
          [](const Hints& hints) { return hints.cache_path; }},
    Entry{{"e10_cache_path", path_form, "the same"}, set_cache_path, nullptr},
    Entry{{"forebay_cache_flush", "immediate, onsync, onclose, deferred or none",
           "when what is in the logs goes on to the file"},
          set_cache_flush,
          get_cache_flush},
    Entry{{"e10_cache_flush_flag", "flush_immediate or flush_onclose", "the same"},
          set_e10_flush,
          nullptr},
    Entry{{"forebay_cache_capacity", size_form,
           "bytes that all logs below the path may take on a node"},
          set_size<&Hints::cache_capacity>,
          get_number<&Hints::cache_capacity>},
    Entry{{"forebay_cache_sync", "file or node",
           "what a sync makes durable: the file, or the log on the node"},
          set_cache_sync,
          [](const Hints& hints) -> std::optional<std::string> {
            if (!hints.cache_sync_to_node) return std::nullopt;
            return *hints.cache_sync_to_node ? "node" : "file";
          }},
    Entry{{"forebay_cache_discard", switch_form, "disable: logs stay when the file is closed"},
          set_switch<&Hints::cache_discard>,
          get_switch<&Hints::cache_discard>},
    Entry{{"e10_cache_discard_flag", switch_form, "the same"},
          set_switch<&Hints::cache_discard>,
          nullptr},
    Entry{{"forebay_cache_threads", count_form, "threads of a rank that flush"},
          set_count<&Hints::cache_threads>,
          get_number<&Hints::cache_threads>},
    Entry{{"e10_cache_threads", count_form, "the same"}, set_count<&Hints::cache_threads>, nullptr},
    Entry{{"forebay_cache_compress", toggle_form, "compress what the logs hold"},
          set_toggle<&Hints::cache_compress>,
          [](const Hints& hints) -> std::optional<std::string> {
            if (hints.cache_compress == Toggle::automatic) return std::nullopt;
            return std::string(to_string(hints.cache_compress));
          }},
    Entry{{"forebay_cache_redundancy", "none, partner, parity or parity:k+m",
           "logs are protected against the loss of nodes"},
          set_cache_redundancy,
          get_cache_redundancy},
    Entry{{"forebay_delayed", "begin or end",
           "what is written in between is protected at its end, all at once"},
          set_delayed,
          [](const Hints& hints) -> std::optional<std::string> {
            if (!hints.delayed) return std::nullopt;
            return *hints.delayed ? "begin" : "end";
          }},
};

constexpr auto keys = [] {
  std::array<HintKey, entries.size()> result;
  std::ranges::transform(entries, result.begin(), &Entry::key);
  return result;
}();

constexpr std::string_view own_prefix = "forebay_";

std::string own_keys() {
  std::string list = "one of the keys";
  const char* separator = " ";
  for (const HintKey& key : keys) {
    if (!key.key.starts_with(own_prefix)) continue;
    list.append(separator).append(key.key);
    separator = ", ";
  }
  return list;
}

}  // namespace

std::string to_string(const HintProblem& problem) {
  return problem.source + ": " + problem.key + " = \"" + problem.value +
         "\" is not understood and has no effect; accepted: " + problem.accepted;
}

std::vector<HintProblem> apply_hints(Hints& hints, const HintPairs& pairs,
                                     std::string_view source) {
  std::vector<HintProblem> problems;
  for (const auto& [key, value] : pairs) {
    const auto* entry = std::ranges::find(entries, key, [](const Entry& e) { return e.key.key; });
    if (entry != entries.end()) {
      if (!entry->set(hints, value)) {
        problems.push_back({std::string(source), key, value, std::string(entry->key.accepted)});
      }
    } else if (key.starts_with(own_prefix)) {
      problems.push_back({std::string(source), key, value, own_keys()});
    }
  }
  return problems;
}

Result<HintPairs> parse_hint_list(std::string_view text) {
  HintPairs pairs;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    if (trim(item).empty()) continue;
    const std::size_t equals = item.find('=');
    const std::string_view key = trim(item.substr(0, equals));
    if (equals == std::string_view::npos || key.empty()) {
      return tl::make_unexpected(
          Error{ErrorKind::invalid_argument, 0,
                "\"" + std::string(trim(item)) + "\" is no hint; write key=value;key=value"});
    }
    pairs.emplace_back(key, trim(item.substr(equals + 1)));
  }
  return pairs;
}

HintPairs to_pairs(const Hints& hints) {
  HintPairs pairs;
  for (const Entry& entry : entries) {
    if (entry.get == nullptr) continue;
    if (auto value = entry.get(hints)) pairs.emplace_back(entry.key.key, *std::move(value));
  }
  return pairs;
}

HintPairs creation_pairs(const Hints& hints) {
  HintPairs pairs;
  const HintPairs unsaid = to_pairs(Hints());
  for (auto& pair : to_pairs(hints)) {
    const bool says_something = std::ranges::find(unsaid, pair) == unsaid.end();
    if (says_something && !pair.first.starts_with("forebay")) pairs.push_back(std::move(pair));
  }
  if (hints.stripe_size) pairs.emplace_back("stripe_size", std::to_string(*hints.stripe_size));
  if (hints.stripe_count) pairs.emplace_back("stripe_width", std::to_string(*hints.stripe_count));
  return pairs;
}

std::span<const HintKey> known_hints() { return keys; }

bool is_known_hint(std::string_view key) {
  return std::ranges::find(known_hints(), key, &HintKey::key) != known_hints().end();
}

}  // namespace forebay
