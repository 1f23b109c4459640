// IOR's segmented pattern: every rank writes contiguous blocks, a transfer at a time. Nothing is to
// be gained by reordering, so this shows what a layer costs. [E10]
#include <algorithm>
#include <string>
#include <vector>

#include "proxies/workload/phases.hpp"
#include "proxies/workload/report.hpp"
#include "proxies/workload/session.hpp"
#include "proxies/workload/shared_file.hpp"

namespace {

using workload::SharedFile;

/// All in bytes but `segments`.
struct Shape {
  std::uint64_t block = 16 << 20;
  std::uint64_t transfer = 1 << 20;
  int segments = 4;
};

class Segments final : public workload::AccessPattern {
 public:
  Segments(const workload::Options& options, const workload::Session& session, Shape shape)
      : options_(options),
        shape_(shape),
        rank_(session.rank()),
        ranks_(session.ranks()),
        memory_(shape.block * shape.segments) {}

  std::uint64_t bytes() const override { return memory_.size() * ranks_; }
  std::span<std::byte> memory() override { return memory_; }

  void fill(const workload::PatternData& data) override {
    for (int segment = 0; segment < shape_.segments; ++segment) {
      data.fill(block_of(segment), file_offset(segment));
    }
  }

  double write(const std::string& path) override {
    SharedFile file(MPI_COMM_WORLD, path, SharedFile::For::writing, options_);
    for_each_transfer([&](std::uint64_t offset, std::byte* at, int bytes) {
      file.write_at(static_cast<MPI_Offset>(offset), at, bytes, MPI_BYTE);
    });
    file.close();
    return file.data_seconds();
  }

  double read(const std::string& path) override {
    SharedFile file(MPI_COMM_WORLD, path, SharedFile::For::reading, options_);
    file.expect_size(bytes());
    for_each_transfer([&](std::uint64_t offset, std::byte* at, int bytes) {
      file.read_at(static_cast<MPI_Offset>(offset), at, bytes, MPI_BYTE);
    });
    file.close();
    return file.data_seconds();
  }

  std::optional<workload::Mismatch> check(const workload::PatternData& data) override {
    for (int segment = 0; segment < shape_.segments; ++segment) {
      if (auto wrong = data.check(block_of(segment), file_offset(segment))) return wrong;
    }
    return std::nullopt;
  }

 private:
  /// A segment holds one block of every rank.
  std::uint64_t file_offset(int segment) const {
    return (static_cast<std::uint64_t>(segment) * ranks_ + rank_) * shape_.block;
  }

  std::span<std::byte> block_of(int segment) {
    return std::span(memory_).subspan(segment * shape_.block, shape_.block);
  }

  template <typename Visit>
  void for_each_transfer(Visit visit) {
    for (int segment = 0; segment < shape_.segments; ++segment) {
      for (std::uint64_t done = 0; done < shape_.block; done += shape_.transfer) {
        visit(file_offset(segment) + done, block_of(segment).data() + done,
              static_cast<int>(std::min(shape_.transfer, shape_.block - done)));
      }
    }
  }

  const workload::Options& options_;
  Shape shape_;
  int rank_;
  int ranks_;
  std::vector<std::byte> memory_;
};

constexpr const char* examples = R"(Examples:
  mpiexec -n 2 segments /scratch/segments
  mpiexec -n 2 segments --block 64MiB --transfer 4MiB --segments 1 /scratch/segments
  mpiexec -n 4 segments --independent --files 4 --compute 2 /scratch/segments)";

}  // namespace

int main(int argc, char** argv) {
  workload::Session session(argc, argv);
  workload::CommandLine line(
      "Writes and reads contiguous blocks, a transfer at a time, as IOR does.", examples);
  workload::Options options(line);
  Shape shape;
  line.add_bytes("--block", shape.block, "Contiguous bytes of a rank in a segment").positive();
  line.add_bytes("--transfer", shape.transfer, "Bytes of one call").between(1, 1 << 30);
  line.add("--segments", shape.segments, "Blocks of each rank").positive();
  if (const auto status = line.parse(argc, argv, session.rank() == 0)) return *status;

  Segments pattern(options, session, shape);
  workload::report_start("segments: " + std::to_string(shape.segments) + " blocks of " +
                         std::to_string(shape.block) + " bytes a rank, " +
                         std::to_string(shape.transfer) + " bytes a call, " + options.call_kind());
  return workload::run_phases(options, pattern);
}
