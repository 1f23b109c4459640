#include "tests/mpi/random_access/type_model.hpp"

#include <algorithm>
#include <numeric>
#include <sstream>
#include <utility>

namespace random_access {
namespace {

template <typename T>
std::string list(const std::vector<T>& values) {
  std::ostringstream out;
  for (std::size_t i = 0; i < values.size(); ++i) out << (i == 0 ? "[" : ",") << values[i];
  out << (values.empty() ? "[]" : "]");
  return out.str();
}

std::vector<int> ints(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

std::vector<MPI_Aint> addresses(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

/// Collects the typemap of a type from copies of others at displacements.
class Placing {
 public:
  void copy(const TypeModel& inner, std::int64_t displacement) {
    for (const std::int64_t byte : inner.bytes) result_.bytes.push_back(byte + displacement);
    result_.elements.insert(result_.elements.end(), inner.elements.begin(), inner.elements.end());
    result_.uncountable |= inner.uncountable || inner.bytes.empty();
    const std::int64_t lower = inner.lower + displacement;
    const std::int64_t upper = inner.upper + displacement;
    result_.lower = empty_ ? lower : std::min(result_.lower, lower);
    result_.upper = empty_ ? upper : std::max(result_.upper, upper);
    empty_ = false;
  }
  void block(const TypeModel& inner, std::int64_t length, std::int64_t displacement) {
    result_.uncountable |= length == 0;
    for (std::int64_t i = 0; i < length; ++i) copy(inner, displacement + i * inner.extent());
  }
  void leave_uncounted() { result_.uncountable = true; }
  TypeModel done(std::string text, std::function<MPI_Datatype()> make) {
    result_.text = std::move(text);
    result_.make = std::move(make);
    return std::move(result_);
  }

 private:
  TypeModel result_;
  bool empty_ = true;
};

/// A recipe that builds the inner type, hands it to `outer`, and frees it.
template <typename Outer>
std::function<MPI_Datatype()> around(const TypeModel& inner, Outer outer) {
  return [make_inner = inner.make, outer] {
    MPI_Datatype old_type = make_inner();
    MPI_Datatype new_type = MPI_DATATYPE_NULL;
    outer(old_type, &new_type);
    MPI_Type_free(&old_type);
    return new_type;
  };
}

std::string call(const char* name, const std::string& arguments, const TypeModel& inner) {
  return std::string(name) + "(" + arguments + " " + inner.text + ")";
}

/// Visits the indices of an array in the order in which they lie in memory.
template <typename Visit>
void for_each_index(const std::vector<int>& sizes, int order, Visit&& visit) {
  const std::size_t dimensions = sizes.size();
  std::int64_t total = 1;
  for (const int size : sizes) total *= size;
  std::vector<int> index(dimensions);
  for (std::int64_t linear = 0; linear < total; ++linear) {
    std::int64_t rest = linear;
    for (std::size_t i = 0; i < dimensions; ++i) {
      const std::size_t d = order == MPI_ORDER_C ? dimensions - 1 - i : i;
      index[d] = static_cast<int>(rest % sizes[d]);
      rest /= sizes[d];
    }
    visit(index, linear);
  }
}

}  // namespace

std::int64_t TypeModel::first_byte() const {
  return bytes.empty() ? 0 : *std::min_element(bytes.begin(), bytes.end());
}

std::int64_t TypeModel::first_byte(std::int64_t count) const {
  if (bytes.empty() || count == 0) return 0;
  return first_byte() + std::min<std::int64_t>(0, (count - 1) * extent());
}

std::int64_t TypeModel::end_byte(std::int64_t count) const {
  if (bytes.empty() || count == 0) return 0;
  return *std::max_element(bytes.begin(), bytes.end()) + 1 +
         std::max<std::int64_t>(0, (count - 1) * extent());
}

bool TypeModel::distinct(std::int64_t count) const {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < count * size(); ++i) all.push_back(displacement(i));
  std::sort(all.begin(), all.end());
  return std::adjacent_find(all.begin(), all.end()) == all.end();
}

bool TypeModel::ascending() const {
  if (bytes.empty()) return true;
  return bytes.front() >= 0 && extent() > 0 &&
         std::adjacent_find(bytes.begin(), bytes.end(), std::greater_equal<>()) == bytes.end() &&
         bytes.back() < bytes.front() + extent();
}

TypeModel basic(const Basic& which) {
  TypeModel result;
  result.bytes.resize(static_cast<std::size_t>(which.size));
  std::iota(result.bytes.begin(), result.bytes.end(), 0);
  result.elements = {which.size};
  result.upper = which.size;
  result.text = which.name;
  // A duplicate, so that every recipe gives a handle to be freed.
  result.make = [type = which.type] {
    MPI_Datatype copy = MPI_DATATYPE_NULL;
    MPI_Type_dup(type, &copy);
    return copy;
  };
  return result;
}

TypeModel short_int() {
  TypeModel result = basic({MPI_SHORT_INT, "short_int", 8});
  result.bytes = {0, 1, 4, 5, 6, 7};
  result.elements = {2, 4};
  result.uncountable = true;
  return result;
}

TypeModel dup(const TypeModel& inner) {
  TypeModel result = inner;
  result.uncountable = true;
  result.text = "dup(" + inner.text + ")";
  result.make =
      around(inner, [](MPI_Datatype type, MPI_Datatype* out) { MPI_Type_dup(type, out); });
  return result;
}

TypeModel contiguous(std::int64_t count, const TypeModel& inner) {
  Placing placing;
  placing.block(inner, count, 0);
  return placing.done(
      call("contiguous", std::to_string(count), inner),
      around(inner, [n = static_cast<int>(count)](MPI_Datatype type, MPI_Datatype* out) {
        MPI_Type_contiguous(n, type, out);
      }));
}

TypeModel vector(std::int64_t count, std::int64_t length, std::int64_t stride,
                 const TypeModel& inner) {
  Placing placing;
  for (std::int64_t i = 0; i < count; ++i) {
    placing.block(inner, length, i * stride * inner.extent());
  }
  const std::vector<int> n = ints({count, length, stride});
  return placing.done(call("vector", list(n), inner),
                      around(inner, [n](MPI_Datatype type, MPI_Datatype* out) {
                        MPI_Type_vector(n[0], n[1], n[2], type, out);
                      }));
}

TypeModel hvector(std::int64_t count, std::int64_t length, std::int64_t stride,
                  const TypeModel& inner) {
  Placing placing;
  for (std::int64_t i = 0; i < count; ++i) placing.block(inner, length, i * stride);
  const std::vector<int> n = ints({count, length, stride});
  return placing.done(call("hvector", list(n), inner),
                      around(inner, [n](MPI_Datatype type, MPI_Datatype* out) {
                        MPI_Type_create_hvector(n[0], n[1], n[2], type, out);
                      }));
}

TypeModel indexed(const std::vector<std::int64_t>& lengths,
                  const std::vector<std::int64_t>& offsets, const TypeModel& inner) {
  Placing placing;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    placing.block(inner, lengths[i], offsets[i] * inner.extent());
  }
  return placing.done(
      call("indexed", list(lengths) + list(offsets), inner),
      around(inner, [n = ints(lengths), at = ints(offsets)](MPI_Datatype type, MPI_Datatype* out) {
        MPI_Type_indexed(static_cast<int>(n.size()), n.data(), at.data(), type, out);
      }));
}

TypeModel indexed_block(std::int64_t length, const std::vector<std::int64_t>& offsets,
                        const TypeModel& inner) {
  Placing placing;
  for (const std::int64_t offset : offsets) {
    placing.block(inner, length, offset * inner.extent());
  }
  return placing.done(call("indexed_block", std::to_string(length) + list(offsets), inner),
                      around(inner, [n = static_cast<int>(length), at = ints(offsets)](
                                        MPI_Datatype type, MPI_Datatype* out) {
                        MPI_Type_create_indexed_block(static_cast<int>(at.size()), n, at.data(),
                                                      type, out);
                      }));
}

TypeModel hindexed(const std::vector<std::int64_t>& lengths,
                   const std::vector<std::int64_t>& offsets, const TypeModel& inner) {
  Placing placing;
  for (std::size_t i = 0; i < offsets.size(); ++i) placing.block(inner, lengths[i], offsets[i]);
  return placing.done(
      call("hindexed", list(lengths) + list(offsets), inner),
      around(inner,
             [n = ints(lengths), at = addresses(offsets)](MPI_Datatype type, MPI_Datatype* out) {
               MPI_Type_create_hindexed(static_cast<int>(n.size()), n.data(), at.data(), type, out);
             }));
}

TypeModel hindexed_block(std::int64_t length, const std::vector<std::int64_t>& offsets,
                         const TypeModel& inner) {
  Placing placing;
  for (const std::int64_t offset : offsets) placing.block(inner, length, offset);
  placing.leave_uncounted();
  return placing.done(call("hindexed_block", std::to_string(length) + list(offsets), inner),
                      around(inner, [n = static_cast<int>(length), at = addresses(offsets)](
                                        MPI_Datatype type, MPI_Datatype* out) {
                        MPI_Type_create_hindexed_block(static_cast<int>(at.size()), n, at.data(),
                                                       type, out);
                      }));
}

TypeModel structure(const std::vector<std::int64_t>& lengths,
                    const std::vector<std::int64_t>& offsets, const std::vector<TypeModel>& inner,
                    std::int64_t lower, std::int64_t extent) {
  Placing placing;
  std::string members;
  std::vector<std::function<MPI_Datatype()>> makers;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    placing.block(inner[i], lengths[i], offsets[i]);
    members += " " + inner[i].text;
    makers.push_back(inner[i].make);
  }
  const auto make = [makers, n = ints(lengths), at = addresses(offsets)] {
    std::vector<MPI_Datatype> types;
    for (const auto& maker : makers) types.push_back(maker());
    MPI_Datatype result = MPI_DATATYPE_NULL;
    MPI_Type_create_struct(static_cast<int>(n.size()), n.data(), at.data(), types.data(), &result);
    for (MPI_Datatype& type : types) MPI_Type_free(&type);
    return result;
  };
  placing.leave_uncounted();
  return resized(lower, extent,
                 placing.done("struct(" + list(lengths) + list(offsets) + members + ")", make));
}

