// Goal: descriptors of ours cost a program none of its record locks. Method: a file that is opened
// once more, and locks that are set before and after; a child, which the locks are not of, says
// whether they are there.
#include "core/intercept/posix/internal_descriptors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "core/storage/record_locks.hpp"

namespace forebay::posix {
namespace {

class InternalDescriptors : public testing::Test {
 protected:
  void SetUp() override {
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(file_, 0);
    takes_record_lock();
  }
  void TearDown() override {
    ::close(file_);
    ::unlink(path_.c_str());
    close_unlocked();
    EXPECT_FALSE(has_internal());
  }

  void set_lock(short type) const {
    struct flock whole{};
    whole.l_type = type;
    whole.l_whence = SEEK_SET;
    ASSERT_EQ(::fcntl(file_, F_SETLK, &whole), 0);
  }

  bool is_locked() const {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(has_record_locks(file_) ? 1 : 0);
    int status = 0;
    ::waitpid(child, &status, 0);
    return status != 0;
  }

  const std::string path_ = testing::TempDir() + "forebay-internal-descriptors";
  int file_ = -1;
};

TEST_F(InternalDescriptors, AreClosedWithTheirSource) {
  auto source = open_protected_source(file_, path_);
  ASSERT_TRUE(source);
  const int ours = (*source)->descriptor();
  EXPECT_TRUE(is_internal(ours));
  source->reset();
  EXPECT_FALSE(is_internal(ours));
  EXPECT_EQ(::fcntl(ours, F_GETFD), -1);
}

TEST_F(InternalDescriptors, AreNotMadeOfALockedFile) {
  set_lock(F_WRLCK);
  EXPECT_FALSE(open_protected_source(file_, path_));
  EXPECT_TRUE(is_locked());
}

TEST_F(InternalDescriptors, StayOpenUntilNoLockIsLeft) {
  auto source = open_protected_source(file_, path_);
  auto other = open_protected_source(file_, path_);
  ASSERT_TRUE(source && other);
  const int ours = (*source)->descriptor();
  set_lock(F_RDLCK);
  source->reset();
  other->reset();
  close_unlocked();
  EXPECT_TRUE(is_locked());
  EXPECT_TRUE(is_internal(ours));
  set_lock(F_UNLCK);
  close_unlocked();
  EXPECT_EQ(::fcntl(ours, F_GETFD), -1);
}

TEST_F(InternalDescriptors, WhoseNumberTheProgramTookAreItsOwn) {
  auto source = open_protected_source(file_, path_);
  ASSERT_TRUE(source);
  const int ours = (*source)->descriptor();
  set_lock(F_RDLCK);
  source->reset();
  leave_to_program(ours);
  set_lock(F_UNLCK);
  close_unlocked();
  EXPECT_NE(::fcntl(ours, F_GETFD), -1);
  ::close(ours);
}

}  // namespace
}  // namespace forebay::posix
