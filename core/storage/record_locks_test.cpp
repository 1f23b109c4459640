// Goal: record locks of this process are seen by each of its descriptors of a file. Method: a file
// of its own; what is asked sets no lock and takes none away.
#include "core/storage/record_locks.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace forebay {
namespace {

void set_lock(int descriptor, short type) {
  struct flock part{};
  part.l_type = type;
  part.l_whence = SEEK_SET;
  part.l_start = 100;
  part.l_len = 1;
  ASSERT_EQ(::fcntl(descriptor, F_SETLK, &part), 0);
}

TEST(RecordLocks, AreSeenWhicheverDescriptorSetThem) {
  const std::string path = testing::TempDir() + "forebay-record-locks";
  const int writer = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const int reader = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(writer, 0);
  ASSERT_GE(reader, 0);
  EXPECT_FALSE(has_record_locks(reader));
  for (const short type : {F_WRLCK, F_RDLCK}) {
    set_lock(writer, type);
    EXPECT_TRUE(process_has_record_locks());
    EXPECT_TRUE(has_record_locks(writer));
    EXPECT_TRUE(has_record_locks(reader));
  }
  set_lock(writer, F_UNLCK);
  EXPECT_FALSE(process_has_record_locks());
  EXPECT_FALSE(has_record_locks(reader));
  ::close(reader);
  EXPECT_FALSE(has_record_locks(reader));
  ::close(writer);
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace forebay
