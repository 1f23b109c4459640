#pragma once

#include <string>
#include <vector>

#include "core/engine/collective/agreed_cost.hpp"
#include "core/model/counters.hpp"

namespace forebay {

/// How this rank's collective calls went, and what they were planned by, for a person.
std::vector<std::string> call_notes(const Counters& counters, const AgreedCost& cost);

}  // namespace forebay
