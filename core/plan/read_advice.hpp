#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/extent.hpp"
#include "core/plan/fetch_plan.hpp"

namespace forebay {

/// How much of its budget a reader takes: what is ahead of it, what it is reading, and what it has
/// passed and may read again. Nothing: it brings nothing more.
enum class Ahead { all, half, nothing };

/// What to tell the kernel about its page cache as a program reads a file.
class ReadAdvice {
 public:
  virtual ~ReadAdvice() = default;

  /// Of what is given up.
  enum class Kind {
    read,     ///< Declared, and read; or told to be needed, and passed.
    skipped,  ///< Declared, never told to be needed, and passed.
    between,  ///< Not declared: it lay between what was.
  };
  struct Item {
    Extent extent;
    bool is_needed;  ///< Else it is given up.
    Kind kind = Kind::read;
    /// Of what is needed, what is declared, if not all of it is.
    std::vector<Extent> declared = {};
    bool operator==(const Item&) const = default;
  };
  /// Of what was declared, as it was given.
  virtual const FetchPlan& plan() const = 0;
  /// Before the first read.
  virtual std::vector<Item> begin() { return {}; }
  /// The time of what is told next, in nanoseconds of any one clock.
  virtual void tell_time(std::int64_t) {}
  /// When the program reads `read`.
  virtual std::vector<Item> observe(Extent read) = 0;
  /// The same of a program that is seen here and there: it has read what lies before, too.
  virtual std::vector<Item> glimpse(Extent read) { return observe(read); }
  /// From now on. What was passed beyond it is given up at once.
  virtual void keep_ahead(Ahead) {}
  /// When nothing was read since: what keep_ahead() allows now.
  virtual std::vector<Item> go_on() { return {}; }
  /// Whether all of an item that is needed was in the page cache already.
  virtual void was_there(bool) {}
  /// What may lie between two extents that are brought by one request, as RequestShape has it.
  virtual std::optional<Bytes> gap() const { return std::nullopt; }
  /// Another reader of the file has measured it.
  virtual void take_gap(std::optional<Bytes>) {}
  /// Told to be needed and not given up, in bytes.
  virtual Bytes held() const = 0;
  /// When it reads no more.
  virtual std::vector<Item> end() { return {}; }

  /// Whether a byte of `extent` was ever foreseen.
  virtual bool foresaw(Extent) const { return true; }
  /// Needed and not read yet, as far as was told, in the order of reading.
  virtual std::vector<Extent> expected() const { return {}; }
  /// The reads were not those foreseen: nothing more will be told.
  virtual bool is_given_up() const { return false; }
  /// Nothing of what was foreseen is left to tell or to read. Not if it was given up: a later
  /// opening would begin with the same plan.
  virtual bool is_done() { return true; }
};

}  // namespace forebay
