// Goal: what the page cache has of a file is told rightly, or not at all. Method: a file of which a
// part was read, asked about in both ways, also by who neither owns it nor may write it.

#include "core/storage/page_residence.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "core/storage/descriptor.hpp"

namespace forebay {
namespace {

constexpr Bytes size = MiB;
constexpr Extent read_part{256 * KiB, 64 * KiB};

class PageResidenceTest : public ::testing::Test {
 protected:
  PageResidenceTest() : file_(::mkstemp(path_.data())) {
    const std::vector<char> bytes(static_cast<std::size_t>(size), 'x');
    EXPECT_EQ(::write(file_.get(), bytes.data(), bytes.size()), size);
    EXPECT_EQ(::fsync(file_.get()), 0);
    EXPECT_EQ(::fchmod(file_.get(), 0644), 0);
  }
  ~PageResidenceTest() override { ::unlink(path_.c_str()); }

  /// False: the file system keeps it there.
  bool empty_page_cache() const {
    ::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_DONTNEED);
    return resident_bytes(file_.get(), {0, size}, residence_told(file_.get())) == 0;
  }
  void read_a_part() const {
    ::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_RANDOM);
    std::vector<char> bytes(static_cast<std::size_t>(read_part.length));
    EXPECT_EQ(::pread(file_.get(), bytes.data(), bytes.size(), read_part.offset), read_part.length);
  }

  std::string path_ = testing::TempDir() + "/forebay-residence-XXXXXX";
  const Descriptor file_;
};

TEST_F(PageResidenceTest, IsToldInWholePages) {
  if (!empty_page_cache()) GTEST_SKIP() << "the page cache cannot be emptied";
  read_a_part();
  for (const ResidenceTold told : {residence_told(file_.get()), ResidenceTold::by_pages}) {
    EXPECT_EQ(resident_bytes(file_.get(), read_part, told), read_part.length);
    EXPECT_EQ(resident_bytes(file_.get(), {read_part.offset - 64 * KiB, size / 2}, told),
              read_part.length);
    EXPECT_EQ(resident_bytes(file_.get(), {read_part.offset + 100, 10}, told),
              ::sysconf(_SC_PAGESIZE));
    EXPECT_EQ(resident_bytes(file_.get(), {0, 64 * KiB}, told), 0);
  }
  EXPECT_EQ(resident_bytes(file_.get(), read_part, ResidenceTold::nothing), 0);
}

TEST_F(PageResidenceTest, NobodyIsToldThatAllIsThere) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another";
  if (!empty_page_cache()) GTEST_SKIP() << "the page cache cannot be emptied";
  const ::pid_t child = ::fork();
  if (child == 0) {
    constexpr ::uid_t nobody = 65534;
    if (::setuid(nobody) != 0) ::_exit(2);
    const Descriptor own(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!own.valid()) ::_exit(2);  // The directory is not everybody's.
    ::_exit(resident_bytes(own.get(), {0, size}, residence_told(own.get())) == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "nobody cannot read here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(PageResidence, OfWhatIsNoFileIsNotTold) {
  EXPECT_EQ(residence_told(-1), ResidenceTold::nothing);
  EXPECT_EQ(resident_bytes(-1, {0, 1}, ResidenceTold::by_pages), 0);
}

}  // namespace
}  // namespace forebay
