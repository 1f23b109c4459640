// Feeds arbitrary text to the reader of intent files, for a file that patterns can match.

#include <cassert>
#include <cstdint>

#include "core/model/hints.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view toml(reinterpret_cast<const char*>(data), size);
  const auto result = forebay::intent_for(toml, "fuzz.toml", "/scratch/run/ckpt_0001.h5", {});
  if (!result) {
    assert(result.error().kind == forebay::ErrorKind::invalid_argument);
    return 0;
  }
  for (const auto& problem : result->problems) assert(problem.source.starts_with("fuzz.toml:"));
  forebay::Hints again;
  assert(apply_hints(again, to_pairs(result->hints), "fuzz").empty());
  return 0;
}
