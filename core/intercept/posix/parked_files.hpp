#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "core/intercept/posix/followed.hpp"
#include "core/model/extent.hpp"
#include "core/storage/file.hpp"

namespace forebay::posix {

/// Files that the program closed before all that was declared of them was read, and will open
/// again: some programs open a file for every piece that they read of it, even from several threads
/// that are at different places. What was fetched stays, and goes on where it was. Not thread-safe.
class ParkedFiles {
 public:
  /// Of one file or several. The oldest ends then.
  static constexpr std::size_t most = 8;

  /// After the last descriptor was closed. Returns what ends now: `followed` itself where it is not
  /// kept, or one that has to make room for it. It is kept from the second time on: a program that
  /// opens its file once must not find it in use afterwards. Not where it does not pay, nor do
  /// others of the file.
  std::optional<Followed> park(Followed followed);

  /// Whether the file was closed before, lately, and not all of it was read.
  bool is_reopened(FileId id) { return closed(id) != nullptr; }

  /// Whether one of it is kept, and has something to go on with.
  bool holds(FileId id) const;
  /// Whether one that is kept of it `is_wanted`.
  bool has(FileId id, const std::function<bool(const Followed&)>& is_wanted) const;

  /// Whether one more may be fetched of a file that was open before, from another place on than
  /// those that are kept. Not where so much was fetched in vain for the last ones that it does
  /// not pay: the program reads in another order than was declared.
  bool may_begin(FileId id);
  /// It is.
  void begins(FileId id);

  /// Those of a file.
  void for_each(FileId id, const std::function<void(const Followed&)>& act) const;

  /// The latest one that was kept of a file, and that `is_wanted`. It may be of another version.
  std::optional<Followed> take(FileId id, const std::function<bool(const Followed&)>& is_wanted);

  /// All of them.
  std::vector<Followed> take_all();

 private:
  static constexpr std::size_t most_remembered = 16;

  /// Bytes read, less those fetched in vain, that a beginning must be followed by, to pay for its
  /// requests.
  static constexpr Bytes price = 256 * KiB;
  /// What a file may cost before it is known whether it pays: beginnings of a few MiB each.
  static constexpr Bytes most_credit = 16 * MiB;

  /// A file that was closed before all was read.
  struct Closed {
    FileId id;
    Bytes credit = most_credit;
  };

  Closed* closed(FileId id);
  void credit(Followed& followed, bool has_ended);

  std::deque<Followed> parked_;
  std::deque<Closed> closed_;  ///< Lately.
};

}  // namespace forebay::posix
