// Goal: the type of a mount is told for files, directories and files yet to be made. Method: mounts
// that every Linux process has.

#include "core/storage/mount_table.hpp"

#include <gtest/gtest.h>

#include <string>

namespace forebay {
namespace {

TEST(MountedType, IsThatOfTheDeepestMount) {
  EXPECT_EQ(mounted_type("/proc/self/status"), "proc");
  EXPECT_EQ(mounted_type("/proc"), "proc");
  EXPECT_NE(mounted_type("/"), "proc");
  EXPECT_NE(mounted_type("/"), "");
}

TEST(MountedType, IsKnownOfFilesYetToBeMade) {
  EXPECT_EQ(mounted_type("/proc/no-such-file"), "proc");
  EXPECT_EQ(mounted_type("/no/such/directory/file"), mounted_type("/"));
  const std::string here = mounted_type(testing::TempDir());
  EXPECT_EQ(mounted_type(testing::TempDir() + "yet-to-be-made"), here);
}

TEST(MountedType, ANameThatBeginsLikeAMountPointIsNotInIt) {
  EXPECT_EQ(mounted_type("/proc-like"), mounted_type("/"));
}

TEST(MountedType, FollowsTheWayToTheFile) {
  EXPECT_EQ(mounted_type("/proc/self/../../proc/self/status"), "proc");
  EXPECT_EQ(mounted_type("/proc/self/root/no-such-file"), mounted_type("/"));
}

}  // namespace
}  // namespace forebay
