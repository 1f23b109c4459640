// Goal: the shared file pointer is one value for all who open it, kept beside the data file or,
// where nothing may be made there, in memory; and nothing of it stays. Method: two objects stand
// for two ranks; a read-only directory, in a child process that is not root.

#include "core/intercept/mpi/shared_pointer.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace forebay {
namespace {

namespace fs = std::filesystem;

class SharedPointerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/pointer_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    ASSERT_TRUE(fs::create_directory(beside()));
    ASSERT_TRUE(fs::create_directory(memory()));
    // Others must be able to come here, and the "memory" is everybody's.
    ASSERT_EQ(::chmod(name.c_str(), 0755), 0);
    ASSERT_EQ(::chmod(memory().c_str(), 0777), 0);
  }
  void TearDown() override { fs::remove_all(directory_); }

  fs::path beside() const { return directory_ / "beside"; }
  fs::path memory() const { return directory_ / "memory"; }
  SharedPointer pointer(Bytes initial = 0) const {
    return {beside() / ".data.pointer", memory() / "pointer", initial};
  }
  static bool empty(const fs::path& place) {
    return fs::directory_iterator(place) == fs::directory_iterator();
  }

 private:
  fs::path directory_;
};

/// Two ranks take turns; the file is gone in the end. The number of the first claim that is wrong.
int try_two_ranks(SharedPointer& one, SharedPointer& other) {
  if (one.used() || other.used()) return 1;
  if (one.fetch_and_add(10).value_or(-1) != 7) return 2;
  if (other.fetch_and_add(5).value_or(-1) != 17) return 3;
  if (one.get().value_or(-1) != 22) return 4;
  if (!other.set(3)) return 5;
  if (one.get().value_or(-1) != 3) return 6;
  if (!one.used() || !other.used()) return 7;
  return 0;
}

TEST_F(SharedPointerTest, IsOneValueForAll) {
  SharedPointer one = pointer(7);
  SharedPointer other = pointer(7);
  EXPECT_EQ(try_two_ranks(one, other), 0);
  EXPECT_FALSE(empty(beside()));
  EXPECT_TRUE(empty(memory()));
  pointer().remove();  // By a rank that did not use it.
  EXPECT_TRUE(empty(beside()));
}

using SharedPointerDeathTest = SharedPointerTest;

TEST_F(SharedPointerDeathTest, LiesInMemoryWhereTheDirectoryIsReadOnly) {
  ASSERT_EQ(::chmod(beside().c_str(), 0555), 0);
  const auto child = [this] {
    constexpr uid_t nobody = 65534;
    if (::getuid() == 0 && ::setuid(nobody) != 0) ::_exit(77);
    SharedPointer one = pointer(7);
    SharedPointer other = pointer(7);
    const int wrong = try_two_ranks(one, other);
    if (wrong != 0) ::_exit(wrong);
    if (!empty(beside()) || empty(memory())) ::_exit(8);
    pointer().remove();
    ::_exit(empty(memory()) ? 0 : 9);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}

TEST_F(SharedPointerDeathTest, IsAnErrorWhereNoMemoryIsShared) {
  ASSERT_EQ(::chmod(beside().c_str(), 0555), 0);
  const auto child = [this] {
    constexpr uid_t nobody = 65534;
    if (::getuid() == 0 && ::setuid(nobody) != 0) ::_exit(77);
    SharedPointer one(beside() / ".data.pointer", "", 0);
    const Result<Bytes> position = one.fetch_and_add(1);
    ::_exit(!position && position.error().kind == ErrorKind::access ? 0 : 1);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace forebay
