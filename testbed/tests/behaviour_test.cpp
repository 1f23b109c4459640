// Goal: the mounted testbed is no faster than configured, and its servers are busy for as long as
// the bytes take and no longer; requests of several processes proceed side by side; conflicts are
// counted; names cost what their objects do; the counters can be read from the mount.
//
// Method: a machine that is busy only makes things later, so the one time that is asserted is that
// nothing ends before the servers can have done it. That they take no longer is read from
// their own account of busy time; when they answer is tested in virtual time (cluster_test). What
// was reached in real time is recorded with the results.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "core/model/extent.hpp"
#include "testbed/file_descriptor.hpp"
#include "testbed/tests/mounted_testbed.hpp"

namespace forebay::testbed {
namespace {

using namespace std::chrono_literals;

using BehaviourTest = MountedTestbed;

/// The kernel sends requests of at most 256 pages: a buffer that begins within a page would make
/// two requests of each MiB.
using Buffer = std::unique_ptr<char, decltype(&std::free)>;
Buffer page_aligned(Bytes size, std::uint64_t seed) {
  Buffer buffer(static_cast<char*>(std::aligned_alloc(4096, static_cast<std::size_t>(size))),
                &std::free);
  std::mt19937_64 random(seed);
  for (Bytes i = 0; i < size; ++i) buffer.get()[i] = static_cast<char>(random());
  return buffer;
}

class RateTest : public BehaviourTest {
 protected:
  static constexpr Bytes total = 4 * MiB;
  static constexpr Bytes request = 1 * MiB;
  static constexpr double configured_bytes_per_s = 2.0 * MiB;

  void SetUp() override {
    BehaviourTest::SetUp();
    if (IsSkipped()) return;
    mount({"--servers", "4", "--bandwidth", "512KiB/s", "--latency", "3ms", "--stripe", "64KiB"});
    path_ = on_mount("file");
    const FileDescriptor file(::open(path_.c_str(), O_WRONLY | O_CREAT, 0644));
    ASSERT_EQ(::ftruncate(file.get(), total), 0);
  }

  /// `processes` share the file's bytes, each a contiguous part; closing counts.
  double measured_rate(int processes, bool writing) {
    const Bytes part = total / processes;
    const Buffer buffer = page_aligned(request, 5);
    const double seconds = in_processes(processes, [&](int process) {
      const int file = ::open(path_.c_str(), O_RDWR);
      for (Bytes done = 0; done < part; done += request) {
        const Bytes offset = process * part + done;
        const ssize_t count = writing ? ::pwrite(file, buffer.get(), request, offset)
                                      : ::pread(file, buffer.get(), request, offset);
        if (count != request) return 1;
      }
      return ::close(file) == 0 ? 0 : 2;
    });
    return static_cast<double>(total) / seconds;
  }

  void expect_configured_rate(int processes, bool writing) {
    const double rate = measured_rate(processes, writing) / configured_bytes_per_s;
    EXPECT_LE(rate, 1.0);
    RecordProperty("rate_of_configured", std::to_string(rate));

    const std::string kind = writing ? "write" : "read";
    for (const auto& server : servers()) {
      EXPECT_DOUBLE_EQ(server.at("busy_s"), total / configured_bytes_per_s);
      EXPECT_EQ(server.at(kind + "_bytes"), total / 4);
      EXPECT_EQ(server.at(kind + "_requests"), total / request);
    }
  }

  std::filesystem::path path_;
};

TEST_F(RateTest, OneProcessWritesAtTheConfiguredRate) { expect_configured_rate(1, true); }
TEST_F(RateTest, OneProcessReadsAtTheConfiguredRate) { expect_configured_rate(1, false); }
TEST_F(RateTest, FourProcessesWriteAtTheConfiguredRate) { expect_configured_rate(4, true); }
TEST_F(RateTest, FourProcessesReadAtTheConfiguredRate) { expect_configured_rate(4, false); }

TEST_F(BehaviourTest, WritersOfOneFileWaitSideBySide) {
  // One server, one write under way per client, answers after 1 s each: every process has its
  // first write acknowledged and waits in its second. If the kernel let one writer at a time in,
  // the server would meet 4 first writes and 1 second one, 5 in all; side by side it meets 8.
  mount({"--servers", "1", "--slots", "1", "--latency", "1s", "--bandwidth", "1GB/s"});
  const std::filesystem::path path = on_mount("file");
  constexpr Bytes part = 64 * KiB;
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT, 0644));
  ASSERT_EQ(::ftruncate(file.get(), 4 * part), 0);
  in_processes(4, [&](int process) {
    const std::string data(1000, static_cast<char>('a' + process));
    const FileDescriptor mine(::open(path.c_str(), O_WRONLY));
    for (int i = 0; i < 2; ++i) {
      if (::pwrite(mine.get(), data.data(), data.size(), process * part + i * 1000) != 1000) {
        return 1;
      }
    }
    return 0;
  });
  EXPECT_GT(counter("queue_max", true), 5);
  EXPECT_EQ(counter("write_requests"), 8);
}

