#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "core/intercept/mpi/file_view.hpp"
#include "core/model/strided_tree.hpp"

namespace forebay {

/// The view of a traced opening: finds first bytes. Changed by collective calls alone, which a
/// program must not overlap with others on the file.
class TracedView {
 public:
  /// None: it has no tree.
  void set(std::optional<FileView> view);

  /// Of one etype; 0: not known.
  Bytes etype_size() const { return is_known_ ? view_.etype_size() : 0; }

  /// The first byte of the file that lies at `position`, in etypes; -1: not known. By any thread.
  std::int64_t byte_offset(std::int64_t position);

 private:
  std::int64_t sought(Bytes data);

  FileView view_;
  bool is_known_ = true;
  bool is_dense_ = true;  ///< Without holes, from `begin_` on.
  Bytes begin_ = 0;
  std::mutex mutex_;
  std::optional<TreeCursor> cursor_;  ///< Kept: making one takes memory from the heap.
};

}  // namespace forebay
