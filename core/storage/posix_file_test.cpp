// Goal: PosixFile moves every byte whatever the system calls return, and names what went wrong.
// Method: real files in the temporary directory; limits of the process (RLIMIT_FSIZE) and /dev/full
// make real system calls fall short and fail.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstring>
#include <future>
#include <string>
#include <vector>

#include "core/model/noise.hpp"
#include "core/storage/file.hpp"

namespace forebay {
namespace {

class PosixFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "forebay-posix-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    path_ = directory_ + "/data";
    ASSERT_EQ(::close(::open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)), 0);
  }

  void TearDown() override {
    ::unlink(path_.c_str());
    ::rmdir(directory_.c_str());
  }

  std::unique_ptr<StorageFile> open(OpenMode mode = OpenMode::read_write) {
    auto file = open_posix_file(path_, mode, counters_);
    if (!file) {
      ADD_FAILURE() << to_string(file.error());
      return nullptr;
    }
    return std::move(*file);
  }

  std::vector<std::byte> content(StorageFile& file) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(file.size().value()));
    EXPECT_EQ(file.read_at(bytes, 0).value(), static_cast<Bytes>(bytes.size()));
    return bytes;
  }

  std::string directory_;
  std::string path_;
  Counters counters_;
};

TEST_F(PosixFileTest, WhatIsWrittenIsRead) {
  const auto file = open();
  const auto data = noise(100'000, 1);
  ASSERT_TRUE(file->write_at(data, 12345));
  EXPECT_EQ(file->size().value(), 112'345);
  std::vector<std::byte> back(data.size());
  EXPECT_EQ(file->read_at(back, 12345).value(), 100'000);
  EXPECT_EQ(back, data);
  EXPECT_TRUE(file->sync());
  EXPECT_EQ(file->path(), path_);
}

TEST_F(PosixFileTest, OpeningsOfOneFileHaveOneId) {
  const auto file = open();
  ASSERT_TRUE(file->id());
  const auto again = open();
  EXPECT_EQ(again->id(), file->id());
  const auto other = open_posix_file("/proc/version", OpenMode::read_only, counters_);
  ASSERT_TRUE(other);
  EXPECT_NE((*other)->id(), file->id());
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  EXPECT_EQ(again->id(), file->id()) << "without a name too";
}

TEST_F(PosixFileTest, ReadsFallShortAtTheEndOfTheFileOnly) {
  const auto file = open();
  ASSERT_TRUE(file->write_at(noise(100, 1), 0));
  std::vector<std::byte> buffer(60);
  EXPECT_EQ(file->read_at(buffer, 0).value(), 60);
  EXPECT_EQ(file->read_at(buffer, 70).value(), 30);
  EXPECT_EQ(file->read_at(buffer, 100).value(), 0);
  EXPECT_EQ(file->read_at(buffer, 5000).value(), 0);
}

TEST_F(PosixFileTest, EmptyTransfersMakeNoSystemCall) {
  const auto file = open();
  EXPECT_TRUE(file->write_at({}, 50));
  EXPECT_EQ(file->read_at({}, 50).value(), 0);
  EXPECT_TRUE(file->write_pieces({}, 50));
  EXPECT_EQ(file->size().value(), 0);
  EXPECT_EQ(counters_.storage_writes, 0);
  EXPECT_EQ(counters_.storage_reads, 0);
}

TEST_F(PosixFileTest, MorePiecesThanOneSystemCallTakes) {
  const auto file = open();
  constexpr std::size_t pieces = 2 * IOV_MAX + 7;
  auto data = noise(pieces * 3, 2);
  std::vector<iovec> list;
  for (std::size_t i = 0; i < pieces; ++i) {
    // Every seventh piece is empty.
    list.push_back({&data[i * 3], i % 7 == 0 ? 0u : 3u});
  }
  std::vector<std::byte> expected;
  for (const iovec& piece : list) {
    const auto* begin = static_cast<const std::byte*>(piece.iov_base);
    expected.insert(expected.end(), begin, begin + piece.iov_len);
  }
  ASSERT_TRUE(file->write_pieces(list, 0));
  EXPECT_EQ(content(*file), expected);
  EXPECT_EQ(counters_.storage_writes, 2) << "1758 pieces that are not empty";

  std::vector<std::byte> back(data.size());
  for (std::size_t i = 0; i < pieces; ++i) list[i].iov_base = &back[i * 3];
  EXPECT_EQ(file->read_pieces(list, 0).value(), static_cast<Bytes>(expected.size()));
  for (std::size_t i = 0; i < pieces; ++i) {
    ASSERT_EQ(std::memcmp(&back[i * 3], &data[i * 3], list[i].iov_len), 0) << "piece " << i;
  }
}

TEST_F(PosixFileTest, PiecesFallShortAtTheEndOfTheFile) {
  const auto file = open();
  const auto data = noise(10, 3);
  ASSERT_TRUE(file->write_at(data, 0));
  std::vector<std::byte> back(20);
  const std::vector<iovec> list{{&back[0], 4}, {&back[4], 4}, {&back[8], 8}};
  EXPECT_EQ(file->read_pieces(list, 2).value(), 8);
  EXPECT_EQ(std::memcmp(back.data(), data.data() + 2, 8), 0);
}

TEST_F(PosixFileTest, CountsCallsAndBytesOfTheFileSystem) {
  const auto file = open();
  ASSERT_TRUE(file->write_at(noise(1000, 4), 0));
  std::vector<std::byte> buffer(700);
  ASSERT_TRUE(file->read_at(buffer, 0));
  EXPECT_EQ(counters_.storage_writes, 1);
  EXPECT_EQ(counters_.storage_bytes_written, 1000);
  EXPECT_EQ(counters_.storage_reads, 1);
  EXPECT_EQ(counters_.storage_bytes_read, 700);
  EXPECT_GT(counters_.storage_ns, 0);
}

TEST_F(PosixFileTest, ResizeCutsAndExtendsWithZeros) {
  const auto file = open();
  ASSERT_TRUE(file->write_at(noise(100, 5), 0));
  ASSERT_TRUE(file->resize(10));
  ASSERT_TRUE(file->resize(20));
  const auto bytes = content(*file);
  ASSERT_EQ(bytes.size(), 20u);
  EXPECT_EQ(std::vector(bytes.begin() + 10, bytes.end()), std::vector<std::byte>(10));
  EXPECT_EQ(file->resize(-1).error().kind, ErrorKind::invalid_argument);
}

TEST_F(PosixFileTest, AllocateGrowsWithZerosAndNeverCuts) {
  const auto file = open();
  const auto data = noise(100, 5);
  ASSERT_TRUE(file->write_at(data, 0));
  ASSERT_TRUE(file->allocate(0));
  ASSERT_TRUE(file->allocate(10));
  EXPECT_EQ(content(*file), data);
  ASSERT_TRUE(file->allocate(5000));
  const auto bytes = content(*file);
  ASSERT_EQ(bytes.size(), 5000u);
  EXPECT_EQ(std::vector(bytes.begin(), bytes.begin() + 100), data);
  EXPECT_EQ(std::vector(bytes.begin() + 100, bytes.end()), std::vector<std::byte>(4900));
  EXPECT_EQ(file->allocate(-1).error().kind, ErrorKind::invalid_argument);
}

TEST_F(PosixFileTest, IsLengthenedWithZerosAndNeverCut) {
  const auto file = open();
  const auto data = noise(100, 5);
  ASSERT_TRUE(file->write_at(data, 0));
  for (const Bytes size : {0, 10, 100}) {
    file->lengthen(size);
    EXPECT_EQ(content(*file), data);
  }
  file->lengthen(100'000);
  ASSERT_EQ(file->size(), 100'000);
  file->lengthen(5000);
  const auto bytes = content(*file);
  ASSERT_EQ(bytes.size(), 100'000u);
  EXPECT_EQ(std::vector(bytes.begin(), bytes.begin() + 100), data);
  EXPECT_EQ(std::vector(bytes.begin() + 100, bytes.end()), std::vector<std::byte>(99'900));
}

TEST_F(PosixFileTest, ReadingAheadAndWritebackChangeNothing) {
  const auto data = noise(100'000, 5);
  ASSERT_TRUE(open()->write_at(data, 0));
  for (const OpenMode mode : {OpenMode::read_write, OpenMode::read_only, OpenMode::write_only}) {
    const auto file = open(mode);
    for (const Extent extent : {Extent{0, 100'000}, {50'000, 0}, {99'000, 5000}, {-5, 10}}) {
      file->read_ahead(extent);
      file->start_writeback(extent);
    }
    EXPECT_EQ(content(*file), data);
    EXPECT_TRUE(file->sync());
  }
}

TEST_F(PosixFileTest, DescriptorsStayOutOfTheLowNumbersAndOfChildren) {
  // The lowest free number before and after is the same.
  const int before = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(before);
  const auto file = open();
  const int after = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(after);
  EXPECT_EQ(before, after);
  struct stat wanted{};
  ASSERT_EQ(::stat(path_.c_str(), &wanted), 0);
  int found = -1;
  for (int fd = 100; fd < 200 && found < 0; ++fd) {
    struct stat status{};
    if (::fstat(fd, &status) == 0 && status.st_ino == wanted.st_ino &&
        status.st_dev == wanted.st_dev) {
      found = fd;
    }
  }
  ASSERT_GE(found, 100);
  EXPECT_EQ(::fcntl(found, F_GETFD), FD_CLOEXEC);
}

TEST_F(PosixFileTest, ErrorsSayWhatWasBeingDone) {
  const auto missing = open_posix_file(directory_ + "/none", OpenMode::read_only, counters_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::no_such_file);
  EXPECT_EQ(to_string(missing.error()), "open " + directory_ + "/none: No such file or directory");

  const auto folder = open_posix_file(directory_, OpenMode::read_write, counters_);
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().os_errno, EISDIR);

  const auto file = open();
  const auto negative = file->write_at(noise(1, 6), -5);
  ASSERT_FALSE(negative);
  EXPECT_EQ(to_string(negative.error()), "write 1 bytes at -5 to " + path_ + ": Invalid argument");
}

TEST_F(PosixFileTest, AFullDeviceIsNoSpace) {
  const auto full = open_posix_file("/dev/full", OpenMode::read_write, counters_);
  ASSERT_TRUE(full) << to_string(full.error());
  const auto written = (*full)->write_at(noise(10, 7), 0);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::no_space);
  EXPECT_EQ(written.error().os_errno, ENOSPC);
  EXPECT_EQ(counters_.storage_writes, 1);
  EXPECT_EQ(counters_.storage_bytes_written, 0);
}

TEST_F(PosixFileTest, AShortWriteIsResumedAndItsReasonReported) {
  // The kernel writes up to the limit, which is a short write, and refuses the rest when asked
  // again.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limit{1000, before.rlim_max};
  const auto file = open();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto data = noise(1500, 8);
  const auto written = file->write_at(data, 0);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);

  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().os_errno, EFBIG);
  EXPECT_EQ(written.error().kind, ErrorKind::io);
  EXPECT_EQ(counters_.storage_writes, 2);
  EXPECT_EQ(counters_.storage_bytes_written, 1000);
  EXPECT_EQ(content(*file), std::vector(data.begin(), data.begin() + 1000));
}

TEST_F(PosixFileTest, ReadOnlyFilesAreNotWritten) {
  ASSERT_TRUE(open()->write_at(noise(10, 9), 0));
  const auto file = open(OpenMode::read_only);
  EXPECT_EQ(file->write_at(noise(1, 9), 0).error().kind, ErrorKind::read_only);
  EXPECT_EQ(file->resize(3).error().kind, ErrorKind::read_only);
  EXPECT_EQ(file->allocate(3).error().kind, ErrorKind::read_only);
  file->lengthen(100);
  EXPECT_EQ(file->lock({0, 1}, StorageFile::LockKind::exclusive).error().kind, ErrorKind::access);
  EXPECT_TRUE(file->lock({0, 1}, StorageFile::LockKind::shared));
  EXPECT_EQ(content(*file), noise(10, 9));
}

TEST_F(PosixFileTest, WriteOnlyFilesCanBeReadWhereTheFileSystemLets) {
  const auto file = open(OpenMode::write_only);
  ASSERT_TRUE(file->write_at(noise(10, 10), 0));
  EXPECT_EQ(content(*file), noise(10, 10)) << "read-modify-write needs this";
}

TEST_F(PosixFileTest, WriteOnlyFilesWithoutReadPermissionAreStillWritten) {
  ASSERT_EQ(::chmod(path_.c_str(), 0200), 0);
  // Permissions do not bind root: become nobody for the opening, in a child, which has its own ids.
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    if (::geteuid() == 0 &&
        (::chown(path_.c_str(), nobody, nobody) != 0 || ::chmod(directory_.c_str(), 0755) != 0 ||
         ::setgid(nobody) != 0 || ::setuid(nobody) != 0)) {
      ::_exit(10);
    }
    auto file = open_posix_file(path_, OpenMode::write_only, counters_);
    if (!file) ::_exit(11);
    if (!(*file)->write_at(noise(10, 11), 0)) ::_exit(12);
    std::vector<std::byte> buffer(10);
    const auto read = (*file)->read_at(buffer, 0);
    if (read || read.error().kind != ErrorKind::access) ::_exit(13);
    if (!(*file)->lock({0, 5}, StorageFile::LockKind::shared)) ::_exit(14);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(::chmod(path_.c_str(), 0600), 0);
  EXPECT_EQ(content(*open(OpenMode::read_only)), noise(10, 11));
}

// Whether another opening could lock `range` now, asked without waiting.
bool lockable(const std::string& path, Extent range, short type) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct flock request{};
  request.l_type = type;
  request.l_whence = SEEK_SET;
  request.l_start = range.offset;
  request.l_len = range.length;
  const bool free = ::fcntl(fd, F_OFD_SETLK, &request) == 0;
  ::close(fd);
  return free;
}

TEST_F(PosixFileTest, LocksHoldAgainstOtherOpeningsOfTheSameProcess) {
  const auto file = open();
  ASSERT_TRUE(file->lock({10, 20}, StorageFile::LockKind::exclusive));
  EXPECT_FALSE(lockable(path_, {29, 1}, F_RDLCK));
  EXPECT_TRUE(lockable(path_, {30, 10}, F_WRLCK));
  EXPECT_TRUE(lockable(path_, {0, 10}, F_WRLCK));
  ASSERT_TRUE(file->unlock({10, 20}));
  EXPECT_TRUE(lockable(path_, {10, 20}, F_WRLCK));

  ASSERT_TRUE(file->lock({10, 20}, StorageFile::LockKind::shared));
  EXPECT_TRUE(lockable(path_, {10, 20}, F_RDLCK));
  EXPECT_FALSE(lockable(path_, {10, 20}, F_WRLCK));
}

TEST_F(PosixFileTest, LocksHoldAgainstTheLocksOfStockLibraries) {
  const auto file = open();
  ASSERT_TRUE(file->lock({0, 8}, StorageFile::LockKind::exclusive));
  const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  struct flock request{};
  request.l_type = F_WRLCK;
  request.l_whence = SEEK_SET;
  request.l_len = 8;
  EXPECT_EQ(::fcntl(fd, F_SETLK, &request), -1);
  EXPECT_EQ(errno, EAGAIN);
  ::close(fd);
}

TEST_F(PosixFileTest, ALockIsWaitedFor) {
  const auto first = open();
  const auto second = open();
  ASSERT_TRUE(first->lock({0, 100}, StorageFile::LockKind::exclusive));
  ASSERT_TRUE(first->write_at(noise(8, 12), 0));
  auto waiting = std::async(std::launch::async, [&] {
    EXPECT_TRUE(second->lock({50, 10}, StorageFile::LockKind::exclusive));
    return second->size().value();
  });
  // Whether the other thread waits already or not, it must see what is done under the lock.
  ASSERT_TRUE(first->resize(4000));
  ASSERT_TRUE(first->unlock({0, 100}));
  EXPECT_EQ(waiting.get(), 4000);
}

TEST_F(PosixFileTest, AnEmptyRangeIsNotTheWholeFile) {
  const auto file = open();
  ASSERT_TRUE(file->lock({0, 0}, StorageFile::LockKind::exclusive));
  EXPECT_TRUE(lockable(path_, {0, 100}, F_WRLCK)) << "fcntl takes length 0 as up to the end";
}

}  // namespace
}  // namespace forebay