TEST_F(BehaviourTest, CountsConflictsBetweenProcessesAndNotBetweenThreads) {
  mount({"--bandwidth", "1GB/s", "--latency", "0ms", "--lock-cost", "1ms"});
  const std::filesystem::path path = on_mount("file");
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT, 0644));
  const auto write = [&](int at) {
    return ::pwrite(file.get(), "0123456789", 10, at) == 10 ? 0 : 1;
  };
  EXPECT_EQ(write(0), 0);
  std::thread([&] { EXPECT_EQ(write(10), 0); }).join();
  EXPECT_EQ(counter("lock_conflicts"), 0);
  in_processes(1, [&](int) { return write(20); });
  EXPECT_EQ(counter("lock_conflicts"), 1);
  EXPECT_EQ(write(30), 0);
  EXPECT_EQ(counter("lock_conflicts"), 2);
  EXPECT_EQ(write(65536), 0);
  EXPECT_EQ(counter("lock_conflicts"), 2) << "another stripe";
}

TEST_F(BehaviourTest, OpeningMakingAndRemovingAFileWaitForTheMetadataServer) {
  mount({"--servers", "4", "--latency", "0ms", "--object-cost", "5ms"});
  const auto took = [&](auto&& call) {
    const auto before = std::chrono::steady_clock::now();
    EXPECT_EQ(call(), 0);
    return std::chrono::steady_clock::now() - before;
  };
  const std::string path = on_mount("file");
  const auto open = [&](int flags) {
    return ::close(::open(path.c_str(), flags | O_WRONLY, 0644));
  };
  EXPECT_GE(took([&] { return open(O_CREAT); }), 20ms);
  EXPECT_GE(took([&] { return open(0); }), 20ms);
  EXPECT_GE(took([&] { return ::unlink(path.c_str()); }), 20ms);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(::unlink(path.c_str()), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(BehaviourTest, ReadsEndBeforeWhatCannotBeReadAndFailThere) {
  mount({"--bandwidth", "1GB/s", "--latency", "0ms", "--unreadable", "100000+5000",  //
         "--unreadable", "150000+1"});
  std::ofstream(on_mount("file")) << std::string(200'000, 'x');
  const FileDescriptor file(::open(on_mount("file").c_str(), O_RDONLY));
  std::string room(200'000, '\0');
  const auto read = [&](off_t offset) {
    errno = 0;
    return ::pread(file.get(), room.data(), room.size(), offset);
  };
  EXPECT_EQ(read(0), 100'000);
  for (const off_t broken : {100'000, 104'999, 150'000}) {
    EXPECT_EQ(read(broken), -1);
    EXPECT_EQ(errno, EIO);
  }
  EXPECT_EQ(read(105'000), 45'000);
  EXPECT_EQ(read(150'001), 49'999);
}

TEST_F(BehaviourTest, AnswersReadsInParts) {
  mount({"--bandwidth", "1GB/s", "--latency", "0ms", "--longest-read", "3000"});
  std::ofstream(on_mount("file")) << std::string(10'000, 'x');
  const FileDescriptor file(::open(on_mount("file").c_str(), O_RDONLY));
  std::string room(10'000, '\0');
  EXPECT_EQ(::pread(file.get(), room.data(), room.size(), 500), 3000);
  EXPECT_EQ(::pread(file.get(), room.data(), 1000, 500), 1000);
  EXPECT_EQ(content_of(on_mount("file")), std::string(10'000, 'x'));
}

TEST_F(BehaviourTest, TellsItsCountersThroughAHiddenFile) {
  mount({"--bandwidth", "1GB/s", "--latency", "0ms"});
  std::ofstream(on_mount("file")) << std::string(200'000, 'x');
  EXPECT_EQ(counter("write_bytes"), 200'000);
  EXPECT_EQ(counter("read_bytes"), 0);
  EXPECT_EQ(content_of(on_mount("file")).size(), 200'000u);
  EXPECT_EQ(counter("read_bytes"), 200'000);
  EXPECT_EQ(counter("queue"), 0);

  for (const auto& entry : std::filesystem::directory_iterator(mount_)) {
    EXPECT_EQ(entry.path().filename(), "file");
  }
  EXPECT_TRUE(std::filesystem::is_empty(on_mount(".forebay-testbed")));
  const std::string counters = on_mount(".forebay-testbed/counters.json");
  EXPECT_EQ(::open(counters.c_str(), O_RDWR), -1);
  EXPECT_EQ(errno, EACCES);
  EXPECT_EQ(::unlink(counters.c_str()), -1);
  EXPECT_EQ(::rename(on_mount("file").c_str(), on_mount(".forebay-testbed/file").c_str()), -1);
  EXPECT_EQ(::open(on_mount(".forebay-testbed/absent").c_str(), O_RDONLY), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(std::filesystem::exists(in_backing(".forebay-testbed")));
}

}  // namespace
}  // namespace forebay::testbed
