// Goal: the mounted testbed behaves like a POSIX file system, in everything that MPI libraries,
// HDF5 and shells ask of one, and keeps every byte, with the kernel's page cache and without.
// Method: the calls, on a fast testbed, compared with the backing directory and with what is known
// of the data.

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "testbed/file_descriptor.hpp"
#include "testbed/tests/mounted_testbed.hpp"

namespace forebay::testbed {
namespace {

enum class Reads { from_servers, through_page_cache };

class PosixTest : public MountedTestbed, public testing::WithParamInterface<Reads> {
 protected:
  void SetUp() override {
    MountedTestbed::SetUp();
    if (IsSkipped()) return;
    std::vector<std::string> options = {"--bandwidth", "1GB/s",       "--latency",
                                        "50us",        "--lock-cost", "10us"};
    if (GetParam() == Reads::through_page_cache) options.push_back("--page-cache");
    mount(options);
  }

  FileDescriptor open(const std::string& name, int flags, mode_t mode = 0644) const {
    return FileDescriptor(::open(on_mount(name).c_str(), flags | O_CLOEXEC, mode));
  }
  FileDescriptor create(const std::string& name) const {
    return open(name, O_RDWR | O_CREAT | O_EXCL);
  }
  struct stat status_of(const std::string& name) const {
    struct stat status{};
    EXPECT_EQ(::lstat(on_mount(name).c_str(), &status), 0) << name;
    return status;
  }
};

std::string random_bytes(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string read_all(int fd) {
  std::string content;
  std::vector<char> buffer(100'000);
  off_t offset = 0;
  for (ssize_t n; (n = ::pread(fd, buffer.data(), buffer.size(), offset)) > 0; offset += n) {
    content.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return content;
}

TEST_P(PosixTest, KeepsEveryByteOfRandomWritesAndTruncations) {
  const FileDescriptor file = create("file");
  ASSERT_TRUE(file.valid());
  std::mt19937_64 random(3);
  std::string expected;
  for (int i = 0; i < 200; ++i) {
    if (i % 20 == 19) {
      const std::size_t size = random() % (expected.size() + 100'000);
      ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(size)), 0);
      expected.resize(size, '\0');
      continue;
    }
    const std::size_t offset = random() % 3'000'000;
    const std::size_t longest = i % 10 == 0 ? 2'000'000 : 5'000;
    const std::string piece = random_bytes(1 + random() % longest, random());
    ASSERT_EQ(::pwrite(file.get(), piece.data(), piece.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(piece.size()));
    if (expected.size() < offset + piece.size()) expected.resize(offset + piece.size(), '\0');
    expected.replace(offset, piece.size(), piece);
    if (i % 10 == 0) {
      ASSERT_TRUE(read_all(file.get()) == expected) << "after step " << i;
    }
  }
  ASSERT_EQ(::fsync(file.get()), 0);
  EXPECT_EQ(status_of("file").st_size, static_cast<off_t>(expected.size()));
  EXPECT_TRUE(content_of(on_mount("file")) == expected);
  EXPECT_TRUE(content_of(in_backing("file")) == expected);
}

TEST_P(PosixTest, ConcurrentWritersOfInterleavedPiecesKeepEveryByte) {
  constexpr std::size_t piece = 1000;
  constexpr int pieces = 300;
  constexpr int writers = 4;
  const std::string expected = random_bytes(piece * pieces * writers, 4);
  for (const bool presized : {true, false}) {
    const std::string name = presized ? "presized" : "growing";
    const FileDescriptor file = create(name);
    if (presized) {
      ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(expected.size())), 0);
    }
    in_processes(writers, [&](int writer) {
      const FileDescriptor mine = open(name, O_WRONLY);
      for (int i = 0; i < pieces; ++i) {
        const std::size_t offset = static_cast<std::size_t>(i * writers + writer) * piece;
        if (::pwrite(mine.get(), expected.data() + offset, piece, static_cast<off_t>(offset)) !=
            static_cast<ssize_t>(piece)) {
          return 1;
        }
      }
      return 0;
    });
    EXPECT_TRUE(read_all(file.get()) == expected) << name;
    EXPECT_TRUE(content_of(in_backing(name)) == expected) << name;
  }
}

TEST_P(PosixTest, AppendersDoNotOverwriteEachOther) {
  in_processes(3, [&](int writer) {
    const FileDescriptor mine = open("log", O_WRONLY | O_CREAT | O_APPEND);
    const std::string line(99, static_cast<char>('a' + writer));
    for (int i = 0; i < 50; ++i) {
      if (::write(mine.get(), (line + "\n").data(), 100) != 100) return 1;
    }
    return 0;
  });
  std::ifstream log(on_mount("log"));
  int count = 0;
  for (std::string line; std::getline(log, line); ++count) {
    ASSERT_EQ(line, std::string(99, line.empty() ? '?' : line[0]));
  }
  EXPECT_EQ(count, 150);
}

TEST_P(PosixTest, SparseFilesHaveHoles) {
  const FileDescriptor file = create("sparse");
  ASSERT_EQ(::pwrite(file.get(), "end", 3, 10 << 20), 3);
  EXPECT_EQ(status_of("sparse").st_size, (10 << 20) + 3);
  char buffer[5] = "xxxx";
  ASSERT_EQ(::pread(file.get(), buffer, 4, 5 << 20), 4);
  EXPECT_EQ(std::string(buffer, 4), std::string(4, '\0'));
  EXPECT_EQ(::pread(file.get(), buffer, 4, 11 << 20), 0) << "end of file";
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_DATA), 10 << 20);
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_HOLE), 0);
}

