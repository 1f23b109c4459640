// MADBench2: matrices that do not fit into memory together. S computes and writes them, W reads
// each, multiplies and writes it back, C reads them all. Each rank moves a contiguous part of each
// matrix, in one shared file or in a file of its own. [METHOD]
#include <algorithm>
#include <string>
#include <vector>

#include "proxies/workload/options.hpp"
#include "proxies/workload/pattern_data.hpp"
#include "proxies/workload/phases.hpp"
#include "proxies/workload/report.hpp"
#include "proxies/workload/session.hpp"
#include "proxies/workload/shared_file.hpp"

namespace {

using workload::PhaseTime;
using workload::SharedFile;

/// What W multiplies each word by, modulo 2^64. Odd, so that no two products are equal.
constexpr std::uint64_t factor = 0xD1342543DE82EF95ULL;

class OutOfCore {
 public:
  OutOfCore(const workload::Options& options, const workload::Session& session, int matrices,
            int side, bool own_files)
      : options_(options), session_(session), matrices_(matrices), own_files_(own_files) {
    matrix_words_ = static_cast<std::uint64_t>(side) * side;
    const auto bound = [&](std::uint64_t rank) { return rank * matrix_words_ / session.ranks(); };
    first_word_ = bound(session.rank());
    part_.resize(bound(session.rank() + 1) - first_word_);
  }

  /// Removes what an earlier run left in this run's files.
  void remove_old(int iteration) const {
    if (own_files_ || session_.rank() == 0) workload::remove_if_there(path(iteration));
  }

  void write_all_matrices(int iteration) {
    const workload::PatternData data(options_.seed, iteration);
    report("S write", iteration, 1, SharedFile::For::writing, [&](SharedFile& file, int matrix) {
      data.fill(std::as_writable_bytes(std::span(part_)), position(matrix));
      store(file, matrix);
    });
  }

  void multiply_all_matrices(int iteration) {
    drop_if_cold(iteration);
    report("W both", iteration, 2, SharedFile::For::writing, [&](SharedFile& file, int matrix) {
      load(file, matrix);
      for (auto& word : part_) word *= factor;
      store(file, matrix);
    });
  }

  /// Returns whether all bytes were right, on all ranks.
  bool read_all_matrices(int iteration) {
    drop_if_cold(iteration);
    const workload::PatternData data(options_.seed, iteration);
    std::optional<workload::Mismatch> wrong;
    report("C read", iteration, 1, SharedFile::For::reading, [&](SharedFile& file, int matrix) {
      load(file, matrix);
      if (options_.verify && !wrong) wrong = check(data, matrix);
    });
    return !options_.verify || workload::report_verdict(path(iteration), all_bytes(), wrong);
  }

 private:
  std::string path(int iteration) const {
    const std::string shared = options_.file_of(iteration);
    return own_files_ ? shared + ".rank" + std::to_string(session_.rank()) : shared;
  }

  std::uint64_t all_bytes() const { return matrices_ * matrix_words_ * sizeof(std::uint64_t); }

  /// Byte at which this rank's part of a matrix stands when all matrices follow each other.
  std::uint64_t position(int matrix) const {
    return (matrix * matrix_words_ + first_word_) * sizeof(std::uint64_t);
  }

  MPI_Offset file_offset(int matrix) const {
    return own_files_ ? matrix * part_.size() * sizeof(std::uint64_t) : position(matrix);
  }

  void store(SharedFile& file, int matrix) {
    file.write_at(file_offset(matrix), part_.data(), static_cast<int>(part_.size()), MPI_UINT64_T);
  }

  void load(SharedFile& file, int matrix) {
    std::ranges::fill(std::as_writable_bytes(std::span(part_)), workload::poison);
    file.read_at(file_offset(matrix), part_.data(), static_cast<int>(part_.size()), MPI_UINT64_T);
  }

  std::optional<workload::Mismatch> check(const workload::PatternData& data, int matrix) const {
    std::vector<std::uint64_t> expected(part_.size());
    data.fill(std::as_writable_bytes(std::span(expected)), position(matrix));
    for (auto& word : expected) word *= factor;
    return workload::first_difference(std::as_bytes(std::span(expected)),
                                      std::as_bytes(std::span(part_)), file_offset(matrix));
  }

  void drop_if_cold(int iteration) const {
    MPI_Barrier(MPI_COMM_WORLD);
    if (options_.cold) workload::drop_from_page_cache(path(iteration));
  }

  /// Runs `step(file, matrix)` for each matrix and reports a phase that moves every matrix
  /// `transfers` times. What a step computes counts as neither kind of time.
  template <typename Step>
  void report(const char* phase, int iteration, int transfers, SharedFile::For purpose, Step step) {
    const MPI_Comm comm = own_files_ ? MPI_COMM_SELF : MPI_COMM_WORLD;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    SharedFile file(comm, path(iteration), purpose, options_);
    PhaseTime time{MPI_Wtime() - start, 0};
    if (purpose == SharedFile::For::reading) {
      file.expect_size(own_files_ ? matrices_ * part_.size() * sizeof(std::uint64_t) : all_bytes());
    }
    for (int matrix = 0; matrix < matrices_; ++matrix) step(file, matrix);
    start = MPI_Wtime();
    file.close();
    time.seconds += MPI_Wtime() - start + file.data_seconds();
    time.data_seconds = file.data_seconds();
    workload::report_phase(phase, path(iteration), transfers * all_bytes(), time);
  }

  const workload::Options& options_;
  const workload::Session& session_;
  int matrices_;
  bool own_files_;
  std::uint64_t matrix_words_ = 0;
  std::uint64_t first_word_ = 0;     ///< Of this rank's part, in a matrix.
  std::vector<std::uint64_t> part_;  ///< This rank's part of one matrix.
};

constexpr const char* examples = R"(Examples:
  mpiexec -n 2 outofcore /scratch/matrices
  mpiexec -n 2 outofcore --own-files --matrices 16 --side 2048 /scratch/matrices
  mpiexec -n 4 outofcore --independent --cold /scratch/matrices)";

}  // namespace

int main(int argc, char** argv) {
  workload::Session session(argc, argv);
  workload::CommandLine line(
      "Writes, updates and reads matrices that do not fit into memory together.", examples);
  workload::Options options(line);
  int matrices = 8;
  int side = 1024;
  bool own_files = false;
  line.add("--matrices", matrices, "Number of matrices").positive();
  line.add("--side", side, "Doubles in a row and in a column").between(1, 1 << 15);
  line.add_flag("--own-files", own_files,
                "A file for each rank, PATH.rankR, in place of a shared one");
  if (const auto status = line.parse(argc, argv, session.rank() == 0)) return *status;

  OutOfCore program(options, session, matrices, side, own_files);
  workload::report_start("outofcore: " + std::to_string(matrices) + " matrices of " +
                         workload::to_string({side, side}) + " doubles, " +
                         (own_files ? "own files" : "shared file") + ", " + options.call_kind());
  if (!options.verify_only) {
    for (int file = 0; file < options.files; ++file) program.remove_old(file);
    for (int iteration = 0; iteration < options.iterations(); ++iteration) {
      if (iteration > 0) workload::compute(options);
      program.write_all_matrices(iteration);
      workload::compute(options);
      program.multiply_all_matrices(iteration);
    }
    if (options.read) workload::compute(options);
  }
  bool right = true;
  for (int file = 0; options.read && file < options.files; ++file) {
    right &= program.read_all_matrices(options.last_iteration_of(file));
  }
  return right ? 0 : 1;
}
