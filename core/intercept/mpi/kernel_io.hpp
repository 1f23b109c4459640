#pragma once

#include <cstdint>

namespace forebay {

/// Read and write system calls and bytes of this process, as the kernel counts them in
/// /proc/self/io (rchar, wchar, syscr, syscw): what reached the file system's door, by whomever in
/// the process, including the page cache.
struct KernelIo {
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;
  std::int64_t read_calls = 0;
  std::int64_t write_calls = 0;

  KernelIo& operator+=(const KernelIo& other) {
    read_bytes += other.read_bytes;
    write_bytes += other.write_bytes;
    read_calls += other.read_calls;
    write_calls += other.write_calls;
    return *this;
  }
};

/// Samples the counters between start() and stop(), without what the sampling itself adds.
class KernelIoSample {
 public:
  void start();
  KernelIo stop() const;

 private:
  KernelIo before_;  ///< As it would stand right after the first sample was taken.
};

}  // namespace forebay
