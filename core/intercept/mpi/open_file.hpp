#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/engine/collective/exchange.hpp"
#include "core/engine/collective/file_handles.hpp"
#include "core/intercept/mpi/file_record.hpp"
#include "core/intercept/mpi/shadow_file.hpp"
#include "core/model/error.hpp"

namespace forebay {

/// One handle of the program's: the real one, what is remembered for the report, and, if Forebay
/// carries out its data calls, the shadow.
struct OpenFile {
  MPI_File handle = MPI_FILE_NULL;
  std::shared_ptr<Exchange> exchange;
  FileRecord record;
  bool reporting = false;  ///< The same on all ranks: a record is written at close.
  /// What the kernel tells the file apart by, where it is known.
  std::optional<FileId> id;
  /// Without links; known once it was closed early.
  std::string real_path;
  /// Among this process's handles of the file; where its id is known.
  std::optional<FileHandles::Handle> listed;

  /// Null in mode observe and for a file that passes through from open to close.
  std::unique_ptr<ShadowFile> shadow;
  /// Why a file without shadow passes through; empty in mode observe.
  std::string pass_reason;

  /// The MPI error class of an error of Forebay's, whose words go into the report.
  int code_of(const Error& error);

  /// Calls the program's error handler for this handle, which may not return. Returns `code`, so
  /// that `return file.raise(code)` reads well; success is returned untouched.
  int raise(int code) const;
};

/// The handles that are open, by their real value. Thread-safe.
class OpenFiles {
 public:
  void add(std::shared_ptr<OpenFile> file);
  /// Null for a handle that is not ours.
  std::shared_ptr<OpenFile> find(MPI_File handle) const;
  std::shared_ptr<OpenFile> remove(MPI_File handle);
  std::vector<std::shared_ptr<OpenFile>> all() const;

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<MPI_File, std::shared_ptr<OpenFile>> files_;
  std::atomic<std::size_t> count_{0};  ///< Of files_: where Forebay stays out nobody takes a lock.
};

OpenFiles& open_files();

}  // namespace forebay
