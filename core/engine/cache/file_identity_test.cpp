// Goal: a new file is told from the one that had its path and its inode before.
// Method: identities as file systems give them; a file of the test's own.

#include "core/engine/cache/file_identity.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace forebay {
namespace {

TEST(FileIdentityTest, IsOfANewFileWhereTheInodeIsTheSameAndTheTimeIsNot) {
  const FileIdentity file{"/scratch/a", 7, 8, 1'700'000'000'000'000'001};
  FileIdentity other = file;
  other.device = 9;
  EXPECT_TRUE(same_file(file, other)) << "as another node sees it";
  other.made_unix_ns = 0;
  EXPECT_TRUE(same_file(file, other)) << "nobody tells";
  other.made_unix_ns = file.made_unix_ns + 1;
  EXPECT_FALSE(same_file(file, other));
  other = file;
  other.inode = 9;
  EXPECT_FALSE(same_file(file, other));
}

TEST(FileIdentityTest, SaysWhenTheFileWasMadeIfTheFileSystemDoes) {
  std::string base = std::filesystem::temp_directory_path() / "forebay-identity-XXXXXX";
  ASSERT_NE(::mkdtemp(base.data()), nullptr);
  const std::string path = base + "/file";
  std::ofstream(path).close();
  struct statx status{};
  ASSERT_EQ(::statx(AT_FDCWD, path.c_str(), 0, STATX_BTIME, &status), 0);
  const auto file = identify(path);
  std::filesystem::remove_all(base);
  ASSERT_TRUE(file);
  const bool told = (status.stx_mask & STATX_BTIME) != 0;
  EXPECT_EQ(file->made_unix_ns,
            told ? status.stx_btime.tv_sec * 1'000'000'000 + status.stx_btime.tv_nsec : 0);
}

}  // namespace
}  // namespace forebay
