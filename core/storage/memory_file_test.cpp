// Goal: MemoryFile keeps the contract of StorageFile, so that what is tested on it holds on
// PosixFile. Method: the same sequence of random calls on both gives the same results and the same
// content.

#include "core/storage/memory_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <limits>
#include <random>
#include <string>
#include <thread>

#include "core/model/noise.hpp"

namespace forebay {
namespace {

using Lock = StorageFile::LockKind;

TEST(MemoryFile, AgreesWithPosixFile) {
  std::string path = testing::TempDir() + "forebay-memory-XXXXXX";
  const int fd = ::mkstemp(path.data());
  ASSERT_GE(fd, 0);
  ::close(fd);
  Counters posix_counters;
  Counters memory_counters;
  auto opened = open_posix_file(path, OpenMode::read_write, posix_counters);
  ::unlink(path.c_str());
  ASSERT_TRUE(opened);
  StorageFile& posix = **opened;
  const auto inode = std::make_shared<MemoryInode>();
  const auto memory = open_memory_file(inode, memory_counters);

  std::mt19937 random(20240607);
  const auto up_to = [&](Bytes high) {
    return std::uniform_int_distribution<Bytes>(0, high)(random);
  };
  for (int step = 0; step < 2000; ++step) {
    const Bytes offset = up_to(5000);
    auto data = noise(static_cast<std::size_t>(up_to(300)), random());
    switch (up_to(4)) {
      case 0:
        ASSERT_TRUE(posix.write_at(data, offset));
        ASSERT_TRUE(memory->write_at(data, offset));
        break;
      case 1: {
        const std::size_t cut = data.size() / 3;
        const std::vector<iovec> pieces{
            {data.data() + cut, data.size() - cut}, {nullptr, 0}, {data.data(), cut}};
        ASSERT_TRUE(posix.write_pieces(pieces, offset));
        ASSERT_TRUE(memory->write_pieces(pieces, offset));
        break;
      }
      case 2: {
        auto other = data;
        ASSERT_EQ(posix.read_at(data, offset).value(), memory->read_at(other, offset).value());
        ASSERT_EQ(data, other);
        break;
      }
      case 3: {
        auto other = data;
        const std::size_t cut = data.size() / 2;
        const std::vector<iovec> a{{data.data(), cut}, {data.data() + cut, data.size() - cut}};
        const std::vector<iovec> b{{other.data(), cut}, {other.data() + cut, data.size() - cut}};
        ASSERT_EQ(posix.read_pieces(a, offset).value(), memory->read_pieces(b, offset).value());
        ASSERT_EQ(data, other);
        break;
      }
      default:
        ASSERT_TRUE(posix.resize(offset));
        ASSERT_TRUE(memory->resize(offset));
    }
    ASSERT_EQ(posix.size().value(), memory->size().value());
  }
  EXPECT_EQ(posix_counters.storage_bytes_written, memory_counters.storage_bytes_written);
  EXPECT_EQ(posix_counters.storage_bytes_read, memory_counters.storage_bytes_read);

  std::vector<std::byte> content(static_cast<std::size_t>(posix.size().value()));
  ASSERT_TRUE(posix.read_at(content, 0));
  EXPECT_EQ(content, inode->content());
}

TEST(MemoryFile, OpeningsShareTheContent) {
  const auto inode = std::make_shared<MemoryInode>(StripeLayout{64, 4, true}, "/mem/a");
  Counters counters;
  const auto one = open_memory_file(inode, counters);
  const auto two = open_memory_file(inode, counters);
  const std::vector data{std::byte{1}, std::byte{2}};
  ASSERT_TRUE(one->write_at(data, 2));
  EXPECT_EQ(two->size().value(), 4);
  EXPECT_EQ(two->path(), "/mem/a");
  EXPECT_EQ(two->layout(), (StripeLayout{64, 4, true}));
}

TEST(MemoryFile, RefusesWhatCannotBe) {
  Counters counters;
  const auto file = open_memory_file(std::make_shared<MemoryInode>(), counters);
  std::vector<std::byte> data(1);
  EXPECT_EQ(file->write_at(data, -1).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(file->read_at(data, -1).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(file->resize(-1).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(file->write_at(data, Bytes{1} << 62).error().kind, ErrorKind::io);
  EXPECT_EQ(file->write_at(data, std::numeric_limits<Bytes>::max()).error().kind, ErrorKind::io);
  EXPECT_EQ(file->resize(Bytes{1} << 62).error().kind, ErrorKind::io);
  EXPECT_EQ(file->allocate(-1).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(file->allocate(Bytes{1} << 62).error().kind, ErrorKind::io);
  EXPECT_EQ(file->size().value(), 0);
}

TEST(MemoryFile, AllocateGrowsAndNeverCuts) {
  Counters counters;
  const auto file = open_memory_file(std::make_shared<MemoryInode>(), counters);
  ASSERT_TRUE(file->allocate(20));
  EXPECT_EQ(file->size().value(), 20);
  ASSERT_TRUE(file->allocate(10));
  EXPECT_EQ(file->size().value(), 20);
}

TEST(MemoryFile, ExclusiveLocksKeepCountersWhole) {
  // Each thread adds 1 to a byte by a read and a write; without the lock increments would be lost.
  const auto inode = std::make_shared<MemoryInode>();
  constexpr int threads = 4;
  constexpr int rounds = 50;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&inode] {
        Counters counters;
        const auto file = open_memory_file(inode, counters);
        for (int round = 0; round < rounds; ++round) {
          ASSERT_TRUE(file->lock({0, 1}, Lock::exclusive));
          std::vector<std::byte> value(1);
          ASSERT_TRUE(file->read_at(value, 0));
          value[0] = static_cast<std::byte>(std::to_integer<int>(value[0]) + 1);
          ASSERT_TRUE(file->write_at(value, 0));
          ASSERT_TRUE(file->unlock({0, 1}));
        }
      });
    }
  }
  EXPECT_EQ(std::to_integer<int>(inode->content().at(0)), threads * rounds);
}

TEST(MemoryFile, SharedLocksAndDisjointRangesGoTogether) {
  const auto inode = std::make_shared<MemoryInode>();
  Counters counters;
  const auto one = open_memory_file(inode, counters);
  const auto two = open_memory_file(inode, counters);
  ASSERT_TRUE(one->lock({0, 10}, Lock::shared));
  ASSERT_TRUE(two->lock({5, 10}, Lock::shared));
  ASSERT_TRUE(two->lock({100, 10}, Lock::exclusive));
  ASSERT_TRUE(one->lock({110, 10}, Lock::exclusive));
}

TEST(MemoryFile, ClosingReleasesLocks) {
  const auto inode = std::make_shared<MemoryInode>();
  Counters counters;
  auto one = open_memory_file(inode, counters);
  const auto two = open_memory_file(inode, counters);
  ASSERT_TRUE(one->lock({0, 10}, Lock::exclusive));
  auto waiting = std::async(std::launch::async, [&] { return two->lock({0, 1}, Lock::shared); });
  one.reset();
  EXPECT_TRUE(waiting.get());
}

}  // namespace
}  // namespace forebay
