#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "core/model/read_intent.hpp"

namespace forebay {
namespace {

/// Extents are often declared in whole pages, or whole blocks of the file system.
constexpr Bytes roundest_end = 4 * KiB;

std::string shown(Extent written) {
  return "willneed [" + std::to_string(written.offset) + ", " + std::to_string(written.length) +
         "]";
}

class UnfitReads {
 public:
  explicit UnfitReads(Bytes size) : size_(size) {}

  /// `winner`: whose willneed counts. Null: none has one.
  void look_at(const ReadSection& section, const ReadSection* winner) {
    if (section.intent.willneed.empty()) return;
    if (&section != winner) {
      if (section.intent.willneed == winner->intent.willneed) return;
      tell(section, section.lines.front(),
           "willneed has no effect on this file, for which that of line " +
               std::to_string(winner->lines.front()) + " counts");
      return;
    }
    if (section.same_size && *section.same_size != size_) {
      tell(section, section.same_size_line,
           "same_size is " + std::to_string(*section.same_size) + ", but " + the_file() +
               ": what was recorded may not fit it");
    }
    look_at_extents(section);
  }

  std::vector<std::string> take() {
    if (more_ > 0) told_.push_back("and " + std::to_string(more_) + " more like these");
    return std::move(told_);
  }

 private:
  void look_at_extents(const ReadSection& section) {
    Extent before;
    for (std::size_t at = 0; at < section.lines.size(); ++at) {
      const Extent written = section.intent.willneed[at];
      const bool to_the_end = written.length == 0;
      const Bytes rest = size_ - written.offset;
      if (rest <= 0) {
        // The whole of an empty file is nothing.
        if (to_the_end && written.offset == 0) continue;
        tell(section, section.lines[at],
             shown(written) + " lies outside, as " + the_file() + ", and has no effect");
        continue;
      }
      const Extent inside{written.offset, to_the_end ? rest : std::min(written.length, rest)};
      if (written.length - inside.length >= roundest_end) {
        tell(section, section.lines[at],
             shown(written) + " goes beyond the end, as " + the_file() +
                 "; only what lies in it counts");
      }
      const bool is_behind = inside.offset >= before.offset;
      if (is_behind && !intersect(before, inside).empty()) {
        tell(section, section.lines[at],
             shown(written) + " overlaps the pair before it, and the two are read as one");
        before = hull(before, inside);
      } else {
        before = inside;
      }
    }
  }

  std::string the_file() const { return "the file has " + std::to_string(size_) + " bytes"; }

  void tell(const ReadSection& section, std::uint32_t line, const std::string& what) {
    static constexpr std::size_t most_told = 16;
    if (told_.size() == most_told) {
      ++more_;
    } else {
      told_.push_back(section.written_in + ":" + std::to_string(line) + ": " + what);
    }
  }

  const Bytes size_;
  std::vector<std::string> told_;
  std::size_t more_ = 0;
};

}  // namespace

std::vector<std::string> unfit_reads(std::span<const ReadSection* const> sections, Bytes size) {
  const ReadSection* winner = declaring(sections);
  UnfitReads found(size);
  for (const ReadSection* section : sections) found.look_at(*section, winner);
  return found.take();
}

}  // namespace forebay