TypeModel resized(std::int64_t lower, std::int64_t extent, const TypeModel& inner) {
  TypeModel result = inner;
  result.lower = lower;
  result.upper = lower + extent;
  result.text = call("resized", std::to_string(lower) + "," + std::to_string(extent), inner);
  result.make = around(inner, [lower, extent](MPI_Datatype type, MPI_Datatype* out) {
    MPI_Type_create_resized(type, lower, extent, out);
  });
  return result;
}

TypeModel subarray(const ArrayPart& part, const TypeModel& inner) {
  Placing placing;
  std::int64_t total = 1;
  for (const int size : part.sizes) total *= size;
  for_each_index(part.sizes, part.order, [&](const std::vector<int>& index, std::int64_t linear) {
    bool inside = true;
    for (std::size_t d = 0; d < index.size(); ++d) {
      inside &= index[d] >= part.starts[d] && index[d] < part.starts[d] + part.subsizes[d];
    }
    if (inside) placing.copy(inner, linear * inner.extent());
  });
  placing.leave_uncounted();
  TypeModel result = placing.done(
      call(part.order == MPI_ORDER_C ? "subarray_c" : "subarray_fortran",
           list(part.sizes) + list(part.subsizes) + list(part.starts), inner),
      around(inner, [part](MPI_Datatype type, MPI_Datatype* out) {
        MPI_Type_create_subarray(static_cast<int>(part.sizes.size()), part.sizes.data(),
                                 part.subsizes.data(), part.starts.data(), part.order, type, out);
      }));
  result.lower = 0;
  result.upper = total * inner.extent();
  return result;
}

