#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "core/intercept/mpi/datatype_tree.hpp"
#include "core/intercept/mpi/open_file.hpp"
#include "core/intercept/mpi/traced_position.hpp"
#include "core/intercept/mpi/traced_view.hpp"

namespace forebay {

/// What a trace has to know of a handle while it is open.
struct TracedFile {
  /// `calls_overlap`: as TracedPosition has it.
  explicit TracedFile(bool calls_overlap) : position(calls_overlap) {}

  std::int64_t number = 0;  ///< Of the opening, in this process.
  std::shared_ptr<const DatatypeReader> datatypes;
  std::shared_ptr<OpenFile> own;  ///< Forebay's, if it has one.
  TracedPosition position;
  TracedView view;
};

/// The open handles, found without a lock. A handle beyond the places is not traced in detail.
class TracedFiles {
 public:
  void add(MPI_File handle, std::unique_ptr<TracedFile> file);
  /// Null for one that is not there.
  TracedFile* find(MPI_File handle) const;
  std::unique_ptr<TracedFile> remove(MPI_File handle);

 private:
  struct Place {
    std::atomic<MPI_File> handle{MPI_FILE_NULL};
    TracedFile* file = nullptr;
  };
  std::array<Place, 4096> places_;
  std::atomic<std::size_t> end_{0};  ///< No place from here on was ever taken.
};

TracedFiles& traced_files();

}  // namespace forebay
