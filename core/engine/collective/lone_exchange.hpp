#pragma once

#include <memory>

#include "core/engine/collective/exchange.hpp"

namespace forebay {

/// The exchange of a rank that has a file open by itself. It has nobody to talk to and takes
/// nothing from the MPI, which has communicators for a few thousand open files and no more.
std::shared_ptr<Exchange> make_lone_exchange();

}  // namespace forebay
