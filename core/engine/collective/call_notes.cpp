#include "core/engine/collective/call_notes.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "core/model/extent.hpp"

namespace forebay {

std::vector<std::string> call_notes(const Counters& counters, const AgreedCost& cost) {
  std::vector<std::string> notes;
  const std::int64_t exchanged = counters.exchanged_calls.load();
  const std::int64_t direct = counters.direct_calls.load();
  if (exchanged + direct > 0) {
    std::string note = fmt::format("collective calls: {} through aggregators", exchanged);
    if (direct > 0) {
      note += fmt::format(
          ", {} in which each rank moved its own pieces, as an exchange was not expected to pay "
          "or is ruled out by a hint, atomic mode or the view",
          direct);
    }
    notes.push_back(std::move(note));
  }
  for (const bool writing : {true, false}) {
    const StorageCost& one = cost.of(writing);
    if (!one.measured) continue;
    notes.push_back(fmt::format("planned for slow {}: about {:.2g} ms a call and {:.2g} ms a MiB",
                                writing ? "writing" : "reading", one.call_ns / 1e6,
                                one.byte_ns * MiB / 1e6));
  }
  return notes;
}

}  // namespace forebay
