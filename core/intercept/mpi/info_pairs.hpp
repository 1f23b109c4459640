#pragma once

#include <mpi.h>

#include "core/model/hints.hpp"

namespace forebay {

/// Every key and value of `info`; none for MPI_INFO_NULL.
HintPairs pairs_of(MPI_Info info);

/// An MPI_Info for the MPI of those `pairs` that are harmless there. Hints that are not understood,
/// or that an MPI's int cannot hold, make it divide by zero or stop the job for want of memory:
/// Forebay tells of them, and they have no effect.
class HarmlessInfo {
 public:
  explicit HarmlessInfo(const HintPairs& pairs);
  ~HarmlessInfo();
  HarmlessInfo(const HarmlessInfo&) = delete;
  HarmlessInfo& operator=(const HarmlessInfo&) = delete;

  MPI_Info get() const { return info_; }

 private:
  MPI_Info info_ = MPI_INFO_NULL;
};

}  // namespace forebay
