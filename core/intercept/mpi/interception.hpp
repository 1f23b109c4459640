#pragma once

#include <chrono>
#include <memory>
#include <new>
#include <utility>

#include "core/intercept/mpi/call_times.hpp"
#include "core/intercept/mpi/kernel_io.hpp"
#include "core/intercept/mpi/open_file.hpp"

namespace forebay {

/// How deep this thread is in wrappers. Inside one, an MPI_File call comes from the MPI library's
/// own implementation or from ours, and goes straight to the MPI.
inline thread_local int interception_depth = 0;

class Inside {
 public:
  Inside() { ++interception_depth; }
  ~Inside() { --interception_depth; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

/// While it lives, calls count as the program's again.
class Outermost {
 public:
  Outermost() : depth_(std::exchange(interception_depth, 0)) {}
  ~Outermost() { interception_depth = depth_; }
  Outermost(const Outermost&) = delete;
  Outermost& operator=(const Outermost&) = delete;

 private:
  int depth_;
};

/// Times one call and, if asked for, samples the kernel's I/O counters around it.
class MeasuredCall {
 public:
  MeasuredCall(FileRecord& record, CallClass call_class)
      : record_(record),
        call_class_(call_class),
        sampled_(settings().count_storage && call_class != CallClass::other) {
    if (sampled_) sample_.start();
    start_ = std::chrono::steady_clock::now();
  }
  ~MeasuredCall() {
    record_.times.add(call_class_, std::chrono::steady_clock::now() - start_);
    if (sampled_) record_.add_storage(sample_.stop());
  }
  MeasuredCall(const MeasuredCall&) = delete;
  MeasuredCall& operator=(const MeasuredCall&) = delete;

 private:
  FileRecord& record_;
  CallClass call_class_;
  bool sampled_;
  KernelIoSample sample_;
  std::chrono::steady_clock::time_point start_;
};

/// Runs `own`, which returns an MPI error code, with exceptions translated at this edge.
template <typename Own>
int carry_out_own(OpenFile& file, Own&& own) noexcept {
  try {
    return own(file);
  } catch (const std::bad_alloc&) {
    return file.raise(MPI_ERR_NO_MEM);
  } catch (...) {
    return file.raise(MPI_ERR_INTERN);
  }
}

/// The way of every call on a handle that Forebay does not carry out: measured, then the MPI's own.
template <typename Real>
auto intercept(MPI_File handle, CallClass call_class, Real&& call_real) noexcept {
  if (interception_depth > 0) return call_real();
  const Inside inside;
  const auto file = open_files().find(handle);
  if (file == nullptr) return call_real();
  const MeasuredCall measured(file->record, call_class);
  return call_real();
}

/// Whether a wrapper's own code also sees files that have a shadow but pass through for now,
/// because of their view.
enum class Passing { to_mpi, to_own };

/// The way of a call that Forebay carries out by `own` unless the file passes through.
template <Passing passing, typename Real, typename Own>
int intercept(MPI_File handle, CallClass call_class, Real&& call_real, Own&& own) noexcept {
  if (interception_depth > 0) return call_real();
  const Inside inside;
  const auto file = open_files().find(handle);
  if (file == nullptr) return call_real();
  const MeasuredCall measured(file->record, call_class);
  if (file->shadow == nullptr) {
    if (!file->pass_reason.empty()) file->record.count_passed_through(file->pass_reason);
    return call_real();
  }
  if (passing == Passing::to_mpi && file->shadow->passes_through()) {
    file->record.count_passed_through(file->shadow->pass_reason);
    return call_real();
  }
  return carry_out_own(*file, std::forward<Own>(own));
}

}  // namespace forebay
