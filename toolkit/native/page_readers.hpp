#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/engine/prefetch/adviser.hpp"
#include "core/model/error.hpp"
#include "core/model/read_intent.hpp"
#include "core/model/section_index.hpp"
#include "core/storage/fetch_source.hpp"
#include "toolkit/native/opened_files.hpp"
#include "toolkit/native/page_events.hpp"

namespace forebay {

/// Brings what an intent file declares into the page cache, for programs that nothing can be
/// preloaded into: from when a file is opened, and as far ahead of them as its budget goes. One
/// thread's.
class PageReaders {
 public:
  explicit PageReaders(std::vector<ReadSection> sections) : sections_(std::move(sections)) {}

  void opened(const OpenedFiles::Opened& file);
  void read(const PageEvent& event);

  /// Ends it, and leaves the records of all files.
  void finish();

 private:
  struct Reader {
    std::shared_ptr<AdvisedFile> file;
    Extent last_fault;
  };

  static void end(const Reader& reader);
  void end_those_read();
  Result<std::unique_ptr<FetchSource>> open(const OpenedFiles::Opened& file);
  void tell_mistakes(const OpenedFiles::Opened& file,
                     const std::vector<const ReadSection*>& sections);

  const std::vector<ReadSection> sections_;
  const SectionIndex index_{sections_};
  Adviser adviser_;
  std::map<FileId, Reader> readers_;
  std::set<FileId> told_;        ///< What is wrong with what is declared of them.
  std::set<FileId> left_alone_;  ///< It was told why.
};

}  // namespace forebay
