// NAS BT-IO: the 40-byte points of a 3-D grid, distributed by diagonal multi-partitioning, appended
// to one file every few time steps. `full` writes a step in one collective call, `simple` each row
// of each cell by itself. [METHOD]
//
// Multi-partitioning cuts the grid into c x c x c cells. A diagonal is a set of c cells, one in
// each layer, no two in line; there are c * c diagonals, and they cover the grid. NAS BT has c * c
// ranks and gives one diagonal to each. Here any number of ranks deals the diagonals out in turn,
// so with 2 ranks and c = 2 each owns two diagonals, that is 4 of the 8 cells.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "proxies/workload/block.hpp"
#include "proxies/workload/phases.hpp"
#include "proxies/workload/report.hpp"
#include "proxies/workload/session.hpp"
#include "proxies/workload/shared_file.hpp"

namespace {

using workload::Block;
using workload::Datatype;
using workload::Dimensions;
using workload::SharedFile;

constexpr int doubles_of_point = 5;  ///< Density, three momenta, energy.
constexpr std::size_t point_bytes = doubles_of_point * sizeof(double);

/// The cells of `rank`, by layer, and within a layer by y. Dimensions are z, y, x. Two cells of one
/// rank never share both z and y as long as cells <= ranks: their diagonals would differ by less
/// than `cells`, yet by a multiple of `ranks`. So in each plane all rows of a cell come before
/// those of the next.
std::vector<Block> cells_of(int rank, int ranks, int size, int cells, int halo) {
  std::vector<Block> mine;
  for (int z = 0; z < cells; ++z) {
    for (int y = 0; y < cells; ++y) {
      for (int x = 0; x < cells; ++x) {
        const int diagonal = (x - z + cells) % cells + (y + z) % cells * cells;
        if (diagonal % ranks != rank) continue;
        Block cell = workload::block_of_grid(Dimensions(3, size), Dimensions(3, cells), {z, y, x});
        cell.halo = halo;
        cell.element_bytes = point_bytes;
        mine.push_back(std::move(cell));
      }
    }
  }
  return mine;
}

class Multipart final : public workload::AccessPattern {
 public:
  Multipart(const workload::Options& options, std::vector<Block> cells, int steps, bool simple)
      : options_(options),
        cells_(std::move(cells)),
        steps_(steps),
        simple_(simple),
        point_(make_point()),
        file_type_(combine(In::file)),
        memory_type_(combine(In::memory)) {
    for (const Block& cell : cells_) {
      step_memory_ += cell.memory_bytes();
      step_points_ += workload::volume(cell.local);
    }
    memory_.resize(step_memory_ * steps_);
  }

  std::uint64_t bytes() const override { return steps_ * step_bytes(); }
  std::span<std::byte> memory() override { return memory_; }

  void fill(const workload::PatternData& data) override {
    for_each_cell([&](const Block& cell, std::span<std::byte> memory, std::uint64_t file_base) {
      cell.fill(memory, data, file_base);
      return true;
    });
  }

  double write(const std::string& path) override {
    SharedFile file(MPI_COMM_WORLD, path, SharedFile::For::writing, options_);
    if (simple_) {
      for_each_row([&](std::uint64_t offset, std::byte* row, int bytes) {
        file.write_at(static_cast<MPI_Offset>(offset), row, bytes, MPI_BYTE);
      });
    } else {
      file.set_view(0, point_.get(), file_type_.get());
      for (int step = 0; step < steps_; ++step) {
        file.write_at(step * step_points_, step_data(step), 1, memory_type_.get());
      }
    }
    file.close();
    return file.data_seconds();
  }

  double read(const std::string& path) override {
    SharedFile file(MPI_COMM_WORLD, path, SharedFile::For::reading, options_);
    file.expect_size(bytes());
    if (simple_) {
      for_each_row([&](std::uint64_t offset, std::byte* row, int bytes) {
        file.read_at(static_cast<MPI_Offset>(offset), row, bytes, MPI_BYTE);
      });
    } else {
      file.set_view(0, point_.get(), file_type_.get());
      for (int step = 0; step < steps_; ++step) {
        file.read_at(step * step_points_, step_data(step), 1, memory_type_.get());
      }
    }
    file.close();
    return file.data_seconds();
  }

  std::optional<workload::Mismatch> check(const workload::PatternData& data) override {
    std::optional<workload::Mismatch> wrong;
    for_each_cell([&](const Block& cell, std::span<std::byte> memory, std::uint64_t file_base) {
      wrong = cell.check(memory, data, file_base);
      return !wrong;
    });
    return wrong;
  }

 private:
  enum class In { file, memory };

  static Datatype make_point() {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(doubles_of_point, MPI_DOUBLE, &type);
    return Datatype(type);
  }

