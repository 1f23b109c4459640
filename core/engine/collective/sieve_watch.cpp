#include "core/engine/collective/sieve_watch.hpp"

#include "core/engine/collective/state_of_file.hpp"

namespace forebay {

SieveWatch::SieveWatch(const std::optional<FileId>& id)
    : handles_(id ? state_of_file<Handles>(*id) : std::make_shared<Handles>()) {}

SieveWatch::~SieveWatch() { announce(false); }

void SieveWatch::announce(bool sieving) {
  if (sieving == announced_) return;
  announced_ = sieving;
  handles_->sieving.fetch_add(sieving ? 1 : -1);
}

}  // namespace forebay
