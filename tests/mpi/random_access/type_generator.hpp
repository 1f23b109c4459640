#pragma once

#include <cstdint>
#include <vector>

#include "tests/mpi/random_access/random.hpp"
#include "tests/mpi/random_access/type_model.hpp"

namespace random_access {

/// Any datatype a buffer may have: nested to `depth`, negative strides and lower bounds, zero
/// counts. `distinct`: no byte twice, as MPI demands of what is read into.
TypeModel memory_type(Random& random, int depth, bool distinct);

/// A datatype as programs have: contiguous, or one layer of ascending blocks.
TypeModel mild_memory_type(Random& random);

/// One rank's part of a MPI_File_set_view.
struct ViewModel {
  std::int64_t displacement = 0;
  TypeModel etype;
  TypeModel filetype;

  /// Where byte `position` of the view's data is in the file.
  std::int64_t offset(std::int64_t position) const {
    return displacement + filetype.displacement(position);
  }
  /// Data bytes of the view that lie before byte `end` of the file.
  std::int64_t data_before(std::int64_t end) const;
};

struct Views {
  std::vector<ViewModel> of_rank;
  bool uniform = true;  ///< The same on all ranks: shared pointers may be used.
};

/// A set of views for `ranks` ranks: the same for all, interleaved so that ranks do not overlap,
/// the blocks of an array, or each as it likes.
Views random_views(Random& random, int ranks);
Views byte_views(int ranks);

}  // namespace random_access
