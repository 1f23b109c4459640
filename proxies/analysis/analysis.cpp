// The ROOT analysis of [MERCURY]: many reads of some hundred kilobytes each, at offsets that rise
// with gaps and sometimes go back, with a little computing after each. Plain POSIX, one process: to
// have several, start several.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "proxies/analysis/read_pattern.hpp"
#include "proxies/workload/command_line.hpp"
#include "proxies/workload/pattern_data.hpp"

namespace {

using analysis::Read;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string path;
  analysis::PatternShape shape;
  std::uint64_t compute_us = 1000;  ///< After each read, checking it included.
  bool create = false;
  bool cold = false;
  bool verify = true;
  std::string intent_path;
};

[[noreturn]] void fail(const std::string& doing, const std::string& path) {
  throw std::runtime_error(doing + " " + path + ": " + std::strerror(errno));
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (fd_ < 0) fail("open", path);
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

void create(const Options& options) {
  const Descriptor file(options.path, O_WRONLY | O_CREAT | O_TRUNC);
  const workload::PatternData data(options.shape.seed, 0);
  std::vector<std::byte> piece(4 << 20);
  for (std::uint64_t at = 0; at < options.shape.file_bytes;) {
    const auto length = std::min<std::uint64_t>(piece.size(), options.shape.file_bytes - at);
    data.fill(std::span(piece).first(length), at);
    const ssize_t written = ::pwrite(file.get(), piece.data(), length, static_cast<off_t>(at));
    if (written <= 0) fail("write", options.path);
    at += static_cast<std::uint64_t>(written);
  }
  if (::fsync(file.get()) != 0) fail("fsync", options.path);
}

/// Dirty pages cannot be dropped, so they go to the device first.
void drop_from_page_cache(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  if (::fsync(file.get()) != 0) fail("fsync", path);
  errno = ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (errno != 0) fail("posix_fadvise", path);
}

/// As docs/formats/intent.md has it: what the program reads, in its order.
void write_intent(const Options& options, const std::vector<Read>& reads) {
  std::ofstream out(options.intent_path);
  out << "[[file]]\npath = '" << std::filesystem::absolute(options.path).string()
      << "'\nwillneed = [\n";
  for (const Read& read : reads) out << "  [" << read.offset << ", " << read.length << "],\n";
  out << "]\n";
  if (!out.flush()) fail("write", options.intent_path);
}

/// False if a byte was wrong, which is told.
bool read_all(const Options& options, const std::vector<Read>& reads) {
  const Descriptor file(options.path, O_RDONLY);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) fail("stat", options.path);
  if (static_cast<std::uint64_t>(status.st_size) != options.shape.file_bytes) {
    throw std::runtime_error(options.path + " has " + std::to_string(status.st_size) +
                             " bytes, not " + std::to_string(options.shape.file_bytes) +
                             ": make it by --create, with the same options");
  }
  const workload::PatternData data(options.shape.seed, 0);
  std::vector<std::byte> memory;
  Clock::duration in_reads{};
  std::uint64_t total = 0;
  const auto start = Clock::now();
  for (const Read& read : reads) {
    memory.assign(read.length, workload::poison);
    const auto before = Clock::now();
    if (::lseek(file.get(), static_cast<off_t>(read.offset), SEEK_SET) < 0) {
      fail("seek in", options.path);
    }
    for (std::uint64_t got = 0; got < read.length;) {
      const ssize_t moved = ::read(file.get(), memory.data() + got, read.length - got);
      if (moved < 0) fail("read", options.path);
      if (moved == 0) throw std::runtime_error("read " + options.path + ": it became shorter");
      got += static_cast<std::uint64_t>(moved);
    }
    const auto after = Clock::now();
    in_reads += after - before;
    total += read.length;
    if (const auto wrong = options.verify ? data.check(memory, read.offset) : std::nullopt) {
      std::fprintf(stderr, "%s is wrong at offset %" PRIu64 ": expected 0x%02x, found 0x%02x\n",
                   options.path.c_str(), wrong->offset, wrong->expected, wrong->found);
      return false;
    }
    std::this_thread::sleep_until(after + std::chrono::microseconds(options.compute_us));
  }
  const std::chrono::duration<double> whole = Clock::now() - start;
  const std::chrono::duration<double> waited = in_reads;
  std::printf("read %" PRIu64 " bytes in %zu reads: %.4f s, of which %.4f s in reads\n", total,
              reads.size(), whole.count(), waited.count());
  if (options.verify) std::printf("verify  all bytes are right\n");
  return true;
}

void add_options(workload::CommandLine& line, Options& options) {
  line.add("PATH", options.path, "The file").required();
  line.add_flag("--create", options.create, "Make the file, and read nothing");
  line.add_flag("--cold", options.cold, "Drop the file from the page cache before it is read");
  line.add_bytes("--size", options.shape.file_bytes, "Bytes of the file");
  line.add_bytes("--mean", options.shape.mean_bytes, "Mean bytes of a read");
  line.add("--reads", options.shape.reads, "Number of reads");
  line.add_bytes("--gap", options.shape.mean_gap_bytes,
                 "Mean bytes between reads, from the beginning of the file on; without it they are "
                 "spread over all of it")
      .no_default_shown();
  line.add("--backward", options.shape.backward, "Of them, those that go back");
  line.add("--compute-us", options.compute_us,
           "Microseconds from the end of a read to the next one; what checking the bytes leaves of "
           "them, the processor sleeps");
  line.add("--seed", options.shape.seed, "Seed of the data and of the pattern");
  line.add("--intent", options.intent_path,
           "Write an intent file that declares these reads, and read nothing");
  line.add_flag("--verify,!--no-verify", options.verify, "Check every byte that is read (default)")
      .no_default_shown();
  line.add_check([&] {
    if (options.create || options.shape.is_possible()) return;
    throw workload::Refused("--reads",
                            "so many reads of this size (--mean), with such gaps, do not fit a "
                            "file of this --size, or more than half of them would go back "
                            "(--backward)");
  });
}

constexpr const char* examples = R"(Examples:
  analysis --create /scratch/events
  analysis --cold /scratch/events
  analysis --intent reads.toml /scratch/events
  forebay run --intent reads.toml -- analysis --cold /scratch/events)";

int run(const Options& options) {
  if (options.create) {
    create(options);
    return 0;
  }
  const auto reads = analysis::read_pattern(options.shape);
  if (!options.intent_path.empty()) {
    write_intent(options, reads);
    return 0;
  }
  if (options.cold) drop_from_page_cache(options.path);
  return read_all(options, reads) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  workload::CommandLine line(
      "Reads a file as an analysis of particle collisions does, and checks every byte.", examples);
  Options options;
  try {
    add_options(line, options);
    if (const auto status = line.parse(argc, argv, true)) return *status;
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "analysis: %s\n", error.what());
    return 1;
  }
}
