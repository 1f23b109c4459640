// Goal: with a page cache nothing that was read is asked of the servers again, by whatever opening
// and process, all see each other's bytes, and the kernel reads ahead as far as it is told. Method:
// the counters before and after; a shadow of the file beside random writes, truncations and
// mappings by several openings, with the page cache and past it. posix_test.cpp has the rest.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <string>
#include <vector>

#include "core/model/extent.hpp"
#include "testbed/file_descriptor.hpp"
#include "testbed/tests/mounted_testbed.hpp"

namespace forebay::testbed {
namespace {

class PageCacheTest : public MountedTestbed {
 protected:
  /// One server with one stripe, so that a request of the kernel counts once.
  void mount_cached(std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--page-cache", "--servers", "1", "--bandwidth", "1GB/s", "--latency",
                             "50us", "--stripe", "1GiB"});
    mount(more);
  }

  FileDescriptor open(int flags) const {
    return FileDescriptor(::open(on_mount("file").c_str(), flags | O_CLOEXEC, 0644));
  }

  /// Makes the file of these bytes, and empties the page cache of it.
  void make_file(const std::string& content) const {
    const FileDescriptor file = open(O_WRONLY | O_CREAT);
    ASSERT_EQ(::pwrite(file.get(), content.data(), content.size(), 0),
              static_cast<ssize_t>(content.size()));
    forget_pages(file);
  }

