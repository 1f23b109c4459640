// Goal: a file that is written past the page cache holds what one that is written through it does,
// and errors are those of the writes.
// Method: random pieces against a model, in the temporary directory; a limit of the process
// (RLIMIT_FSIZE) makes real system calls fall short and fail. What of a file is in the page cache
// is asked of the kernel (mincore). Where the directory's file system takes no such writes, the
// rest is tested all the same.

#include "core/storage/past_page_cache.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "core/model/direct_io.hpp"
#include "core/model/noise.hpp"
#include "core/storage/aligned_memory.hpp"

namespace forebay {
namespace {

/// A file in the temporary directory, and the same opened past the page cache.
class Written {
 public:
  Written() {
    std::string pattern = testing::TempDir() + "forebay-past-XXXXXX";
    Descriptor made(::mkstemp(pattern.data()));
    EXPECT_TRUE(made.valid());
    path_ = pattern;
    auto file = open_posix_file(path_, OpenMode::read_write, counters_);
    EXPECT_TRUE(file);
    const StorageFile* plain = file->get();
    file_ = past_page_cache(std::move(*file), counters_);
    is_direct_ = file_.get() != plain;
  }
  ~Written() { ::unlink(path_.c_str()); }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;

  StorageFile& file() { return *file_; }
  const std::string& path() const { return path_; }
  bool is_direct() const { return is_direct_; }

  std::vector<std::byte> content() {
    std::vector<std::byte> bytes(static_cast<std::size_t>(file_->size().value()));
    EXPECT_EQ(file_->read_at(bytes, 0).value(), static_cast<Bytes>(bytes.size()));
    return bytes;
  }

 private:
  Counters counters_;
  std::string path_;
  std::unique_ptr<StorageFile> file_;
  bool is_direct_ = false;
};

std::size_t cached_pages(const std::string& path, std::size_t bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  void* memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  EXPECT_NE(memory, MAP_FAILED);
  std::vector<unsigned char> pages((bytes + 4095) / 4096);
  EXPECT_EQ(::mincore(memory, bytes, pages.data()), 0);
  ::munmap(memory, bytes);
  return static_cast<std::size_t>(
      std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; }));
}

RC_GTEST_PROP(PastPageCache, HoldsWhatWasWritten, ()) {
  Written written;
  std::vector<std::byte> model;
  const auto writes = *rc::gen::inRange(1, 4);
  for (int i = 0; i < writes; ++i) {
    const auto offset = *rc::gen::inRange<std::size_t>(0, 3 * MiB);
    const auto random = noise(*rc::gen::inRange<std::size_t>(1, 5 * MiB), static_cast<unsigned>(i));
    // Often where a device can take it from, page for page as in the file.
    const auto skip = *rc::gen::oneOf(rc::gen::inRange<std::size_t>(0, direct_alignment),
                                      rc::gen::just(offset % direct_alignment));
    AlignedMemory memory;
    const auto data = memory.take(static_cast<Bytes>(skip + random.size())).subspan(skip);
    std::ranges::copy(random, data.begin());
    // At a random place, and behind its first bytes often: pieces need not be as pages are.
    const auto cut = *rc::gen::oneOf(rc::gen::inRange<std::size_t>(0, data.size()),
                                     rc::gen::just(std::min<std::size_t>(data.size(), 5)));
    auto* bytes = data.data();
    const std::vector<iovec> pieces{{bytes, cut}, {bytes, 0}, {bytes + cut, data.size() - cut}};
    RC_ASSERT(written.file().write_pieces(pieces, static_cast<Bytes>(offset)).has_value());
    model.resize(std::max(model.size(), offset + data.size()));
    std::ranges::copy(data, model.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  RC_ASSERT(written.content() == model);
  RC_ASSERT(written.file().sync().has_value());
}

TEST(PastPageCache, NothingOfALargeWriteStaysInMemory) {
  Written written;
  if (!written.is_direct()) GTEST_SKIP() << "the file system takes no direct writes";
  const auto data = noise(5 * MiB + 100, 1);
  ASSERT_TRUE(written.file().write_at(data, 0));
  EXPECT_EQ(cached_pages(written.path(), data.size()), 1u) << "that of its last 100 bytes";
  EXPECT_EQ(written.content(), data);
}

TEST(PastPageCache, SmallWritesMeetInMemory) {
  Written written;
  const auto data = noise(256 * KiB, 2);
  ASSERT_TRUE(written.file().write_at(data, 0));
  EXPECT_EQ(cached_pages(written.path(), data.size()), data.size() / 4096);
}

TEST(PastPageCache, WritesThatFallShortAreFinishedOrTheirReasonIsTold) {
  std::signal(SIGXFSZ, SIG_IGN);
  Written written;
  const auto data = noise(4 * MiB, 3);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  // Neither a page nor a sector ends here, so that no direct write can go on from it.
  constexpr std::size_t most = 3 * MiB + 1000;
  const rlimit limit{most, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto failed = written.file().write_at(data, 0);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().os_errno, EFBIG);
  EXPECT_EQ(written.content(), std::vector(data.begin(), data.begin() + most));
  ASSERT_TRUE(written.file().write_at(data, 0));
  EXPECT_EQ(written.content(), data);
}

TEST(PastPageCache, TheFileIsTheOneThatWasOpened) {
  Counters counters;
  Written other;
  const std::string path = other.path() + "-moved";
  auto file = open_posix_file(other.path(), OpenMode::read_write, counters);
  ASSERT_TRUE(file);
  ASSERT_EQ(::rename(other.path().c_str(), path.c_str()), 0);
  ASSERT_TRUE(Descriptor(::open(other.path().c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)).valid());
  const auto moved = past_page_cache(std::move(*file), counters);
  const auto data = noise(MiB, 4);
  ASSERT_TRUE(moved->write_at(data, 0));
  EXPECT_EQ(other.content(), data);
  EXPECT_EQ(::unlink(path.c_str()), 0);
}

TEST(PastPageCache, AFileThatMayNotBeWrittenStaysAsItIs) {
  Counters counters;
  auto file = open_posix_file("/proc/version", OpenMode::read_only, counters);
  ASSERT_TRUE(file);
  const StorageFile* plain = file->get();
  const auto same = past_page_cache(std::move(*file), counters);
  EXPECT_EQ(same.get(), plain);
  EXPECT_EQ(same->write_at(noise(MiB, 5), 0).error().kind, ErrorKind::read_only);
}

}  // namespace
}  // namespace forebay
