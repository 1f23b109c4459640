// A 3-D array of doubles over a 3-D process grid, with a halo in memory: ROMIO's coll_perf and
// EPCC's benchio [ARCHER], also the first application of [E10].
#include <string>
#include <vector>

#include "proxies/workload/block.hpp"
#include "proxies/workload/phases.hpp"
#include "proxies/workload/report.hpp"
#include "proxies/workload/session.hpp"
#include "proxies/workload/shared_file.hpp"

namespace {

using workload::Block;
using workload::Dimensions;
using workload::SharedFile;

class Block3d final : public workload::AccessPattern {
 public:
  Block3d(const workload::Options& options, Block block)
      : options_(options),
        block_(std::move(block)),
        file_type_(block_.file_type(MPI_DOUBLE)),
        memory_type_(block_.memory_type(MPI_DOUBLE)),
        memory_(block_.memory_bytes()) {}

  std::uint64_t bytes() const override { return block_.whole_bytes(); }
  std::span<std::byte> memory() override { return memory_; }
  void fill(const workload::PatternData& data) override { block_.fill(memory_, data, 0); }

  double write(const std::string& path) override {
    SharedFile file(MPI_COMM_WORLD, path, SharedFile::For::writing, options_);
    file.set_view(0, MPI_DOUBLE, file_type_.get());
    file.write(memory_.data(), 1, memory_type_.get());
    file.close();
    return file.data_seconds();
  }

  double read(const std::string& path) override {
    SharedFile file(MPI_COMM_WORLD, path, SharedFile::For::reading, options_);
    file.expect_size(bytes());
    file.set_view(0, MPI_DOUBLE, file_type_.get());
    file.read(memory_.data(), 1, memory_type_.get());
    file.close();
    return file.data_seconds();
  }

  std::optional<workload::Mismatch> check(const workload::PatternData& data) override {
    return block_.check(memory_, data, 0);
  }

 private:
  const workload::Options& options_;
  Block block_;
  workload::Datatype file_type_;
  workload::Datatype memory_type_;
  std::vector<std::byte> memory_;
};

constexpr const char* examples = R"(Examples:
  mpiexec -n 2 block3d /scratch/array
  mpiexec -n 2 block3d --order fortran /scratch/array         rows of 1 KiB, interleaved
  mpiexec -n 8 block3d --size 256 --independent /scratch/array
  mpiexec -n 4 block3d --global 100x60x80 --grid 2x1x2 /scratch/array)";

}  // namespace

int main(int argc, char** argv) {
  workload::Session session(argc, argv);
  workload::CommandLine line(
      "Writes and reads a 3-D array of doubles that is distributed in blocks.", examples);
  workload::Options options(line);
  Dimensions size(3, 128);
  Dimensions global;
  Dimensions grid;
  int halo = 1;
  std::string order = "c";
  line.add_dimensions("--size", size, 3, "Doubles of each rank");
  line.add_dimensions("--global", global, 3, "Doubles of the whole array").excludes("--size");
  line.add_dimensions("--grid", grid, 3, "Process grid (default: MPI_Dims_create)");
  line.add("--halo", halo, "Doubles around each block in memory").not_negative();
  line.add("--order", order, "Fastest dimension: the last (c) or the first (fortran)")
      .one_of({"c", "fortran"});
  line.add_check([&] {
    if (grid.empty()) grid = workload::balanced_grid(session.ranks(), 3);
    workload::settle_global(global, grid, size, session.ranks());
  });
  if (const auto status = line.parse(argc, argv, session.rank() == 0)) return *status;

  const bool fortran = order == "fortran";
  Block block =
      workload::block_of_grid(global, grid, workload::coordinates_in(grid, session.rank()));
  block.halo = halo;
  block.element_bytes = sizeof(double);
  block.order = fortran ? workload::Order::fortran : workload::Order::c;
  Block3d pattern(options, block);
  workload::report_start("block3d: " + workload::to_string(global) + " doubles, grid " +
                         workload::to_string(grid) + ", halo " + std::to_string(halo) + ", " +
                         (fortran ? "Fortran" : "C") + " order, " + options.call_kind());
  return workload::run_phases(options, pattern);
}
