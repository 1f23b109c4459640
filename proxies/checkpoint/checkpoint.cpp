// FLASH's checkpoint: many variables, each a small collective write by all ranks, from memory where
// every value stands by itself. As a raw file through MPI-IO, or through parallel HDF5. [E10]
#include <string>

#include "proxies/checkpoint/hdf5_format.hpp"
#include "proxies/checkpoint/mesh.hpp"
#include "proxies/workload/datatype.hpp"
#include "proxies/workload/phases.hpp"
#include "proxies/workload/report.hpp"
#include "proxies/workload/session.hpp"
#include "proxies/workload/shared_file.hpp"

namespace {

using checkpoint::Mesh;
using checkpoint::Variable;
using workload::Datatype;
using workload::SharedFile;

/// What both formats share.
class Checkpoint : public workload::AccessPattern {
 public:
  Checkpoint(const workload::Options& options, Mesh& mesh) : options_(options), mesh_(mesh) {}

  std::uint64_t bytes() const override { return mesh_.checkpoint_bytes(); }
  std::span<std::byte> memory() override { return mesh_.memory(); }
  void fill(const workload::PatternData& data) override { mesh_.fill(data); }
  std::optional<workload::Mismatch> check(const workload::PatternData& data) override {
    return mesh_.check(data);
  }

 protected:
  const workload::Options& options_;
  Mesh& mesh_;
};

/// One variable after the other, no header.
class RawCheckpoint final : public Checkpoint {
 public:
  RawCheckpoint(const workload::Options& options, Mesh& mesh)
      : Checkpoint(options, mesh), unknown_in_memory_(make_unknown(mesh)) {}

  double write(const std::string& path) override {
    SharedFile file(MPI_COMM_WORLD, path, SharedFile::For::writing, options_);
    for_each_variable([&](MPI_Offset offset, std::byte* memory, int count, MPI_Datatype type) {
      file.write_at(offset, memory, count, type);
    });
    file.close();
    return file.data_seconds();
  }

  double read(const std::string& path) override {
    SharedFile file(MPI_COMM_WORLD, path, SharedFile::For::reading, options_);
    file.expect_size(bytes());
    for_each_variable([&](MPI_Offset offset, std::byte* memory, int count, MPI_Datatype type) {
      file.read_at(offset, memory, count, type);
    });
    file.close();
    return file.data_seconds();
  }

 private:
  /// One unknown of all cells that are not guards.
  static Datatype make_unknown(const Mesh& mesh) {
    const auto& shape = mesh.shape();
    const auto whole = mesh.unknowns_in_memory();
    const int part[] = {shape.blocks, shape.side, shape.side, shape.side, 1};
    const int start[] = {0, shape.guard, shape.guard, shape.guard, 0};
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_subarray(5, whole.data(), part, start, MPI_ORDER_C, MPI_DOUBLE, &type);
    return Datatype(type);
  }

  template <typename Visit>
  void for_each_variable(Visit visit) const {
    for (const Variable& variable : mesh_.variables()) {
      const auto offset =
          static_cast<MPI_Offset>(variable.offset + mesh_.first_block() * variable.block_bytes());
      if (variable.is_unknown) {
        visit(offset, variable.memory, 1, unknown_in_memory_.get());
      } else {
        const auto elements = mesh_.shape().blocks * workload::volume(variable.of_block);
        visit(offset, variable.memory, static_cast<int>(elements),
              variable.type == Variable::Type::int32 ? MPI_INT32_T : MPI_DOUBLE);
      }
    }
  }

  Datatype unknown_in_memory_;
};

class Hdf5Checkpoint final : public Checkpoint {
 public:
  using Checkpoint::Checkpoint;

  double write(const std::string& path) override {
    return checkpoint::write_hdf5(path, mesh_, options_);
  }
  double read(const std::string& path) override {
    return checkpoint::read_hdf5(path, mesh_, options_);
  }
};

constexpr const char* examples = R"(Examples:
  mpiexec -n 2 checkpoint /scratch/flash
  mpiexec -n 2 checkpoint --format hdf5 /scratch/flash.h5
  mpiexec -n 2 checkpoint --files 4 --compute 2 /scratch/flash
  mpiexec -n 4 checkpoint --blocks 80 --nxb 8 /scratch/flash)";

}  // namespace

int main(int argc, char** argv) {
  workload::Session session(argc, argv);
  workload::CommandLine line("Writes and reads the checkpoint of a block-structured mesh code.",
                             examples);
  workload::Options options(line);
  checkpoint::Shape shape;
  std::string format = "raw";
  line.add("--format", format, "raw: plain MPI-IO; hdf5: parallel HDF5").one_of({"raw", "hdf5"});
  line.add("--blocks", shape.blocks, "Blocks of each rank").positive();
  line.add("--nxb", shape.side, "Cells of a block on each side").between(1, 256);
  line.add("--guard", shape.guard, "Guard cells around a block, which are not written")
      .not_negative();
  line.add("--unknowns", shape.unknowns, "Doubles of a cell").positive();
  line.add_check([&] {
    if (format == "hdf5" && !checkpoint::hdf5_is_built_in()) {
      throw workload::Refused("--format", "hdf5 needs parallel HDF5, which was not there when " +
                                              std::string("this was built: apt install ") +
                                              checkpoint::hdf5_package + ", and build again");
    }
  });
  if (const auto status = line.parse(argc, argv, session.rank() == 0)) return *status;

  Mesh mesh(shape, session.rank(), session.ranks());
  workload::report_start("checkpoint: " + std::to_string(mesh.total_blocks()) + " blocks of " +
                         workload::to_string(workload::Dimensions(3, shape.side)) + " cells, " +
                         std::to_string(shape.unknowns) + " unknowns, " + format + ", " +
                         options.call_kind());
  if (format == "hdf5") {
    Hdf5Checkpoint pattern(options, mesh);
    return workload::run_phases(options, pattern);
  }
  RawCheckpoint pattern(options, mesh);
  return workload::run_phases(options, pattern);
}
