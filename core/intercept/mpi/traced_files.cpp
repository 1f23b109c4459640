#include "core/intercept/mpi/traced_files.hpp"

#include <mutex>

namespace forebay {
namespace {

std::mutex taking;

}  // namespace

void TracedFiles::add(MPI_File handle, std::unique_ptr<TracedFile> file) {
  const std::lock_guard lock(taking);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].handle.load(std::memory_order_relaxed) != MPI_FILE_NULL) continue;
    places_[i].file = file.release();
    places_[i].handle.store(handle, std::memory_order_release);
    if (i >= end_.load(std::memory_order_relaxed)) end_.store(i + 1, std::memory_order_release);
    return;
  }
}

TracedFile* TracedFiles::find(MPI_File handle) const {
  const std::size_t end = end_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < end && handle != MPI_FILE_NULL; ++i) {
    if (places_[i].handle.load(std::memory_order_acquire) == handle) return places_[i].file;
  }
  return nullptr;
}

std::unique_ptr<TracedFile> TracedFiles::remove(MPI_File handle) {
  const std::lock_guard lock(taking);
  const std::size_t end = end_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < end && handle != MPI_FILE_NULL; ++i) {
    if (places_[i].handle.load(std::memory_order_relaxed) != handle) continue;
    std::unique_ptr<TracedFile> file(places_[i].file);
    places_[i].file = nullptr;
    places_[i].handle.store(MPI_FILE_NULL, std::memory_order_release);
    return file;
  }
  return nullptr;
}

TracedFiles& traced_files() {
  // Never destroyed: MPI calls may come from the exit handlers of other libraries.
  static TracedFiles& instance = *new TracedFiles;
  return instance;
}

}  // namespace forebay
