#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/engine/prefetch/node_readers.hpp"
#include "core/model/error.hpp"
#include "core/model/extent.hpp"
#include "core/plan/extent_advice.hpp"
#include "core/plan/read_advice.hpp"
#include "core/plan/request_tuner.hpp"
#include "core/storage/fetch_source.hpp"

namespace forebay {

/// Brings parts of a file into the page cache, where the program, and the others on the node that
/// read the file, find them, and takes them out when the last has passed, unless they are to stay.
/// Not thread-safe.
class PageCacheFetch {
 public:
  enum class Passed { is_taken_out, stays };
  /// `declared`: of the file, in the order of reading; empty: what is brought first stands for it.
  PageCacheFetch(std::unique_ptr<NodeReaders> readers, Bytes file_size,
                 std::span<const Extent> declared = {}, Passed passed = Passed::is_taken_out);

  struct Brought {
    Extent missing;      ///< All that was asked for lies in it.
    Bytes fetched = 0;   ///< Of it.
    Bytes resident = 0;  ///< Was there already.
    int requests = 0;
    int failed = 0;  ///< Of them.
  };
  /// Waits for nothing where the kernel takes advice, but for the first 4 KiB, or up to three times
  /// as much where it does not tell what is there.
  /// `declared`: of `extent`, what must be there; empty: all of it.
  Brought bring(FetchSource& source, Extent extent, std::span<const Extent> declared = {});

  /// One reader of the node measures, the others do as it says; and who is in front lets the others
  /// catch up.
  void agree(ReadAdvice& advice, std::int64_t now_ns);
  /// Others read the file, too: what was there already may be theirs.
  bool has_company() const { return readers_ != nullptr && readers_->has_company(); }

  /// Whether reads of this file do not come from the page cache: reads a bit of `extent`.
  static bool is_in_vain(FetchSource& source, Extent extent);

  /// Reads of this file do not come from the page cache: nothing is brought there.
  bool is_useless() const { return found_ == Found::useless; }
  /// It has the file, as reads show where the kernel does not tell: nothing is brought, and only
  /// what others brought is taken out.
  bool is_all_there() const { return found_ == Found::all_there; }

  /// What was passed stays.
  bool lets_stay() const { return passed_ == Passed::stays; }

  /// The program has passed these. What was taken out of the page cache, ascending.
  std::vector<Extent> let_go(FetchSource& source, std::span<const ReadAdvice::Item> items);
  /// The program reads no more.
  std::vector<Extent> let_go_of_all(FetchSource& source);

 private:
  enum class Found { unknown, useless, useful, all_there };
  using Places = std::array<Bytes, 3>;
  static Places places_in(std::span<const Extent> declared);
  static Found look(FetchSource& source, Extent extent, const Places& places);
  static Found look_as_told(FetchSource& source, Extent extent);
  static Found look_by_time(FetchSource& source, const Places& places);
  void look_once(FetchSource& source, Extent extent);
  Extent transfer_in_file(Extent extent) const;
  Extent missing_of(FetchSource& source, std::span<const Extent> parts) const;
  Status bring_piece(FetchSource& source, Extent piece);

  const std::unique_ptr<NodeReaders> readers_;
  const Bytes file_size_;
  const Passed passed_;
  std::optional<Places> places_;  ///< To look at.
  /// No longer advice is given: the kernel cut short what was longer.
  Bytes longest_advice_ = RequestTuner::longest_request;
  Bytes longest_taken_ = 0;  ///< Advice that the kernel did not cut short.
  Found found_ = Found::unknown;
  /// Where advice does nothing (Lustre): bytes that are read only for the page cache to have them.
  std::vector<std::byte> unread_;
};

}  // namespace forebay
