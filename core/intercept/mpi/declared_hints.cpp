#include "core/intercept/mpi/declared_hints.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "core/intercept/mpi/info_pairs.hpp"
#include "core/intercept/mpi/settings.hpp"
#include "core/storage/text_file.hpp"

namespace forebay {
namespace {

using Json = nlohmann::json;

/// What rank 0 packed, on every rank; null if that was nothing. Collective.
Json from_rank_0(Exchange& exchange, std::span<const std::uint8_t> packed) {
  if (exchange.rank() != 0) packed = {};
  const auto all = exchange.all_gather_varying(std::as_bytes(packed));
  if (all.front().empty()) return {};
  const auto* data = reinterpret_cast<const std::uint8_t*>(all.front().data());
  return Json::from_msgpack(data, data + all.front().size());
}

void apply(DeclaredHints& declared, const HintPairs& pairs, std::string_view source) {
  for (const HintProblem& problem : apply_hints(declared.hints, pairs, source)) {
    declared.problems.push_back(to_string(problem));
  }
}

void apply_intent(DeclaredHints& declared, const std::string& text, const std::string& intent_path,
                  const std::string& path) {
  Result<IntentHints> intent = intent_for(text, intent_path, path, declared.hints);
  if (!intent) {
    declared.problems.push_back(to_string(intent.error()));
    return;
  }
  declared.hints = intent->hints;
  for (const HintProblem& problem : intent->problems) {
    declared.problems.push_back(to_string(problem));
  }
}

/// Whether `key` is one that only an MPI library may know.
bool is_for_mpi(const std::string& key) {
  return !key.starts_with("forebay") && !is_known_hint(key);
}

}  // namespace

void show(Exchange& exchange, const std::vector<std::string>& problems, const std::string& path) {
  if (exchange.rank() != 0) return;
  static std::mutex mutex;
  static std::set<std::string> shown;
  const std::lock_guard lock(mutex);
  for (const std::string& problem : problems) {
    if (!shown.insert(problem).second) continue;
    std::fprintf(stderr, "forebay: %s: %s\n", path.c_str(), problem.c_str());
  }
}

std::vector<std::uint8_t> pack_declarations(MPI_Info info) {
  const Settings& environment = settings();
  const HintPairs pairs = pairs_of(info);
  if (pairs.empty() && !environment.declares()) return {};
  Json sources = {{"info", pairs}, {"hints", environment.hints}};
  if (!environment.intent_path.empty()) {
    const auto text = text_of(environment.intent_path);
    sources["intent_path"] = environment.intent_path;
    if (text) {
      sources["intent"] = *text;
    } else {
      sources["intent_error"] = to_string(text.error());
    }
  }
  return Json::to_msgpack(sources);
}

DeclaredHints declare_at_open(Exchange& exchange, const std::string& path,
                              std::span<const std::uint8_t> packed) {
  const Json agreed = from_rank_0(exchange, packed);
  DeclaredHints declared;
  if (agreed.is_null()) return declared;
  if (agreed.contains("intent")) {
    apply_intent(declared, agreed["intent"], agreed["intent_path"], path);
  } else if (agreed.contains("intent_error")) {
    declared.problems.push_back("the intent file is left out: cannot " +
                                agreed["intent_error"].get<std::string>());
  }
  if (const Result<HintPairs> pairs = parse_hint_list(agreed["hints"].get<std::string>()); pairs) {
    apply(declared, *pairs, "FOREBAY_HINTS");
    std::ranges::copy_if(*pairs, std::back_inserter(declared.for_mpi),
                         [](const auto& pair) { return is_for_mpi(pair.first); });
  } else {
    declared.problems.push_back("FOREBAY_HINTS: " + to_string(pairs.error()));
  }
  declared.given = agreed["info"].get<HintPairs>();
  apply(declared, declared.given, "MPI_Info");
  show(exchange, declared.problems, path);
  return declared;
}

HintPairs pairs_for_creation(HintPairs given, const DeclaredHints& declared) {
  HintPairs more = creation_pairs(declared.hints);
  more.insert(more.end(), declared.for_mpi.begin(), declared.for_mpi.end());
  for (auto& pair : more) {
    if (std::ranges::find(given, pair.first, &HintPairs::value_type::first) == given.end()) {
      given.push_back(std::move(pair));
    }
  }
  return given;
}

DeclaredHints declare_later(Exchange& exchange, const std::string& path, Hints hints,
                            MPI_Info info) {
  const Json agreed = from_rank_0(exchange, Json::to_msgpack(pairs_of(info)));
  DeclaredHints declared{std::move(hints), agreed.get<HintPairs>(), {}, {}};
  apply(declared, declared.given, "MPI_Info");
  show(exchange, declared.problems, path);
  return declared;
}

}  // namespace forebay
