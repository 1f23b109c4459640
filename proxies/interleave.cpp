// Pieces of a few bytes, dealt out to the ranks one by one: the worst case for a layer that handles
// each piece of a file view by itself.
#include <algorithm>
#include <string>
#include <vector>

#include "proxies/workload/datatype.hpp"
#include "proxies/workload/phases.hpp"
#include "proxies/workload/report.hpp"
#include "proxies/workload/session.hpp"
#include "proxies/workload/shared_file.hpp"

namespace {

using workload::Datatype;
using workload::SharedFile;

/// `piece_bytes`, then a gap up to `stride_bytes`.
Datatype spaced_piece(std::uint64_t piece_bytes, std::uint64_t stride_bytes) {
  MPI_Datatype piece = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(static_cast<int>(piece_bytes), MPI_BYTE, &piece);
  MPI_Datatype spaced = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(piece, 0, static_cast<MPI_Aint>(stride_bytes), &spaced);
  MPI_Type_free(&piece);
  return Datatype(spaced);
}

class Interleave final : public workload::AccessPattern {
 public:
  /// In memory, pieces start `memory_stride` bytes apart.
  Interleave(const workload::Options& options, const workload::Session& session,
             std::uint64_t piece_bytes, std::uint64_t pieces, std::uint64_t memory_stride)
      : options_(options),
        piece_bytes_(piece_bytes),
        total_bytes_(pieces * piece_bytes),
        memory_stride_(memory_stride),
        rank_(session.rank()),
        ranks_(session.ranks()),
        // Rank r has the pieces r, r + ranks, r + 2 ranks, ...
        pieces_((pieces + ranks_ - 1 - rank_) / ranks_),
        file_type_(spaced_piece(piece_bytes, piece_bytes * ranks_)),
        memory_type_(spaced_piece(piece_bytes, memory_stride)),
        memory_(pieces_ * memory_stride) {}

  std::uint64_t bytes() const override { return total_bytes_; }
  std::span<std::byte> memory() override { return memory_; }

  void fill(const workload::PatternData& data) override {
    for (std::uint64_t i = 0; i < pieces_; ++i) {
      data.fill(std::span(memory_).subspan(i * memory_stride_, piece_bytes_), file_offset(i));
    }
  }

  double write(const std::string& path) override {
    SharedFile file(MPI_COMM_WORLD, path, SharedFile::For::writing, options_);
    file.set_view(file_offset(0), MPI_BYTE, file_type_.get());
    file.write(memory_.data(), static_cast<int>(pieces_), memory_type_.get());
    file.close();
    return file.data_seconds();
  }

  double read(const std::string& path) override {
    SharedFile file(MPI_COMM_WORLD, path, SharedFile::For::reading, options_);
    file.expect_size(total_bytes_);
    file.set_view(file_offset(0), MPI_BYTE, file_type_.get());
    file.read(memory_.data(), static_cast<int>(pieces_), memory_type_.get());
    file.close();
    return file.data_seconds();
  }

  std::optional<workload::Mismatch> check(const workload::PatternData& data) override {
    for (std::uint64_t i = 0; i < pieces_; ++i) {
      const auto slot = std::span(memory_).subspan(i * memory_stride_, memory_stride_);
      if (auto wrong = data.check(slot.first(piece_bytes_), file_offset(i))) return wrong;
      if (auto wrong = workload::check_untouched(slot.subspan(piece_bytes_),
                                                 i * memory_stride_ + piece_bytes_)) {
        return wrong;
      }
    }
    return std::nullopt;
  }

 private:
  /// Of this rank's `i`-th piece.
  std::uint64_t file_offset(std::uint64_t i) const { return (i * ranks_ + rank_) * piece_bytes_; }

  const workload::Options& options_;
  std::uint64_t piece_bytes_;
  std::uint64_t total_bytes_;
  std::uint64_t memory_stride_;
  std::uint64_t rank_;
  std::uint64_t ranks_;
  std::uint64_t pieces_;
  Datatype file_type_;
  Datatype memory_type_;
  std::vector<std::byte> memory_;
};

constexpr const char* examples = R"(Examples:
  mpiexec -n 2 interleave /scratch/pieces
  mpiexec -n 2 interleave --memory strided --total 16MiB /scratch/pieces
  mpiexec -n 4 interleave --piece 192 --total 256MiB /scratch/pieces)";

}  // namespace

int main(int argc, char** argv) {
  workload::Session session(argc, argv);
  workload::CommandLine line(
      "Writes and reads small pieces that are dealt out to the ranks one by one.", examples);
  workload::Options options(line);
  std::uint64_t piece_bytes = 8;
  std::uint64_t total_bytes = 64 << 20;
  std::string memory = "contiguous";
  line.add_bytes("--piece", piece_bytes, "Bytes of a piece").between(1, 1 << 30);
  line.add_bytes("--total", total_bytes, "Bytes of the file, a multiple of --piece").positive();
  line.add("--memory", memory, "Pieces in memory: contiguous, or strided with equal gaps")
      .one_of({"contiguous", "strided"});
  line.add_check([&] {
    if (total_bytes % piece_bytes != 0) {
      throw workload::Refused("--total", "is not a multiple of --piece");
    }
    constexpr std::uint64_t most = 0x7FFFFFFF;  // A call's count is an int.
    if (total_bytes / piece_bytes / session.ranks() >= most) {
      throw workload::Refused("--total", "gives a rank more pieces than one call can carry");
    }
  });
  if (const auto status = line.parse(argc, argv, session.rank() == 0)) return *status;

  Interleave pattern(options, session, piece_bytes, total_bytes / piece_bytes,
                     memory == "strided" ? 2 * piece_bytes : piece_bytes);
  workload::report_start("interleave: " + std::to_string(total_bytes / piece_bytes) +
                         " pieces of " + std::to_string(piece_bytes) + " bytes, memory " + memory +
                         ", " + options.call_kind());
  return workload::run_phases(options, pattern);
}
