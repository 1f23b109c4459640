#include "core/intercept/mpi/datatype_tree.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include "core/intercept/mpi/type_contents.hpp"

namespace forebay {
namespace {

using Tree = tl::expected<StridedTree, int>;

Bytes extent_of(MPI_Datatype datatype) {
  MPI_Count lower = 0, extent = 0;
  PMPI_Type_get_extent_x(datatype, &lower, &extent);
  return extent;
}

Bytes size_of(MPI_Datatype datatype) {
  MPI_Count size = 0;
  PMPI_Type_size_x(datatype, &size);
  return size;
}

/// Predefined types have no holes but for the pairs of MINLOC and MAXLOC: MPI_SHORT_INT is a C
/// structure of a short and an int, 6 bytes of data in 8.
Tree tree_of_predefined(MPI_Datatype datatype) {
  const Bytes size = size_of(datatype);
  MPI_Count true_lower = 0, true_extent = 0;
  PMPI_Type_get_true_extent_x(datatype, &true_lower, &true_extent);
  if (size == true_extent || size == 0) return StridedTree::contiguous(size);
  if (datatype == MPI_SHORT_INT) {
    struct ShortInt {
      short value;
      int index;
    };
    const std::array<Bytes, 2> offsets = {0, offsetof(ShortInt, index)};
    const std::array<Bytes, 2> lengths = {sizeof(short), sizeof(int)};
    return StridedTree::indexed(offsets, lengths);
  }
  return tl::unexpected(MPI_ERR_UNSUPPORTED_OPERATION);
}

/// A datatype inside another: `block(n)` is n copies of it one behind the other.
struct Element {
  StridedTree tree;
  Bytes extent = 0;

  StridedTree block(std::int64_t n) const { return StridedTree::strided(n, extent, tree); }
  bool dense() const {
    return tree.size() == extent && tree.lower() == 0 && tree.dense() && tree.pieces() <= 1;
  }
};

/// Blocks of `lengths[i]` elements at `offsets[i]` bytes.
StridedTree tree_of_indexed(const Element& element, const std::vector<std::int64_t>& lengths,
                            const std::vector<Bytes>& offsets) {
  if (offsets.empty()) return {};
  if (std::all_of(lengths.begin(), lengths.end(),
                  [&](std::int64_t length) { return length == lengths.front(); })) {
    return StridedTree::indexed(offsets, element.block(lengths.front()));
  }
  if (element.dense()) {
    std::vector<Bytes> bytes(lengths);
    for (Bytes& length : bytes) length *= element.extent;
    return StridedTree::indexed(offsets, bytes);
  }
  std::vector<StridedTree::Placed> blocks;
  blocks.reserve(offsets.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    blocks.push_back({offsets[i], element.block(lengths[i])});
  }
  return StridedTree::sequence(blocks);
}

/// The dimensions of an array type in the order in which memory is contiguous, fastest first.
std::vector<std::size_t> fastest_first(std::size_t dimensions, std::int64_t order) {
  std::vector<std::size_t> result(dimensions);
  for (std::size_t d = 0; d < dimensions; ++d) {
    result[d] = order == MPI_ORDER_C ? dimensions - 1 - d : d;
  }
  return result;
}

StridedTree tree_of_subarray(TypeContents& contents, const Element& element) {
  const std::int64_t dimensions = contents.next_int();
  const auto sizes = contents.next_counts(dimensions);
  const auto subsizes = contents.next_counts(dimensions);
  const auto starts = contents.next_counts(dimensions);
  const std::int64_t order = contents.next_int();
  StridedTree tree = element.tree;
  Bytes stride = element.extent;
  for (const std::size_t d : fastest_first(sizes.size(), order)) {
    tree = StridedTree::strided(subsizes[d], stride, tree).shifted(starts[d] * stride);
    stride *= sizes[d];
  }
  return tree;
}

/// One dimension of a distributed array: the part of `size` elements that process `coordinate` of
/// `processes` has. MPI 4.0, section 5.1.4.
struct Distribution {
  std::int64_t kind = MPI_DISTRIBUTE_NONE;
  std::int64_t size = 0;
  std::int64_t argument = MPI_DISTRIBUTE_DFLT_DARG;
  std::int64_t processes = 1;
  std::int64_t coordinate = 0;

