// A 4-D lattice of sites, distributed in 4-D blocks and written in global order: the checkpoint of
// lattice field theory that pmodels/mpich issue 7935 reports. Each rank's rows are short, a few
// KiB, because the fastest dimension is split too.
#include <algorithm>
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

class Lattice4d final : public workload::AccessPattern {
 public:
  Lattice4d(const workload::Options& options, Block block)
      : options_(options),
        block_(std::move(block)),
        site_(make_site(block_.element_bytes)),
        file_type_(block_.file_type(site_.get())),
        memory_(block_.memory_bytes()) {}

  std::uint64_t bytes() const override { return block_.whole_bytes(); }
  std::span<std::byte> memory() override { return memory_; }
  void fill(const workload::PatternData& data) override { block_.fill(memory_, data, 0); }

  double write(const std::string& path) override {
    SharedFile file(MPI_COMM_WORLD, path, SharedFile::For::writing, options_);
    file.set_view(0, site_.get(), file_type_.get());
    file.write(memory_.data(), sites(), site_.get());
    file.close();
    return file.data_seconds();
  }

  double read(const std::string& path) override {
    SharedFile file(MPI_COMM_WORLD, path, SharedFile::For::reading, options_);
    file.expect_size(bytes());
    file.set_view(0, site_.get(), file_type_.get());
    file.read(memory_.data(), sites(), site_.get());
    file.close();
    return file.data_seconds();
  }

  std::optional<workload::Mismatch> check(const workload::PatternData& data) override {
    return block_.check(memory_, data, 0);
  }

 private:
  static workload::Datatype make_site(std::size_t bytes) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type);
    return workload::Datatype(type);
  }

  int sites() const { return static_cast<int>(workload::volume(block_.local)); }

  const workload::Options& options_;
  Block block_;
  workload::Datatype site_;
  workload::Datatype file_type_;
  std::vector<std::byte> memory_;
};

/// MPI_Dims_create puts the largest number first; reversed, the fastest dimension is split most, so
/// that even 2 ranks interleave rows.
Dimensions default_grid(int ranks) {
  Dimensions grid = workload::balanced_grid(ranks, 4);
  std::ranges::reverse(grid);
  return grid;
}

constexpr const char* examples = R"(Examples:
  mpiexec -n 2 lattice4d /scratch/lattice
  mpiexec -n 4 lattice4d --local 16x16x16x16 --site 576 /scratch/lattice
  mpiexec -n 4 lattice4d --global 16x16x16x64 --grid 1x2x1x2 /scratch/lattice
  mpiexec -n 2 lattice4d --hints cb_nodes=2,cb_buffer_size=4194304 /scratch/lattice)";

}  // namespace

int main(int argc, char** argv) {
  workload::Session session(argc, argv);
  workload::CommandLine line(
      "Writes and reads a 4-D lattice that is distributed in blocks, in global order.", examples);
  workload::Options options(line);
  Dimensions local{32, 16, 16, 32};
  Dimensions global;
  Dimensions grid;
  std::uint64_t site_bytes = 192;
  line.add_dimensions("--local", local, 4, "Sites of each rank; the last is the fastest");
  line.add_dimensions("--global", global, 4, "Sites of the whole lattice").excludes("--local");
  line.add_bytes("--site", site_bytes, "Bytes of a site").between(1, 1 << 30);
  line.add_dimensions("--grid", grid, 4,
                      "Process grid (default: balanced, the fastest dimension split most)");
  line.add_check([&] {
    if (grid.empty()) grid = default_grid(session.ranks());
    workload::settle_global(global, grid, local, session.ranks());
  });
  if (const auto status = line.parse(argc, argv, session.rank() == 0)) return *status;

  Block block =
      workload::block_of_grid(global, grid, workload::coordinates_in(grid, session.rank()));
  block.element_bytes = site_bytes;
  Lattice4d pattern(options, block);
  workload::report_start("lattice4d: " + workload::to_string(global) + " sites of " +
                         std::to_string(site_bytes) + " bytes, grid " + workload::to_string(grid) +
                         ", " + options.call_kind());
  return workload::run_phases(options, pattern);
}