TEST_P(PosixTest, OpeningHonoursItsFlags) {
  EXPECT_TRUE(create("file").valid());
  EXPECT_FALSE(create("file").valid());
  EXPECT_EQ(errno, EEXIST);
  EXPECT_FALSE(open("absent", O_RDWR).valid());
  EXPECT_EQ(errno, ENOENT);
  const FileDescriptor writer = open("file", O_WRONLY | O_CREAT);
  ASSERT_EQ(::write(writer.get(), "content", 7), 7);
  char byte = 0;
  EXPECT_EQ(::read(writer.get(), &byte, 1), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(content_of(on_mount("file")), "content");
  EXPECT_TRUE(open("file", O_RDWR | O_TRUNC).valid());
  EXPECT_EQ(status_of("file").st_size, 0);
  const FileDescriptor synchronous = open("file", O_RDWR | O_SYNC | O_DIRECT);
  EXPECT_EQ(::write(synchronous.get(), "odd", 3), 3) << "O_DIRECT needs no alignment here";
}

TEST_P(PosixTest, RenamesLinksAndUnlinks) {
  std::ofstream(on_mount("a")) << "a";
  std::ofstream(on_mount("b")) << "b";
  ASSERT_EQ(::rename(on_mount("a").c_str(), on_mount("b").c_str()), 0);
  EXPECT_EQ(content_of(on_mount("b")), "a");
  EXPECT_FALSE(std::filesystem::exists(in_backing("a")));
  std::ofstream(on_mount("c")) << "c";
  EXPECT_EQ(::renameat2(AT_FDCWD, on_mount("c").c_str(), AT_FDCWD, on_mount("b").c_str(),
                        RENAME_NOREPLACE),
            -1);
  EXPECT_EQ(errno, EEXIST);

  ASSERT_EQ(::link(on_mount("b").c_str(), on_mount("b_too").c_str()), 0);
  EXPECT_EQ(status_of("b").st_nlink, 2u);
  EXPECT_EQ(status_of("b").st_ino, status_of("b_too").st_ino);
  ASSERT_EQ(::symlink("b", on_mount("to_b").c_str()), 0);
  EXPECT_EQ(std::filesystem::read_symlink(on_mount("to_b")), "b");
  EXPECT_EQ(content_of(on_mount("to_b")), "a");
  EXPECT_TRUE(S_ISLNK(status_of("to_b").st_mode));

  const FileDescriptor open_file = open("b", O_RDWR);
  ASSERT_EQ(::unlink(on_mount("b").c_str()), 0);
  ASSERT_EQ(::unlink(on_mount("b_too").c_str()), 0);
  EXPECT_EQ(read_all(open_file.get()), "a") << "an unlinked file lives while it is open";
  EXPECT_EQ(::pwrite(open_file.get(), "b", 1, 1), 1);
  EXPECT_EQ(read_all(open_file.get()), "ab");
  EXPECT_EQ(::unlink(on_mount("b").c_str()), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST_P(PosixTest, ListsDirectoriesOfAnySize) {
  ASSERT_EQ(::mkdir(on_mount("many").c_str(), 0755), 0);
  std::set<std::string> expected;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "an_entry_with_a_long_name_" + std::to_string(i);
    expected.insert(name);
    std::ofstream(on_mount("many") / name);
  }
  std::set<std::string> listed;
  for (const auto& entry : std::filesystem::directory_iterator(on_mount("many"))) {
    EXPECT_TRUE(listed.insert(entry.path().filename()).second) << "listed twice";
  }
  EXPECT_EQ(listed, expected);
  EXPECT_EQ(::rmdir(on_mount("many").c_str()), -1);
  EXPECT_EQ(errno, ENOTEMPTY);
  EXPECT_EQ(std::filesystem::remove_all(on_mount("many")), 1001u);
  EXPECT_FALSE(std::filesystem::exists(in_backing("many")));
}

TEST_P(PosixTest, RewindingADirectoryShowsNewEntries) {
  std::ofstream(on_mount("first"));
  DIR* directory = ::opendir(mount_.c_str());
  const auto count = [&] {
    int entries = 0;
    while (::readdir(directory) != nullptr) ++entries;
    return entries;
  };
  EXPECT_EQ(count(), 3);
  std::ofstream(on_mount("second"));
  ::rewinddir(directory);
  EXPECT_EQ(count(), 4);
  ::closedir(directory);
}

TEST_P(PosixTest, ChangesAttributes) {
  const FileDescriptor file = create("file");
  ASSERT_EQ(::chmod(on_mount("file").c_str(), 0600), 0);
  EXPECT_EQ(status_of("file").st_mode, S_IFREG | 0600u);
  const timespec times[] = {{1'000'000, 5}, {2'000'000, 6}};
  ASSERT_EQ(::utimensat(AT_FDCWD, on_mount("file").c_str(), times, 0), 0);
  EXPECT_EQ(status_of("file").st_atim.tv_sec, 1'000'000);
  EXPECT_EQ(status_of("file").st_mtim.tv_nsec, 6);
  ASSERT_EQ(::futimens(file.get(), nullptr), 0);
  EXPECT_GT(status_of("file").st_mtim.tv_sec, 1'600'000'000);
  ASSERT_EQ(::truncate(on_mount("file").c_str(), 12345), 0);
  EXPECT_EQ(status_of("file").st_size, 12345);
  EXPECT_EQ(status_of("file").st_blksize, 65536) << "the stripe";
  const mode_t mask = ::umask(027);
  EXPECT_TRUE(open("masked", O_WRONLY | O_CREAT, 0666).valid());
  ::umask(mask);
  EXPECT_EQ(status_of("masked").st_mode, S_IFREG | 0640u);
  struct statvfs space{};
  ASSERT_EQ(::statvfs(mount_.c_str(), &space), 0);
  EXPECT_GT(space.f_blocks, 0u);
}

TEST_P(PosixTest, AllocatesSpace) {
  const FileDescriptor file = create("file");
  ASSERT_EQ(::posix_fallocate(file.get(), 0, 300'000), 0);
  EXPECT_EQ(status_of("file").st_size, 300'000);
  EXPECT_GE(status_of("file").st_blocks * 512, 300'000);
}

TEST_P(PosixTest, TellsTheLayoutAndKeepsOtherAttributes) {
  std::ofstream(on_mount("file"));
  char value[64];
  for (const std::string& path : {on_mount("file").string(), mount_.string()}) {
    const ssize_t length = ::getxattr(path.c_str(), "user.forebay.stripe", value, sizeof value);
    EXPECT_EQ(std::string(value, static_cast<std::size_t>(std::max<ssize_t>(length, 0))),
              "size=65536,count=4,lock=1");
  }
  const std::string file = on_mount("file");
  EXPECT_EQ(::getxattr(file.c_str(), "user.forebay.stripe", nullptr, 0), 25);
  EXPECT_EQ(::getxattr(file.c_str(), "user.forebay.stripe", value, 3), -1);
  EXPECT_EQ(errno, ERANGE);
  EXPECT_EQ(::setxattr(file.c_str(), "user.forebay.stripe", "x", 1, 0), -1);
  EXPECT_EQ(errno, EPERM);
  if (::setxattr(in_backing("file").c_str(), "user.other", "v", 1, 0) != 0) {
    GTEST_SKIP() << "the backing file system keeps no user attributes";
  }
  ASSERT_EQ(::setxattr(file.c_str(), "user.other", "value", 5, 0), 0);
  EXPECT_EQ(::getxattr(file.c_str(), "user.other", value, sizeof value), 5);
  EXPECT_GT(::listxattr(file.c_str(), value, sizeof value), 0);
  EXPECT_EQ(::removexattr(file.c_str(), "user.other"), 0);
  EXPECT_EQ(::getxattr(file.c_str(), "user.other", value, sizeof value), -1);
  EXPECT_EQ(errno, ENODATA);
}

TEST_P(PosixTest, RecordLocksExcludeOtherProcesses) {
  // What ROMIO does for atomic mode and data sieving: fcntl locks of byte ranges.
  const FileDescriptor file = create("file");
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_start = 100;
  lock.l_len = 100;
  ASSERT_EQ(::fcntl(file.get(), F_SETLK, &lock), 0);
  in_processes(1, [&](int) {
    const FileDescriptor mine = open("file", O_RDWR);
    struct flock other = lock;
    other.l_start = 150;
    if (::fcntl(mine.get(), F_SETLK, &other) != -1 || errno != EAGAIN) return 1;
    other.l_start = 200;
    return ::fcntl(mine.get(), F_SETLK, &other) == 0 ? 0 : 2;
  });
  lock.l_type = F_UNLCK;
  ASSERT_EQ(::fcntl(file.get(), F_SETLK, &lock), 0);
  in_processes(1, [&](int) {
    const FileDescriptor mine = open("file", O_RDWR);
    struct flock other = lock;
    other.l_type = F_WRLCK;
    return ::fcntl(mine.get(), F_SETLKW, &other) == 0 ? 0 : 1;
  });
}

TEST_P(PosixTest, MapsFilesPrivately) {
  std::ofstream(on_mount("file")) << "mapped";
  const FileDescriptor file = open("file", O_RDONLY);
  void* map = ::mmap(nullptr, 6, PROT_READ, MAP_PRIVATE, file.get(), 0);
  ASSERT_NE(map, MAP_FAILED);
  EXPECT_EQ(std::string(static_cast<const char*>(map), 6), "mapped");
  ::munmap(map, 6);
}

TEST_P(PosixTest, ChecksPermissionsOfOtherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t nobody = 65534;
  std::ofstream(on_mount("secret")) << "secret";
  ASSERT_EQ(::chmod(on_mount("secret").c_str(), 0600), 0);
  ASSERT_EQ(::mkdir(on_mount("open").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(on_mount("open").c_str(), 0777), 0);
  in_processes(1, [&](int) {
    if (::setgid(nobody) != 0 || ::setuid(nobody) != 0) return 1;
    if (open("secret", O_RDONLY).valid() || errno != EACCES) return 2;
    if (::access(on_mount("secret").c_str(), R_OK) != -1 || errno != EACCES) return 3;
    if (create("refused").valid() || errno != EACCES) return 4;
    if (!create("open/mine").valid()) return 5;
    return ::mkdir(on_mount("open/my_directory").c_str(), 0700) == 0 ? 0 : 6;
  });
  EXPECT_EQ(status_of("open/mine").st_uid, nobody);
  EXPECT_EQ(status_of("open/mine").st_gid, nobody);
  EXPECT_EQ(status_of("open/my_directory").st_uid, nobody);
}

INSTANTIATE_TEST_SUITE_P(, PosixTest,
                         testing::Values(Reads::from_servers, Reads::through_page_cache),
                         [](const testing::TestParamInfo<Reads>& one) {
                           return one.param == Reads::from_servers ? "FromServers"
                                                                   : "ThroughPageCache";
                         });

}  // namespace
}  // namespace forebay::testbed
