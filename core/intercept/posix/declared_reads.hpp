#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "core/intercept/posix/opened_name.hpp"
#include "core/model/read_intent.hpp"
#include "core/model/section_index.hpp"

namespace forebay::posix {

/// What the process's intent file says of reads: read once, when the library is loaded.
class DeclaredReads {
 public:
  /// Of the file that FOREBAY_INTENT names; null if there is none, if nothing in it speaks of
  /// reads, or if FOREBAY_MODE leaves the I/O alone. What is wrong with it is told on the error
  /// stream.
  static const DeclaredReads* load();

  using Sections = std::vector<const ReadSection*>;
  /// Those for a file of `size` bytes, by either of its names.
  Sections sections_for(const OpenedName& name, Bytes size) const;
  /// What they say together, as combined() has it. Of one alone nothing is copied.
  static std::shared_ptr<const ReadIntent> together(const Sections& sections);
  /// Which files they are for does not depend on names alone.
  bool goes_by_size() const { return goes_by_size_; }

  /// Tells what is wrong in `sections`, of each once in the process. `hints_are_told`: somebody
  /// else, who reads what they say of hints, tells of keys that nobody knows.
  void tell(const Sections& sections, bool hints_are_told) const;

 private:
  explicit DeclaredReads(std::vector<ReadSection> sections);

  const std::vector<ReadSection> sections_;
  const SectionIndex index_{sections_};
  const bool goes_by_size_;
  mutable std::vector<std::atomic_flag> told_;  ///< By section.
};

}  // namespace forebay::posix
