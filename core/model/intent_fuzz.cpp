// Feeds arbitrary text to the reader of intent files, for a file that patterns can match.

#include <cassert>
#include <cstdint>

#include "core/model/hints.hpp"
#include "core/model/read_intent.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view toml(reinterpret_cast<const char*>(data), size);
  const auto result = forebay::intent_for(toml, "fuzz.toml", "/scratch/run/ckpt_0001.h5", {});
  const auto sections = forebay::read_sections(toml, "fuzz.toml");
  assert(sections.has_value() || !result.has_value());
  if (!result) {
    assert(result.error().kind == forebay::ErrorKind::invalid_argument);
    return 0;
  }
  for (const auto& problem : result->problems) assert(problem.source.starts_with("fuzz.toml:"));
  for (const auto& section : *sections) {
    for (const auto& problem : section.problems) assert(problem.source.starts_with("fuzz.toml:"));
    for (const auto& extent : section.intent.willneed) {
      assert(extent.offset >= 0 && extent.length >= 0);
    }
  }
  forebay::Hints again;
  assert(apply_hints(again, to_pairs(result->hints), "fuzz").empty());
  return 0;
}
