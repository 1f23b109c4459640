#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "core/engine/collective/collective_file.hpp"
#include "core/intercept/mpi/datatype_tree.hpp"
#include "core/intercept/mpi/file_view.hpp"
#include "core/intercept/mpi/shared_pointer.hpp"
#include "core/model/hints.hpp"

namespace forebay {

/// What a data call did: the bytes moved, and an MPI error code.
struct Outcome {
  int code = MPI_SUCCESS;
  Bytes moved = 0;
};

/// The three pairs of split collective calls, for reads and writes: a begin must meet its own end.
enum class SplitKind {
  read_all,
  read_at_all,
  read_ordered,
  write_all,
  write_at_all,
  write_ordered
};

/// A split collective call between its begin and its end. The transfer happened in begin.
struct SplitCall {
  SplitKind kind;
  const void* buffer;
  Outcome outcome;
};

/// Forebay's side of a file whose data calls it carries out itself. The real file stays open beside
/// it, keeps its default byte view, and moves no data; view and file pointers of the program live
/// here.
struct ShadowFile {
  ShadowFile(std::unique_ptr<CollectiveFile> engine_file,
             std::shared_ptr<const DatatypeReader> datatype_reader, Hints declared,
             std::string shared_pointer_path, std::string shared_pointer_in_memory,
             Bytes initial_position)
      : engine(std::move(engine_file)),
        datatypes(std::move(datatype_reader)),
        hints(std::move(declared)),
        position(initial_position),
        shared_pointer(std::move(shared_pointer_path), std::move(shared_pointer_in_memory),
                       initial_position) {}

  const std::unique_ptr<CollectiveFile> engine;
  const std::shared_ptr<const DatatypeReader> datatypes;
  Hints hints;  ///< As declared, before Forebay chose what was left open.

  // Changed by collective calls alone, which a program must not overlap with others on this file.
  FileView view;
  std::string_view pass_reason;  ///< Not empty: the present view is left to the MPI. Agreed by all.
  std::optional<SplitCall> split;

  std::mutex position_mutex;
  Bytes position;  ///< The individual file pointer, in data bytes of the view.
  SharedPointer shared_pointer;

  bool passes_through() const { return !pass_reason.empty(); }
};

}  // namespace forebay
