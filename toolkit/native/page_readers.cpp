#include "toolkit/native/page_readers.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <string>
#include <utility>

#include "core/engine/prefetch/node_readers.hpp"
#include "core/engine/prefetch/page_cache_fetch.hpp"
#include "core/engine/prefetch/prefetcher.hpp"
#include "core/intercept/posix/prefetch_record.hpp"
#include "core/plan/extent_advice.hpp"
#include "core/storage/descriptor.hpp"
#include "toolkit/native/page_trace.hpp"

namespace forebay {

void PageReaders::opened(const OpenedFiles::Opened& file) {
  const FileId id = file.version.id;
  if (file.was_written || readers_.contains(id)) return;
  const auto sections = index_.sections_for(std::array{file.path.c_str()}, file.version.size);
  tell_mistakes(file, sections);
  const ReadIntent wishes = combined(sections);
  if (wishes.willneed.empty()) return;
  auto source = open(file);
  if (!source) {
    if (!left_alone_.insert(id).second) return;
    const auto figures = PrefetchFigures::of_nothing(to_string(source.error()));
    return posix::write_prefetch_record(file.path, 1, figures);
  }
  const Bytes budget = wishes.budget.value_or(Prefetcher::usual_budget);
  auto advice = std::make_unique<ExtentAdvice>(wishes.willneed, file.version.size, budget,
                                               wishes.gap.value_or(GapChoice{}).bytes);
  auto readers = NodeReaders::join(file.version, advice->plan().extents(), budget);
  auto fetch = std::make_unique<PageCacheFetch>(std::move(readers), file.version.size);
  readers_[id].file =
      adviser_.add(file.path, *std::move(source), std::move(advice), std::move(fetch));
}

/// Half of the descriptors are for what is opened next: it comes with one.
Result<std::unique_ptr<FetchSource>> PageReaders::open(const OpenedFiles::Opened& file) {
  if (descriptors_run_short()) end_those_read();
  if (descriptors_run_short()) return fail(EMFILE, "open once more " + file.path);
  return open_fetch_source(file.descriptor, file.path, Through::widened_page_cache);
}

/// What is opened again begins anew.
void PageReaders::end_those_read() {
  std::erase_if(readers_, [](const auto& entry) {
    const bool is_read = entry.second.file->is_done();
    if (is_read) end(entry.second);
    return is_read;
  });
}

void PageReaders::end(const Reader& reader) {
  reader.file->finish();
  posix::write_prefetch_record(reader.file->path(), 1, reader.file->figures());
}

void PageReaders::tell_mistakes(const OpenedFiles::Opened& file,
                                const std::vector<const ReadSection*>& sections) {
  std::vector<std::string> mistakes;
  for (const ReadSection* section : sections) {
    for (const auto* problems : {&section->problems, &section->unknown}) {
      for (const HintProblem& problem : *problems) mistakes.push_back(to_string(problem));
    }
  }
  std::ranges::move(unfit_reads(sections, file.version.size), std::back_inserter(mistakes));
  if (mistakes.empty() || !told_.insert(file.version.id).second) return;
  posix::write_mistakes_record(file.path, mistakes);
}

void PageReaders::read(const PageEvent& event) {
  const auto found = readers_.find(event.file);
  if (found == readers_.end()) return;
  Reader& reader = found->second;
  if (event.kind == PageEvent::Kind::fault) reader.last_fault = event.extent;
  const bool is_around = event.kind == PageEvent::Kind::around;
  reader.file->note(is_around ? pages_read(event.extent, reader.last_fault) : event.extent);
}

void PageReaders::finish() {
  for (const auto& [id, reader] : readers_) end(reader);
  readers_.clear();
}

}  // namespace forebay