TypeModel darray(const ArrayDistribution& given, const TypeModel& inner) {
  const std::size_t dimensions = given.sizes.size();
  // The grid of processes is in row-major order, whatever the order of the array.
  std::vector<int> coordinates(dimensions), blocks(dimensions);
  int rest = given.rank;
  int grid = 1;
  for (std::size_t d = dimensions; d-- > 0;) {
    coordinates[d] = rest % given.processes[d];
    rest /= given.processes[d];
    grid *= given.processes[d];
    blocks[d] = given.arguments[d];
    if (given.kinds[d] == MPI_DISTRIBUTE_NONE) blocks[d] = given.sizes[d];
    if (given.kinds[d] != MPI_DISTRIBUTE_NONE && blocks[d] == MPI_DISTRIBUTE_DFLT_DARG) {
      blocks[d] = given.kinds[d] == MPI_DISTRIBUTE_CYCLIC
                      ? 1
                      : (given.sizes[d] + given.processes[d] - 1) / given.processes[d];
    }
  }
  Placing placing;
  std::int64_t total = 1;
  for (const int size : given.sizes) total *= size;
  for_each_index(given.sizes, given.order, [&](const std::vector<int>& index, std::int64_t linear) {
    bool mine = true;
    for (std::size_t d = 0; d < dimensions; ++d) {
      mine &= index[d] / blocks[d] % given.processes[d] == coordinates[d];
    }
    if (mine) placing.copy(inner, linear * inner.extent());
  });
  const auto text = std::to_string(given.rank) + list(given.sizes) + list(given.kinds) +
                    list(given.arguments) + list(given.processes);
  placing.leave_uncounted();
  TypeModel result = placing.done(
      call(given.order == MPI_ORDER_C ? "darray_c" : "darray_fortran", text, inner),
      around(inner, [given, grid](MPI_Datatype type, MPI_Datatype* out) {
        MPI_Type_create_darray(grid, given.rank, static_cast<int>(given.sizes.size()),
                               given.sizes.data(), given.kinds.data(), given.arguments.data(),
                               given.processes.data(), given.order, type, out);
      }));
  result.lower = 0;
  result.upper = total * inner.extent();
  return result;
}

}  // namespace random_access
