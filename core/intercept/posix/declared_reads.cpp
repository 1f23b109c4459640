#include "core/intercept/posix/declared_reads.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "core/intercept/posix/complaint.hpp"
#include "core/storage/text_file.hpp"

namespace forebay::posix {

const DeclaredReads* DeclaredReads::load() {
  const char* path = std::getenv("FOREBAY_INTENT");
  const char* mode = std::getenv("FOREBAY_MODE");
  if (path == nullptr || path[0] == '\0') return nullptr;
  if (mode != nullptr && (std::strcmp(mode, "off") == 0 || std::strcmp(mode, "observe") == 0)) {
    return nullptr;
  }
  const auto text = text_of(path);
  auto sections = text ? read_sections(*text, path) : tl::unexpected(text.error());
  if (!sections) {
    complain("nothing is read ahead: " + to_string(sections.error()));
    return nullptr;
  }
  return sections->empty() ? nullptr : new DeclaredReads(*std::move(sections));
}

DeclaredReads::DeclaredReads(std::vector<ReadSection> sections)
    : sections_(std::move(sections)),
      goes_by_size_(std::ranges::any_of(
          sections_, [](const ReadSection& section) { return section.same_size.has_value(); })),
      told_(sections_.size()) {}

DeclaredReads::Sections DeclaredReads::sections_for(const OpenedName& name, Bytes size) const {
  return index_.sections_for(std::array{name.named(), name.real()}, size);
}

std::shared_ptr<const ReadIntent> DeclaredReads::together(const Sections& sections) {
  if (sections.size() != 1) return std::make_shared<ReadIntent>(combined(sections));
  return {std::shared_ptr<void>(), &sections.front()->intent};  // It is never freed.
}

void DeclaredReads::tell(const Sections& sections, bool hints_are_told) const {
  for (const ReadSection* section : sections) {
    const auto place = static_cast<std::size_t>(section - sections_.data());
    const bool has_any = !section->problems.empty() || !section->unknown.empty();
    if (!has_any || told_[place].test_and_set()) continue;
    for (const HintProblem& problem : section->problems) complain(to_string(problem));
    if (hints_are_told) continue;
    for (const HintProblem& problem : section->unknown) complain(to_string(problem));
  }
}

}  // namespace forebay::posix
