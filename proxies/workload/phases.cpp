#include "proxies/workload/phases.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "proxies/workload/report.hpp"
#include "proxies/workload/shared_file.hpp"

namespace workload {
namespace {

/// Runs `transfer` on all ranks at once and takes its time.
template <typename Transfer>
PhaseTime timed(Transfer transfer) {
  MPI_Barrier(MPI_COMM_WORLD);
  PhaseTime time;
  const double start = MPI_Wtime();
  time.data_seconds = transfer();
  time.seconds = MPI_Wtime() - start;
  return time;
}

void write_phases(const Options& options, AccessPattern& pattern) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    for (int file = 0; file < options.files; ++file) remove_if_there(options.file_of(file));
  }
  PhaseTime total;
  const int iterations = options.iterations();
  for (int iteration = 0; iteration < iterations; ++iteration) {
    if (iteration > 0) compute(options);
    const std::string path = options.file_of(iteration);
    std::ranges::fill(pattern.memory(), poison);
    pattern.fill(PatternData(options.seed, iteration));
    const auto time =
        report_phase("write", path, pattern.bytes(), timed([&] { return pattern.write(path); }));
    total.seconds += time.seconds;
    total.data_seconds += time.data_seconds;
  }
  if (iterations > 1) {
    report_phase("written", std::to_string(iterations) + " phases", iterations * pattern.bytes(),
                 total);
  }
}

bool read_phases(const Options& options, AccessPattern& pattern) {
  bool right = true;
  for (int file = 0; file < options.files; ++file) {
    if (file > 0) compute(options);
    const std::string path = options.file_of(file);
    std::ranges::fill(pattern.memory(), poison);
    if (options.cold) drop_from_page_cache(path);
    report_phase("read", path, pattern.bytes(), timed([&] { return pattern.read(path); }));
    if (options.verify) {
      const PatternData data(options.seed, options.last_iteration_of(file));
      right &= report_verdict(path, pattern.bytes(), pattern.check(data));
    }
  }
  return right;
}

}  // namespace

int run_phases(const Options& options, AccessPattern& pattern) {
  if (!options.verify_only) {
    write_phases(options, pattern);
    if (options.read) compute(options);
  }
  return !options.read || read_phases(options, pattern) ? 0 : 1;
}

void compute(const Options& options) {
  std::this_thread::sleep_for(std::chrono::duration<double>(options.compute_seconds));
}

}  // namespace workload