  static void forget_pages(const FileDescriptor& file) {
    ASSERT_EQ(::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  }
};

std::string random_bytes(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string read_at(const FileDescriptor& file, off_t offset, std::size_t size) {
  std::string bytes(size, '\0');
  const ssize_t count = ::pread(file.get(), bytes.data(), size, offset);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return bytes;
}

TEST_F(PageCacheTest, ServersAreAskedOnceWhateverReads) {
  mount_cached();
  const std::string content = random_bytes(1 << 20, 1);
  make_file(content);
  const auto size = static_cast<std::int64_t>(content.size());
  EXPECT_EQ(counter("read_bytes"), 0);
  in_processes(4,
               [&](int) { return read_at(open(O_RDONLY), 0, content.size()) == content ? 0 : 1; });
  EXPECT_EQ(counter("read_bytes"), size) << "each byte once for four processes";
  const FileDescriptor again = open(O_RDONLY);
  EXPECT_TRUE(read_at(again, 0, content.size()) == content);
  EXPECT_EQ(counter("read_bytes"), size) << "and none for a later opening";
  forget_pages(again);
  EXPECT_TRUE(read_at(again, 0, content.size()) == content);
  EXPECT_EQ(counter("read_bytes"), 2 * size) << "what was dropped is fetched";
  const FileDescriptor direct = open(O_RDONLY | O_DIRECT);
  const std::int64_t before = counter("read_bytes");
  ASSERT_EQ(read_at(direct, 0, 4096), content.substr(0, 4096));
  EXPECT_EQ(counter("read_bytes"), before + 4096) << "O_DIRECT passes the page cache";
}

TEST_F(PageCacheTest, WritesReachTheServersAtOnceAndAreKept) {
  mount_cached();
  const std::string content = random_bytes(256 << 10, 2);
  const FileDescriptor file = open(O_RDWR | O_CREAT);
  ASSERT_EQ(::pwrite(file.get(), content.data(), content.size(), 0),
            static_cast<ssize_t>(content.size()));
  EXPECT_EQ(counter("write_bytes"), static_cast<std::int64_t>(content.size()));
  EXPECT_TRUE(content_of(in_backing("file")) == content);
  EXPECT_TRUE(read_at(open(O_RDONLY), 0, content.size()) == content);
  EXPECT_EQ(counter("read_bytes"), 0) << "whole pages that were written need no reading";
}

TEST_F(PageCacheTest, AllOpeningsSeeTheSameBytes) {
  mount_cached();
  constexpr std::size_t largest = 600'000;
  std::string expected = random_bytes(largest / 2, 3);
  make_file(expected);
  const std::array<FileDescriptor, 3> openings = {open(O_RDWR), open(O_RDWR),
                                                  open(O_RDWR | O_DIRECT)};
  auto* const map = static_cast<char*>(
      ::mmap(nullptr, largest, PROT_READ | PROT_WRITE, MAP_SHARED, openings[0].get(), 0));
  ASSERT_NE(map, MAP_FAILED);
  std::mt19937_64 random(4);
  for (int step = 0; step < 400; ++step) {
    const FileDescriptor& file = openings[random() % openings.size()];
    const std::size_t offset = random() % (largest - 20'000);
    const std::string piece = random_bytes(1 + random() % 20'000, random());
    switch (random() % 4) {
      case 0:
      case 1:
        ASSERT_EQ(::pwrite(file.get(), piece.data(), piece.size(), static_cast<off_t>(offset)),
                  static_cast<ssize_t>(piece.size()));
        if (expected.size() < offset + piece.size()) expected.resize(offset + piece.size(), '\0');
        expected.replace(offset, piece.size(), piece);
        break;
      case 2: {
        if (offset >= expected.size()) break;
        // Synchronised: what is written past the page cache would else be under dirty pages.
        const std::size_t length = std::min(piece.size(), expected.size() - offset);
        std::copy_n(piece.begin(), length, map + offset);
        ASSERT_EQ(::msync(map, largest, MS_SYNC), 0);
        expected.replace(offset, length, piece, 0, length);
        break;
      }
      default:
        ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(offset)), 0);
        expected.resize(offset, '\0');
    }
    const FileDescriptor& reader = openings[random() % openings.size()];
    ASSERT_TRUE(read_at(reader, 0, largest) == expected) << "step " << step;
    ASSERT_TRUE(expected.compare(0, expected.size(), map, expected.size()) == 0)
        << "the mapping, step " << step;
  }
  ASSERT_EQ(::munmap(map, largest), 0);
  EXPECT_TRUE(content_of(in_backing("file")) == expected);
}

TEST_F(PageCacheTest, TheKernelReadsAheadAsFarAsItIsTold) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can set how far the kernel reads ahead";
  mount_cached({"--read-ahead", "1MiB"});
  EXPECT_EQ(state().at("parameters").at("read_ahead_bytes"), 1 << 20);
  const std::string content = random_bytes(4 << 20, 5);
  make_file(content);
  const FileDescriptor file = open(O_RDONLY);
  for (std::size_t at = 0; at < content.size(); at += 4096) {
    ASSERT_TRUE(read_at(file, static_cast<off_t>(at), 4096) == content.substr(at, 4096)) << at;
  }
  EXPECT_EQ(counter("read_bytes"), static_cast<std::int64_t>(content.size()));
  // No request of the default read-ahead exceeds 128 KiB: at least 32 of them.
  EXPECT_LT(counter("read_requests"), 32);
}

TEST_F(PageCacheTest, LeavesTheReadAheadAsItIsAndTellsIt) {
  mount_cached();
  const auto parameters = state().at("parameters");
  EXPECT_TRUE(parameters.at("page_cache"));
  EXPECT_GE(parameters.at("read_ahead_bytes"), 4096);
}

TEST_F(PageCacheTest, PagesBesideWhatCannotBeReadAreRead) {
  mount_cached({"--unreadable", "102400+1"});
  const std::string content = random_bytes(256 << 10, 6);
  make_file(content);
  const FileDescriptor file = open(O_RDONLY);
  EXPECT_EQ(read_at(file, 0, 102'400), content.substr(0, 102'400));
  EXPECT_EQ(read_at(file, 98'304, 8192), content.substr(98'304, 4096)) << "up to the page";
  std::array<char, 1> byte{};
  EXPECT_EQ(::pread(file.get(), byte.data(), 1, 106'495), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(read_at(file, 106'496, 100'000), content.substr(106'496, 100'000));
}

}  // namespace
}  // namespace forebay::testbed