  /// All cells of a step as one type: parts of the same array in the file, one after the other in
  /// memory. A view must not go backwards, so where a layer has several cells of this rank they
  /// take turns plane by plane; NAS BT has one in each layer.
  Datatype combine(In in) const {
    std::vector<Datatype> parts;
    std::vector<MPI_Aint> offsets;
    const auto add = [&](const Block& part, std::uint64_t offset) {
      parts.push_back(in == In::file ? part.file_type(point_.get())
                                     : part.memory_type(point_.get()));
      offsets.push_back(static_cast<MPI_Aint>(offset));
    };
    std::uint64_t in_memory = 0;
    for (auto cell = cells_.begin(); cell != cells_.end();) {
      const auto next = std::find_if(
          cell, cells_.end(), [&](const Block& other) { return other.start[0] != cell->start[0]; });
      if (next - cell == 1) add(*cell, in == In::file ? 0 : in_memory);
      for (int z = 0; next - cell > 1 && z < cell->local[0]; ++z) {
        std::uint64_t base = in_memory;
        for (auto it = cell; it != next; base += it++->memory_bytes()) {
          const Block plane = plane_of(*it);
          add(plane, in == In::file ? (it->start[0] + z) * plane.whole_bytes()
                                    : base + (it->halo + z) * plane.memory_bytes());
        }
      }
      for (; cell != next; ++cell) in_memory += cell->memory_bytes();
    }
    std::vector<MPI_Datatype> types;
    for (const Datatype& part : parts) types.push_back(part.get());
    const std::vector<int> ones(parts.size(), 1);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_struct(static_cast<int>(parts.size()), ones.data(), offsets.data(),
                           types.data(), &type);
    return Datatype(type);
  }

  /// One of the planes of a cell, as a block of a plane of the grid.
  static Block plane_of(Block cell) {
    for (Dimensions* sizes : {&cell.global, &cell.local, &cell.start}) sizes->erase(sizes->begin());
    return cell;
  }

  std::uint64_t step_bytes() const { return cells_.front().whole_bytes(); }
  std::byte* step_data(int step) { return memory_.data() + step * step_memory_; }

  /// Calls `visit(cell, its memory, offset of its array in the file)` in every step, until it
  /// returns false.
  template <typename Visit>
  void for_each_cell(Visit visit) {
    std::uint64_t offset = 0;
    for (int step = 0; step < steps_; ++step) {
      for (const Block& cell : cells_) {
        const auto memory = std::span(memory_).subspan(offset, cell.memory_bytes());
        if (!visit(cell, memory, step * step_bytes())) return;
        offset += cell.memory_bytes();
      }
    }
  }

  template <typename Visit>
  void for_each_row(Visit visit) {
    for_each_cell([&](const Block& cell, std::span<std::byte> memory, std::uint64_t file_base) {
      cell.for_each_row([&](std::uint64_t in_memory, std::uint64_t in_file, std::size_t bytes) {
        visit(file_base + in_file, memory.data() + in_memory, static_cast<int>(bytes));
        return true;
      });
      return true;
    });
  }

  const workload::Options& options_;
  std::vector<Block> cells_;
  int steps_;
  bool simple_;
  Datatype point_;
  Datatype file_type_;
  Datatype memory_type_;
  std::uint64_t step_memory_ = 0;  ///< Bytes of all cells with their halos.
  std::int64_t step_points_ = 0;   ///< Of this rank.
  std::vector<std::byte> memory_;
};

int ceil_sqrt(int n) {
  int root = static_cast<int>(std::sqrt(n));
  while (root * root < n) ++root;
  return root;
}

constexpr const char* examples = R"(Examples:
  mpiexec -n 2 multipart /scratch/solution
  mpiexec -n 2 multipart --variant simple --steps 1 /scratch/solution
  mpiexec -n 4 multipart --size 102 --steps 40 /scratch/solution    class B of NAS BT-IO: 1.6 GiB)";

}  // namespace

int main(int argc, char** argv) {
  workload::Session session(argc, argv);
  workload::CommandLine line(
      "Appends the steps of a 3-D grid that is distributed by diagonal multi-partitioning.",
      examples);
  workload::Options options(line);
  int size = 64;
  int steps = 5;
  int cells = 0;
  int halo = 2;
  std::string variant = "full";
  line.add("--size", size, "Points of the grid on each side").between(1, 1 << 10);
  line.add("--steps", steps, "Steps appended to the file").positive();
  line.add("--cells", cells, "Cells on each side (default: square root of ranks, rounded up)")
      .positive()
      .no_default_shown();
  line.add("--halo", halo, "Points around each cell in memory").not_negative();
  line.add("--variant", variant,
           "full: a collective call for each step; simple: an independent call for each row")
      .one_of({"full", "simple"});
  line.add_check([&] {
    const int fewest = ceil_sqrt(session.ranks());
    if (cells == 0) cells = fewest;
    if (cells < fewest || cells > session.ranks()) {
      throw workload::Refused("--cells", "must be from " + std::to_string(fewest) + " to " +
                                             std::to_string(session.ranks()) + " with " +
                                             std::to_string(session.ranks()) + " ranks");
    }
    if (size < cells) throw workload::Refused("--size", "is less than the number of cells");
    if (variant == "simple") options.independent = true;
  });
  if (const auto status = line.parse(argc, argv, session.rank() == 0)) return *status;

  Multipart pattern(options, cells_of(session.rank(), session.ranks(), size, cells, halo), steps,
                    variant == "simple");
  workload::report_start("multipart: " + std::to_string(steps) + " steps of " +
                         workload::to_string(Dimensions(3, size)) + " points, " +
                         workload::to_string(Dimensions(3, cells)) + " cells, " + variant + ", " +
                         options.call_kind());
  return workload::run_phases(options, pattern);
}