  /// The elements taken, each a `tree`, `stride` bytes apart in the global array.
  StridedTree of(const StridedTree& tree, Bytes stride) const {
    if (kind == MPI_DISTRIBUTE_NONE) return StridedTree::strided(size, stride, tree);
    std::int64_t block = argument;
    if (argument == MPI_DISTRIBUTE_DFLT_DARG) {
      block = kind == MPI_DISTRIBUTE_BLOCK ? (size + processes - 1) / processes : 1;
    }
    // BLOCK is CYCLIC of blocks so large that each process has at most one.
    const std::int64_t first = coordinate * block;
    const std::int64_t cycle = processes * block;
    const std::int64_t left = std::max<std::int64_t>(0, size - first);
    const std::int64_t whole_cycles = left / cycle;
    const std::int64_t last_cycle = left - whole_cycles * cycle;
    const std::int64_t whole_blocks = whole_cycles + (last_cycle >= block ? 1 : 0);
    const std::int64_t partial = last_cycle >= block ? 0 : last_cycle;
    const StridedTree one_block = StridedTree::strided(block, stride, tree);
    const std::array<StridedTree::Placed, 2> parts = {{
        {first * stride, StridedTree::strided(whole_blocks, cycle * stride, one_block)},
        {(first + whole_blocks * cycle) * stride, StridedTree::strided(partial, stride, tree)},
    }};
    return StridedTree::sequence(parts);
  }
};

StridedTree tree_of_darray(TypeContents& contents, const Element& element) {
  contents.next_int();  // The number of processes: the product of the grid below.
  std::int64_t rank = contents.next_int();
  const std::int64_t dimensions = contents.next_int();
  const auto sizes = contents.next_counts(dimensions);
  const auto kinds = contents.next_ints(dimensions);
  const auto arguments = contents.next_ints(dimensions);
  const auto processes = contents.next_ints(dimensions);
  const std::int64_t order = contents.next_int();
  std::vector<Distribution> distributions(sizes.size());
  // The process grid is always in row-major order, whatever the order of the array.
  for (std::size_t d = sizes.size(); d-- > 0;) {
    distributions[d] = {kinds[d], sizes[d], arguments[d], processes[d], rank % processes[d]};
    rank /= processes[d];
  }
  StridedTree tree = element.tree;
  Bytes stride = element.extent;
  for (const std::size_t d : fastest_first(sizes.size(), order)) {
    tree = distributions[d].of(tree, stride);
    stride *= sizes[d];
  }
  return tree;
}

Tree tree_of(MPI_Datatype datatype);

Tree tree_of_struct(TypeContents& contents) {
  const std::int64_t count = contents.next_count();
  const auto lengths = contents.next_counts(count);
  const auto offsets = contents.next_addresses(count);
  std::vector<StridedTree::Placed> members;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const MPI_Datatype type = contents.types()[i];
    // MPI-1 programs mark bounds by members of the pseudo types LB and UB, which have no data.
    if (lengths[i] == 0 || size_of(type) == 0) continue;
    const Tree inner = tree_of(type);
    if (!inner) return inner;
    members.push_back({offsets[i], Element{*inner, extent_of(type)}.block(lengths[i])});
  }
  return StridedTree::sequence(members);
}

/// Everything that is made from one inner type.
Tree tree_of_derived(TypeContents& contents) {
  const MPI_Datatype inner_type = contents.types().front();
  const Tree inner = tree_of(inner_type);
  if (!inner) return inner;
  const Element element{*inner, extent_of(inner_type)};
  switch (contents.combiner()) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      return element.tree;
    case MPI_COMBINER_CONTIGUOUS:
      return element.block(contents.next_count());
    case MPI_COMBINER_VECTOR: {
      const auto arguments = contents.next_counts(3);
      return StridedTree::strided(arguments[0], arguments[2] * element.extent,
                                  element.block(arguments[1]));
    }
    case MPI_COMBINER_HVECTOR: {
      const auto arguments = contents.next_counts(2);
      const Bytes stride = contents.next_address();
      return StridedTree::strided(arguments[0], stride, element.block(arguments[1]));
    }
    case MPI_COMBINER_INDEXED: {
      const std::int64_t count = contents.next_count();
      const auto lengths = contents.next_counts(count);
      auto offsets = contents.next_counts(count);
      for (Bytes& offset : offsets) offset *= element.extent;
      return tree_of_indexed(element, lengths, offsets);
    }
    case MPI_COMBINER_HINDEXED: {
      const std::int64_t count = contents.next_count();
      const auto lengths = contents.next_counts(count);
      return tree_of_indexed(element, lengths, contents.next_addresses(count));
    }
    case MPI_COMBINER_INDEXED_BLOCK: {
      const std::int64_t count = contents.next_count();
      const std::int64_t length = contents.next_count();
      auto offsets = contents.next_counts(count);
      for (Bytes& offset : offsets) offset *= element.extent;
      return StridedTree::indexed(offsets, element.block(length));
    }
    case MPI_COMBINER_HINDEXED_BLOCK: {
      const std::int64_t count = contents.next_count();
      const std::int64_t length = contents.next_count();
      return StridedTree::indexed(contents.next_addresses(count), element.block(length));
    }
    case MPI_COMBINER_SUBARRAY:
      return tree_of_subarray(contents, element);
    case MPI_COMBINER_DARRAY:
      return tree_of_darray(contents, element);
    default:
      return tl::unexpected(MPI_ERR_UNSUPPORTED_OPERATION);
  }
}

