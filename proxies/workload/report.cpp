#include "proxies/workload/report.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace workload {
namespace {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

double rate(std::uint64_t bytes, double seconds) {
  constexpr double clock_tick = 1e-9;  // An empty phase must not divide by zero.
  return mib(bytes) / std::max(seconds, clock_tick);
}

}  // namespace

void report_start(const std::string& text) {
  if (world_rank() == 0) std::printf("%s\n", text.c_str());
}

PhaseTime report_phase(const std::string& phase, const std::string& path, std::uint64_t bytes,
                       PhaseTime time) {
  double mine[2] = {time.seconds, time.data_seconds};
  double slowest[2];
  MPI_Allreduce(mine, slowest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (world_rank() == 0) {
    std::printf("%-7s %10.1f MiB  open-close %9.4f s %9.1f MiB/s  data %9.4f s %9.1f MiB/s  %s\n",
                phase.c_str(), mib(bytes), slowest[0], rate(bytes, slowest[0]), slowest[1],
                rate(bytes, slowest[1]), path.c_str());
    std::fflush(stdout);
  }
  return {slowest[0], slowest[1]};
}

bool report_verdict(const std::string& path, std::uint64_t bytes,
                    const std::optional<Mismatch>& mismatch) {
  const int rank = world_rank();
  struct Verdict {
    int wrong;
    int rank;
  };
  const Verdict mine{mismatch ? 1 : 0, rank};
  Verdict first;
  MPI_Allreduce(&mine, &first, 1, MPI_2INT, MPI_MAXLOC, MPI_COMM_WORLD);
  if (first.wrong == 0) {
    if (rank == 0) std::printf("verify  %" PRIu64 " bytes are right  %s\n", bytes, path.c_str());
    return true;
  }
  if (rank == first.rank) {
    const bool in_file = mismatch->where == Mismatch::Where::file;
    std::fprintf(stderr, "rank %d: %s %s %" PRIu64 ": expected 0x%02x, found 0x%02x\n", rank,
                 path.c_str(), in_file ? "is wrong at offset" : "was read into the halo at byte",
                 mismatch->offset, mismatch->expected, mismatch->found);
  }
  return false;
}

}  // namespace workload
