#include "core/intercept/mpi/open_file.hpp"

#include <mutex>
#include <utility>

#include "core/intercept/mpi/error_class.hpp"
#include "core/intercept/mpi/interception.hpp"
#include "core/intercept/mpi/real_mpi.hpp"

namespace forebay {

int OpenFile::code_of(const Error& error) {
  record.count_failure(to_string(error));
  return error_class(error.kind);
}

int OpenFile::raise(int code) const {
  if (code == MPI_SUCCESS) return code;
  // The handler is the program's: MPI_File calls that it makes are the program's too.
  const Outermost as_the_program;
  real().call_errhandler(handle, code);
  return code;
}

void OpenFiles::add(std::shared_ptr<OpenFile> file) {
  const std::unique_lock lock(mutex_);
  const MPI_File handle = file->handle;
  files_.insert_or_assign(handle, std::move(file));
  count_.store(files_.size(), std::memory_order_release);
}

std::shared_ptr<OpenFile> OpenFiles::find(MPI_File handle) const {
  if (count_.load(std::memory_order_acquire) == 0) return nullptr;
  const std::shared_lock lock(mutex_);
  const auto found = files_.find(handle);
  return found == files_.end() ? nullptr : found->second;
}

std::shared_ptr<OpenFile> OpenFiles::remove(MPI_File handle) {
  const std::unique_lock lock(mutex_);
  auto node = files_.extract(handle);
  count_.store(files_.size(), std::memory_order_release);
  return node.empty() ? nullptr : std::move(node.mapped());
}

std::vector<std::shared_ptr<OpenFile>> OpenFiles::all() const {
  const std::shared_lock lock(mutex_);
  std::vector<std::shared_ptr<OpenFile>> files;
  files.reserve(files_.size());
  for (const auto& [handle, file] : files_) files.push_back(file);
  return files;
}

OpenFiles& open_files() {
  // Never destroyed: a program may close files in exit handlers.
  static OpenFiles& instance = *new OpenFiles;
  return instance;
}

}  // namespace forebay
