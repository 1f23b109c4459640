// Goal: files whose times do not tell of every change are known. Method: a file in memory, files of
// the kernel, and a directory on a device.
#include "core/storage/file_version.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "core/storage/descriptor.hpp"
#include "core/storage/layout.hpp"

namespace forebay {
namespace {

TEST(FileVersion, OfAFileInMemoryDoesNotTellOfEveryChange) {
  const Descriptor memory(::memfd_create("forebay-version", MFD_CLOEXEC));
  ASSERT_TRUE(memory.valid());
  EXPECT_EQ(times_tell(memory.get()), TimesTell::nothing);
}

TEST(FileVersion, OfFilesOfTheKernelDoesNotTellOfEveryChange) {
  for (const char* path : {"/proc/self/status", "/sys/kernel/notes"}) {
    const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
    if (!file.valid()) continue;
    EXPECT_EQ(times_tell(file.get()), TimesTell::nothing) << path;
  }
  EXPECT_EQ(times_tell(-1), TimesTell::nothing);
}

TEST(FileVersion, OnADeviceTellsOfEveryChange) {
  if (file_system_name(testing::TempDir()) == "tmpfs") GTEST_SKIP() << "it is in memory";
  const Descriptor directory(::open(testing::TempDir().c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_NE(times_tell(directory.get()), TimesTell::nothing);
}

}  // namespace
}  // namespace forebay
