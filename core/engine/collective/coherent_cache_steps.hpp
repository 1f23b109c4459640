#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/cache/crash_model.hpp"
#include "core/engine/collective/coherent_cache.hpp"
#include "core/engine/collective/coherent_cache_power_rig.hpp"
#include "core/engine/collective/exchange.hpp"

// For tests: what ranks that share a file do with it, step by step, and what came of it.

namespace forebay {

struct CacheStep {
  static constexpr int ranks = 3;

  enum class Kind {
    write,
    write_together,
    write_at_once,
    read,
    sync,
    settle,
    resize,
    allocate,
    atomic,
    not_atomic,
    give_up,
    close,
  };
  Kind kind = Kind::write;
  int rank = 0;
  ByteWrite write = {};  ///< Or what is read; a size is its offset.
  std::array<std::vector<ByteWrite>, ranks> at_once = {};

  /// What a rank writes, one after the other.
  std::vector<ByteWrite> writes_of(int by) const {
    if (kind == Kind::write_at_once) return at_once[static_cast<std::size_t>(by)];
    ByteWrite part = write;
    if (kind == Kind::write_together) part.offset += by * part.length;
    if (kind == Kind::write_together || (kind == Kind::write && by == rank)) return {part};
    return {};
  }
};

/// What a step came to. Ranks have places of their own in it.
struct StepOutcome {
  std::array<std::vector<ByteWrite>, CacheStep::ranks> acknowledged;
  std::optional<bool> changed;  ///< The size; none: it was not tried.
  /// Of the bytes read; after writes at once, of all there are.
  std::optional<std::vector<std::byte>> found;
  std::array<std::string, CacheStep::ranks> failed;  ///< With the power on.
  bool all = false;
};

/// One rank that takes steps, each of which is collective.
class StepTaker {
 public:
  /// No byte of the file lies behind `room`.
  StepTaker(Exchange& exchange, CoherentCache& cache, const Power& power, CacheFlush flush,
            Bytes room)
      : exchange_(exchange), cache_(cache), power_(power), flush_(flush), room_(room) {}

  /// False: it failed on some rank.
  bool take(const CacheStep& step, StepOutcome& outcome) {
    const auto me = static_cast<std::size_t>(exchange_.rank());
    const Status done = part_of(step, outcome);
    const bool on = power_.on();
    if (!done && on) outcome.failed[me] = to_string(done.error());
    const bool all = all_of(done && on);
    if (me == 0) outcome.all = all;
    return all;
  }

 private:
  using Kind = CacheStep::Kind;
  using Content = std::vector<std::byte>;

  bool mine(const CacheStep& step) const { return exchange_.rank() == step.rank; }

  bool all_of(bool right) {
    std::int64_t failed = right ? 0 : 1;
    exchange_.all_reduce({&failed, 1}, Reduce::max);
    return failed == 0;
  }

  Status part_of(const CacheStep& step, StepOutcome& outcome) {
    switch (step.kind) {
      case Kind::write:
      case Kind::write_together:
        return write(step, outcome);
      case Kind::write_at_once: {
        const Status written = write(step, outcome);
        if (!all_of(written && power_.on()) || exchange_.rank() != 0) return written;
        return read({0, room_, {}}, outcome);
      }
      case Kind::read:
        return mine(step) ? read(step.write, outcome) : Status{};
      case Kind::sync:
        return cache_.sync();
      case Kind::settle:
        return mine(step) ? cache_.settle() : Status{};
      case Kind::resize:
      case Kind::allocate:
        return change_size(step, outcome);
      case Kind::atomic:
      case Kind::not_atomic:
        return cache_.set_atomic(step.kind == Kind::atomic);
      case Kind::give_up:
        return mine(step) ? cache_.write_through("a test") : Status{};
      case Kind::close:
        return close();
    }
    return {};
  }

  Status write(const CacheStep& step, StepOutcome& outcome) {
    const auto me = static_cast<std::size_t>(exchange_.rank());
    const bool together = step.kind == Kind::write_together;
    Status written;
    for (const ByteWrite& write : step.writes_of(exchange_.rank())) {
      const Content bytes(static_cast<std::size_t>(write.length), write.value);
      written = cache_.write_at(bytes, write.offset);
      if (written && !together) written = cache_.commit();
      if (!written || !power_.on()) break;
      if (!together) outcome.acknowledged[me].push_back(write);
    }
    if (!together) return written;
    std::int64_t epoch = static_cast<std::int64_t>(cache_.epoch());
    exchange_.all_reduce({&epoch, 1}, Reduce::max);
    if (written) written = cache_.commit(static_cast<std::uint64_t>(epoch) + 1);
    if (written && power_.on()) outcome.acknowledged[me] = step.writes_of(exchange_.rank());
    return written;
  }

  Status read(const ByteWrite& what, StepOutcome& outcome) {
    Content bytes(static_cast<std::size_t>(what.length));
    const auto got = cache_.read_at(bytes, what.offset);
    if (!got) return tl::unexpected(got.error());
    bytes.resize(static_cast<std::size_t>(*got));
    outcome.found = std::move(bytes);
    return {};
  }

  Status change_size(const CacheStep& step, StepOutcome& outcome) {
    Status done = cache_.settle();
    if (!all_of(done.has_value()) || !mine(step)) return done;
    const Bytes size = step.write.offset;
    done = step.kind == Kind::resize ? cache_.resize(size) : cache_.allocate(size);
    outcome.changed = done && power_.on();
    return done;
  }

  Status close() {
    if (flush_ == CacheFlush::deferred) {
      const auto early = cache_.close_early();
      if (!all_of(early.has_value())) return early ? Status{} : tl::unexpected(early.error());
      cache_.start_finishing();
      return cache_.finish();
    }
    const Status closed = cache_.close_together();
    if (all_of(closed.has_value())) cache_.part();
    return closed;
  }

  Exchange& exchange_;
  CoherentCache& cache_;
  const Power& power_;
  const CacheFlush flush_;
  const Bytes room_;
};

/// What the model has to know of a step. What was read in it is as the model says.
inline void tell(const CacheStep& step, const StepOutcome& outcome, CrashModel& model) {
  using Kind = CacheStep::Kind;
  std::vector<ByteWrite> others;  // Of each rank the first one that was not acknowledged.
  for (int rank = 0; rank < CacheStep::ranks; ++rank) {
    const auto all = step.writes_of(rank);
    const std::size_t done = outcome.acknowledged[static_cast<std::size_t>(rank)].size();
    if (done < all.size()) others.push_back(all[done]);
  }
  switch (step.kind) {
    case Kind::write:
    case Kind::write_together:
    case Kind::write_at_once:
      model.write_at_once(outcome.acknowledged, others);
      if (!outcome.found) break;
      EXPECT_EQ(model.wrong_now(0, model.room(), *outcome.found), "");
      model.read_all(*outcome.found);
      break;
    case Kind::read:
      if (!outcome.found) break;
      EXPECT_EQ(model.wrong_now(step.write.offset, step.write.length, *outcome.found), "");
      break;
    case Kind::resize:
      if (outcome.changed) model.resize(*outcome.changed, step.write.offset);
      break;
    case Kind::allocate:
      if (outcome.changed) model.allocate(*outcome.changed, step.write.offset);
      break;
    case Kind::sync:
    case Kind::close:
      if (outcome.all) model.synced();
      break;
    default:
      break;
  }
}

}  // namespace forebay
