// An MPI datatype that frees itself.
#pragma once

#include <mpi.h>

#include <utility>

namespace workload {

class Datatype {
 public:
  /// Takes over a type that a constructor call such as MPI_Type_vector made, and commits it.
  explicit Datatype(MPI_Datatype type) : type_(type) { MPI_Type_commit(&type_); }
  Datatype(Datatype&& other) noexcept : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)) {}
  Datatype& operator=(Datatype&& other) noexcept {
    std::swap(type_, other.type_);
    return *this;
  }
  Datatype(const Datatype&) = delete;
  Datatype& operator=(const Datatype&) = delete;
  ~Datatype() {
    if (type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
  }

  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_;
};

}  // namespace workload
