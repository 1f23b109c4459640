// Feeds arbitrary text to the reader of intent files, for a file that patterns can match, and looks
// for what of it does not fit that file.

#include <array>
#include <cassert>
#include <cstdint>
#include <limits>

#include "core/model/hints.hpp"
#include "core/model/read_intent.hpp"
#include "core/model/section_index.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view toml(reinterpret_cast<const char*>(data), size);
  const auto result = forebay::intent_for(toml, "fuzz.toml", "/scratch/run/ckpt_0001.h5", {});
  const auto sections = forebay::read_sections(toml, "fuzz.toml");
  assert(sections.has_value() || !result.has_value());
  const auto problems = forebay::intent_problems(toml, "fuzz.toml");
  assert(problems.has_value() == result.has_value());
  if (!result) {
    assert(result.error().kind == forebay::ErrorKind::invalid_argument);
    return 0;
  }
  for (const auto& problem : *problems) assert(problem.source.starts_with("fuzz.toml:"));
  assert(problems->size() >= result->problems.size());
  for (const auto& section : *sections) {
    for (const auto& problem : section.problems) assert(problem.source.starts_with("fuzz.toml:"));
    for (const auto& extent : section.intent.willneed) {
      assert(extent.offset >= 0 && extent.length >= 0);
    }
  }
  const forebay::SectionIndex index(*sections);
  constexpr std::array paths = {"/scratch/run/ckpt_0001.h5"};
  for (const forebay::Bytes bytes :
       {forebay::Bytes{0}, forebay::Bytes{1'000'000}, std::numeric_limits<forebay::Bytes>::max()}) {
    const auto chosen = index.sections_for(paths, bytes);
    for (const auto& told : forebay::unfit_reads(chosen, bytes)) assert(!told.empty());
    const auto together = forebay::combined(chosen);
    assert(together.willneed.empty() == (forebay::declaring(chosen) == nullptr));
  }
  forebay::Hints again;
  assert(apply_hints(again, to_pairs(result->hints), "fuzz").empty());
  return 0;
}
