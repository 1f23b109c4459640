#include "core/engine/prefetch/page_cache_fetch.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/plan/cache_trial.hpp"
#include "core/plan/fetch_plan.hpp"

namespace forebay {
namespace {

/// The kernel's read-ahead (read_ahead_kb) if nobody has changed it.
constexpr Bytes untold_advice = 128 * KiB;

/// What lies side by side by one call: it is faster, and pages that are freed together are used
/// together again, so that requests of the device have fewer pieces of memory.
std::vector<Extent> drop(FetchSource& source, std::vector<Extent> parts) {
  std::ranges::sort(parts, {}, &Extent::offset);
  std::vector<Extent> whole;
  for (const Extent& part : parts) {
    if (!whole.empty() && part.offset <= whole.back().end()) {
      whole.back() = hull(whole.back(), part);
    } else {
      whole.push_back(part);
    }
  }
  for (const Extent& extent : whole) static_cast<void>(source.advise(extent, false));
  return whole;
}

}  // namespace

PageCacheFetch::PageCacheFetch(std::unique_ptr<NodeReaders> readers, Bytes file_size,
                               std::span<const Extent> declared, Passed passed)
    : readers_(std::move(readers)), file_size_(file_size), passed_(passed) {
  if (!declared.empty()) places_ = places_in(declared);
}

PageCacheFetch::Brought PageCacheFetch::bring(FetchSource& source, Extent extent,
                                              std::span<const Extent> declared) {
  const Extent whole = transfer_in_file(extent);
  Brought result;
  look_once(source, whole);
  if (is_useless()) return result;
  if (is_all_there()) {
    result.resident = whole.length;
    return result;
  }
  const NodeReaders::Turn turn(readers_.get());
  result.resident = std::min(source.resident(whole), whole.length);
  const auto parts = declared.empty() ? std::span(&whole, 1) : declared;
  Extent& missing = result.missing;
  if (result.resident < whole.length) {
    missing = declared.empty() ? whole : missing_of(source, declared);
    const Bytes there = missing == whole ? result.resident : source.resident(missing);
    result.fetched = std::max<Bytes>(missing.length - there, 0);
  }
  if (readers_ != nullptr) {
    readers_->looked_at(whole, result.resident, result.fetched);
    if (readers_->is_cold()) {
      for (const Extent& part : parts) readers_->brought(part);
    }
    readers_->brought(missing);
  }
  for (Bytes at = missing.offset; at < missing.end();) {
    const Extent piece = intersect({at, longest_advice_}, missing);
    ++result.requests;
    if (!bring_piece(source, piece)) {
      // The program learns of an error if it asks for these bytes.
      ++result.failed;
      result.fetched = std::max<Bytes>(result.fetched - piece.length, 0);
    }
    at = piece.end();
  }
  return result;
}

Extent PageCacheFetch::transfer_in_file(Extent extent) const {
  return intersect(transfer_of(extent), {0, file_size_});
}

/// From the first to the last that are not all in the page cache; empty: all are. What others have
/// given up of the gaps is not worth a request.
Extent PageCacheFetch::missing_of(FetchSource& source, std::span<const Extent> parts) const {
  Extent result;
  for (const Extent& part : parts) {
    const Extent whole = transfer_in_file(part);
    if (source.resident(whole) >= whole.length) continue;
    result = result.empty() ? whole : hull(result, whole);
  }
  return result;
}

void PageCacheFetch::agree(ReadAdvice& advice, std::int64_t now_ns) {
  if (readers_ == nullptr) return;
  advice.keep_ahead(readers_->ahead(now_ns));
  if (readers_->measures()) {
    readers_->tell_gap(advice.gap());
  } else {
    advice.take_gap(readers_->told_gap());
  }
}

/// The beginnings of what is read first and halfway, and the last block.
PageCacheFetch::Places PageCacheFetch::places_in(std::span<const Extent> declared) {
  const Extent& last = declared.back();
  const Extent& halfway = declared[declared.size() / 2];
  const Bytes inside = declared.size() == 1 ? halfway.length / 2 : 0;
  return {round_down(declared.front().offset, direct_alignment),
          round_down(halfway.offset + inside, direct_alignment),
          round_down(std::max(last.end() - 1, last.offset), direct_alignment)};
}

/// Some file systems pass every read on (FUSE with direct I/O), and still fill a page cache that
/// nobody reads when they are advised.
PageCacheFetch::Found PageCacheFetch::look_as_told(FetchSource& source, Extent extent) {
  const Extent first{extent.offset, std::min(extent.length, direct_alignment)};
  if (source.resident(first) > 0) return Found::useful;
  std::vector<std::byte> unread(static_cast<std::size_t>(first.length));
  static_cast<void>(source.read(unread, first.offset));
  return source.resident(first) > 0 ? Found::useful : Found::useless;
}

PageCacheFetch::Found PageCacheFetch::look_by_time(FetchSource& source, const Places& places) {
  std::vector<std::byte> unread(static_cast<std::size_t>(direct_alignment));
  const auto is_fast = [&](Bytes offset) {
    const auto ns = source.time_read(unread, offset);
    return ns && is_from_memory(direct_alignment, *ns);
  };
  const auto [first, halfway, last] = places;
  // The program may have read at one of the places, and a thread may lose its processor at one.
  const bool halfway_is_there = is_fast(halfway);
  const bool last_is_there = is_fast(last);
  const bool is_there = halfway_is_there == last_is_there ? last_is_there : is_fast(first);
  if (is_there) return Found::all_there;
  // It was read just now, and is there unless reads pass the page cache.
  return is_fast(last) || is_fast(last) ? Found::useful : Found::useless;
}

PageCacheFetch::Found PageCacheFetch::look(FetchSource& source, Extent extent,
                                           const Places& places) {
  return source.tells_residence() ? look_as_told(source, extent) : look_by_time(source, places);
}

bool PageCacheFetch::is_in_vain(FetchSource& source, Extent extent) {
  return look(source, extent, places_in({&extent, 1})) == Found::useless;
}

void PageCacheFetch::look_once(FetchSource& source, Extent extent) {
  if (found_ != Found::unknown) return;
  found_ = look(source, extent, places_.value_or(places_in({&extent, 1})));
  if (source.tells_residence()) return;
  // What came of advice is not told: it is as long as kernels take it that were left as they are.
  longest_advice_ = untold_advice;
  longest_taken_ = untold_advice;
}

Status PageCacheFetch::bring_piece(FetchSource& source, Extent piece) {
  if (unread_.empty()) {
    const bool is_probe = piece.length > longest_taken_;
    const Bytes before = is_probe ? source.resident(piece) : 0;
    const Status advised = source.advise(piece, true);
    if (!is_probe || !advised) return advised;
    const Bytes there = source.resident(piece);
    if (there >= piece.length) {
      longest_taken_ = piece.length;
      return {};
    }
    if (there > before) {
      longest_advice_ = std::max(round_down(there, direct_alignment), direct_alignment);
      longest_taken_ = longest_advice_;
    } else {
      unread_.resize(static_cast<std::size_t>(ExtentAdvice::most_piece));
      longest_advice_ = ExtentAdvice::most_piece;
    }
    for (Bytes at = piece.offset; at < piece.end(); at += longest_advice_) {
      const Status done = bring_piece(source, intersect({at, longest_advice_}, piece));
      if (!done) return done;
    }
    return {};
  }
  const auto moved =
      source.read(std::span(unread_).first(static_cast<std::size_t>(piece.length)), piece.offset);
  if (!moved) return tl::unexpected(moved.error());
  if (*moved == piece.length) return {};
  return fail(EIO, "read ahead to the end of a piece");
}

std::vector<Extent> PageCacheFetch::let_go(FetchSource& source,
                                           std::span<const ReadAdvice::Item> items) {
  if (passed_ == Passed::stays) return {};
  std::vector<Extent> dropped;
  for (const auto& item : items) {
    if (readers_ == nullptr) {
      if (!is_all_there()) dropped.push_back(transfer_of(item.extent));
      continue;
    }
    // What others had given up, or nobody had brought yet, it read by itself.
    const bool was_read = item.kind == ReadAdvice::Kind::read;
    if (was_read && !is_all_there() && readers_->is_cold()) readers_->brought(item.extent);
    const auto given_up = item.kind == ReadAdvice::Kind::between
                              ? readers_->passed_between(item.extent)
                              : readers_->passed(item.extent);
    dropped.insert(dropped.end(), given_up.begin(), given_up.end());
  }
  return drop(source, std::move(dropped));
}

std::vector<Extent> PageCacheFetch::let_go_of_all(FetchSource& source) {
  if (readers_ == nullptr || passed_ == Passed::stays) return {};
  return drop(source, readers_->left());
}

}  // namespace forebay
