#include "core/intercept/mpi/traced_type.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#define XXH_INLINE_ALL  // No library more in every process.
#include <xxhash.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "core/intercept/mpi/datatype_tree.hpp"
#include "core/intercept/mpi/open_close.hpp"
#include "core/intercept/mpi/tracing.hpp"
#include "core/intercept/mpi/type_contents.hpp"
#include "core/model/strided_tree.hpp"
#include "core/model/trace_event.hpp"

namespace forebay {
namespace {

/// What is kept of a datatype while it lives.
struct KnownType {
  std::uint64_t key = 0;
  MpiType shape;
  std::string words;  ///< Combiner and shape, each with a zero byte at its end.
};

const char* combiner_name(int combiner) {
  switch (combiner) {
    case MPI_COMBINER_DUP:
      return "dup";
    case MPI_COMBINER_CONTIGUOUS:
      return "contiguous";
    case MPI_COMBINER_VECTOR:
      return "vector";
    case MPI_COMBINER_HVECTOR:
      return "hvector";
    case MPI_COMBINER_INDEXED:
      return "indexed";
    case MPI_COMBINER_HINDEXED:
      return "hindexed";
    case MPI_COMBINER_INDEXED_BLOCK:
      return "indexed_block";
    case MPI_COMBINER_HINDEXED_BLOCK:
      return "hindexed_block";
    case MPI_COMBINER_STRUCT:
      return "struct";
    case MPI_COMBINER_SUBARRAY:
      return "subarray";
    case MPI_COMBINER_DARRAY:
      return "darray";
    case MPI_COMBINER_RESIZED:
      return "resized";
    default:
      return "named";
  }
}

/// MPI_DOUBLE is "double".
std::string name_of(MPI_Datatype datatype) {
  std::array<char, MPI_MAX_OBJECT_NAME> text{};
  int length = 0;
  PMPI_Type_get_name(datatype, text.data(), &length);
  std::string name(text.data());
  if (name.starts_with("MPI_")) name.erase(0, 4);
  for (char& letter : name) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return name;
}

constexpr int deepest_told = 3;

/// For a person: "subarray [8, 16] of [64, 64] at [0, 16], C, of double".
std::string shape_of(MPI_Datatype datatype, int depth) {
  TypeContents contents(datatype);
  const std::string kind = combiner_name(contents.combiner());
  if (contents.types().empty()) return name_of(datatype);
  const auto inner = [&] {
    return depth >= deepest_told ? std::string("...") : shape_of(contents.types()[0], depth + 1);
  };
  switch (contents.combiner()) {
    case MPI_COMBINER_CONTIGUOUS:
      return fmt::format("contiguous {} of {}", contents.next_count(), inner());
    case MPI_COMBINER_VECTOR: {
      const auto n = contents.next_counts(3);
      return fmt::format("vector of {} times {} every {} of {}", n[0], n[1], n[2], inner());
    }
    case MPI_COMBINER_HVECTOR: {
      const auto n = contents.next_counts(2);
      return fmt::format("hvector of {} times {} every {} bytes of {}", n[0], n[1],
                         contents.next_address(), inner());
    }
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
      return fmt::format("{} {} blocks of {}", kind, contents.next_count(), inner());
    case MPI_COMBINER_STRUCT:
      return fmt::format("struct of {} members", contents.next_count());
    case MPI_COMBINER_SUBARRAY: {
      const std::int64_t dimensions = contents.next_int();
      const auto sizes = contents.next_counts(dimensions);
      const auto part = contents.next_counts(dimensions);
      const auto starts = contents.next_counts(dimensions);
      const char* order = contents.next_int() == MPI_ORDER_C ? "C" : "Fortran";
      return fmt::format("subarray [{}] of [{}] at [{}], {}, of {}", fmt::join(part, ", "),
                         fmt::join(sizes, ", "), fmt::join(starts, ", "), order, inner());
    }
    default:
      return kind + " of " + inner();
  }
}

/// The pieces, as far as the type has a tree.
void add_pieces(MPI_Datatype datatype, MpiType& shape, std::uint64_t& fingerprint) {
  const auto flat = datatype_reader()->read(datatype);
  if (!flat) return;
  const StridedTree& tree = (*flat)->tree;
  fingerprint = tree.fingerprint();
  shape.blocks = tree.pieces();
  Run run;
  TreeCursor cursor((*flat)->tiled(0));
  if (tree.size() > 0 && cursor.next(tree.size(), run) && run.count == shape.blocks) {
    shape.block_bytes = run.block;
    if (run.count > 1) shape.stride = run.stride;
  }
}

std::unique_ptr<KnownType> look_at(MPI_Datatype datatype) {
  auto known = std::make_unique<KnownType>();
  MpiType& shape = known->shape;
  MPI_Count size = 0, lower = 0, extent = 0, true_lower = 0, true_extent = 0;
  PMPI_Type_size_x(datatype, &size);
  PMPI_Type_get_extent_x(datatype, &lower, &extent);
  PMPI_Type_get_true_extent_x(datatype, &true_lower, &true_extent);
  shape.size = size;
  shape.extent = extent;
  shape.lower_bound = lower;
  shape.true_lower_bound = true_lower;
  shape.true_extent = true_extent;
  std::uint64_t fingerprint = 0;
  add_pieces(datatype, shape, fingerprint);
  known->words = combiner_name(TypeContents(datatype).combiner());
  known->words += '\0';
  known->words += shape_of(datatype, 0);
  known->words += '\0';
  const std::uint64_t numbers = XXH3_64bits_withSeed(&shape, sizeof shape, fingerprint);
  known->key = XXH3_64bits_withSeed(known->words.data(), known->words.size(), numbers);
  return known;
}

/// Counts datatypes that are gone: what was known by a handle may be of another one then.
constinit std::atomic<std::uint64_t> gone{0};

int delete_known(MPI_Datatype, int, void* known, void*) {
  gone.fetch_add(1, std::memory_order_release);
  delete static_cast<KnownType*>(known);
  return MPI_SUCCESS;
}

int make_traced_keyval() {
  int keyval = MPI_KEYVAL_INVALID;
  PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_known, &keyval, nullptr);
  return keyval;
}

void tell(const KnownType& known) {
  const trace::Door* door = tracing();
  if (!door->is_new(known.key)) return;
  door->define(TraceDefinition::mpi_type, known.key, bytes_of(known.shape),
               bytes_of(std::string_view(known.words)));
}

/// The shape as the datatype itself has it; null: that cannot be kept there, or looked up.
const KnownType* kept(MPI_Datatype datatype) {
  static const int keyval = make_traced_keyval();
  void* attribute = nullptr;
  int present = 0;
  if (PMPI_Type_get_attr(datatype, keyval, &attribute, &present) != MPI_SUCCESS) return nullptr;
  if (present != 0) return static_cast<const KnownType*>(attribute);
  auto known = look_at(datatype);
  // Of two threads that come at once the second one's is kept.
  const bool is_kept = PMPI_Type_set_attr(datatype, keyval, known.get()) == MPI_SUCCESS;
  return is_kept ? known.release() : nullptr;
}

/// What a thread asked for last: most calls come with the datatype of the call before.
struct Latest {
  MPI_Datatype datatype;
  std::uint64_t gone;
  const KnownType* known;
};
constinit thread_local Latest latest{};

}  // namespace

TracedType traced_type(MPI_Datatype datatype) {
  if (datatype == MPI_DATATYPE_NULL) return {};
  const std::uint64_t now = gone.load(std::memory_order_acquire);
  if (latest.known == nullptr || latest.datatype != datatype || latest.gone != now) {
    latest = {datatype, now, kept(datatype)};
  }
  if (latest.known == nullptr) {
    const auto known = look_at(datatype);
    tell(*known);
    return {known->key, known->shape.size};
  }
  tell(*latest.known);
  return {latest.known->key, latest.known->shape.size};
}

}  // namespace forebay