/// A tree can say where the bytes of `datatype` lie. No memory and no file has others.
bool within_reach(MPI_Datatype datatype) {
  constexpr MPI_Count reach = MPI_Count{1} << 62;
  const Bytes size = size_of(datatype);
  if (size == 0) return true;  // Then there are no bounds.
  MPI_Count lower = 0, extent = 0;
  PMPI_Type_get_true_extent_x(datatype, &lower, &extent);
  // An MPI whose own count went over gives a negative one.
  return size > 0 && size <= reach && extent > 0 && extent <= reach && lower >= -reach &&
         lower <= reach - extent;
}

Tree tree_of(MPI_Datatype datatype) {
  if (!within_reach(datatype)) return tl::unexpected(MPI_ERR_ARG);
  TypeContents contents(datatype);
  switch (contents.combiner()) {
    case MPI_COMBINER_NAMED:
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER:
      return tree_of_predefined(datatype);
    case MPI_COMBINER_STRUCT:
      return tree_of_struct(contents);
    default:
      // An inner type without data may have no tree at all (a pseudo type): none is needed.
      return size_of(datatype) == 0 ? Tree(StridedTree()) : tree_of_derived(contents);
  }
}

using SharedFlatType = std::shared_ptr<const FlatType>;

int delete_attribute(MPI_Datatype, int, void* attribute, void*) {
  delete static_cast<SharedFlatType*>(attribute);
  return MPI_SUCCESS;
}

int make_keyval() {
  int keyval = MPI_KEYVAL_INVALID;
  PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_attribute, &keyval, nullptr);
  return keyval;
}

}  // namespace

DatatypeReader::DatatypeReader() {
  // A split and not a duplicate: that would run the program's attribute copy functions.
  PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &probe_);
  PMPI_Comm_set_errhandler(probe_, MPI_ERRORS_RETURN);
}

DatatypeReader::~DatatypeReader() { PMPI_Comm_free(&probe_); }

int DatatypeReader::check_committed(MPI_Datatype datatype) const {
  char nothing = 0;
  int position = 0;
  return PMPI_Pack(&nothing, 0, datatype, &nothing, sizeof nothing, &position, probe_);
}

tl::expected<std::shared_ptr<const FlatType>, int> DatatypeReader::read(
    MPI_Datatype datatype) const {
  if (datatype == MPI_DATATYPE_NULL) return tl::unexpected(MPI_ERR_TYPE);
  static const int keyval = make_keyval();
  // Held from the look to the store: storing twice would free what the first caller was handed.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  void* attribute = nullptr;
  int present = 0;
  PMPI_Type_get_attr(datatype, keyval, &attribute, &present);
  if (present != 0) return *static_cast<SharedFlatType*>(attribute);

  if (const int code = check_committed(datatype); code != MPI_SUCCESS) return tl::unexpected(code);
  const Tree tree = tree_of(datatype);
  if (!tree) return tl::unexpected(tree.error());
  // What the MPI says of a type and what we read from it must be one thing.
  if (tree->size() != size_of(datatype)) return tl::unexpected(MPI_ERR_INTERN);
  auto flat = std::make_shared<const FlatType>(FlatType{*tree, extent_of(datatype)});
  auto stored = std::make_unique<SharedFlatType>(flat);
  if (PMPI_Type_set_attr(datatype, keyval, stored.get()) == MPI_SUCCESS) (void)stored.release();
  return flat;
}

}  // namespace forebay
