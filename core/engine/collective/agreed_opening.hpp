#pragma once

#include "core/engine/collective/exchange.hpp"
#include "core/model/hints.hpp"
#include "core/model/stripe_layout.hpp"
#include "core/plan/storage_cost.hpp"

namespace forebay {

/// Rank 0's word for all: hints and layout decide where collective messages go, so a rank that
/// thought otherwise would wait for ever.
struct Agreed {
  StripeLayout layout;
  Hints hints;
  CostWord start;  ///< What storage calls cost as far as earlier files showed.
  int adapters;    ///< Network adapters of a node; 1 where that makes no difference.
};

/// What rank 0 gave; the others' arguments count for nothing. Collective.
Agreed agree_on(Exchange& exchange, const StripeLayout& layout, const Hints& hints,
                const CostWord& start);

/// What of the cache is fixed when the file is opened stays in `hints` as it was in `opened`;
/// `cached`: there is a cache. False if something else was asked for.
bool keep_cache_hints(Hints& hints, const Hints& opened, bool cached);

}  // namespace forebay
