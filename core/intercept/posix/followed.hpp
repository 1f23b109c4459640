#pragma once

#include <memory>
#include <string>

#include "core/engine/prefetch/adviser.hpp"
#include "core/engine/prefetch/prefetched_file.hpp"
#include "core/model/extent.hpp"
#include "core/model/read_trace.hpp"

namespace forebay::posix {

/// What becomes of the reads of an open file description.
struct Followed {
  std::shared_ptr<PrefetchedFile> file = nullptr;  ///< It is read ahead.
  std::shared_ptr<AdvisedFile> advised = nullptr;  ///< They are told to the kernel ahead of them.
  std::shared_ptr<ReadTrace> trace = nullptr;      ///< They are written down.
  std::string path = {};                           ///< Of what is written down; absolute.
  Bytes size = 0;                                  ///< Of it, when it was opened.
};

/// When it has ended. What is told to the kernel ends with it.
void write_record(const Followed& followed);

}  // namespace forebay::posix
