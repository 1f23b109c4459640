// Goal: descriptors of ours keep out of the low numbers and leave the program half of all. Method:
// a low limit, and descriptors taken one by one until the answer changes.
#include "core/storage/descriptor.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <vector>

namespace forebay {
namespace {

int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

/// Sets the soft limit for as long as it lives.
class Limit {
 public:
  explicit Limit(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit lower{most, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &lower), 0);
  }
  ~Limit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  rlimit before_{};
};

/// A descriptor as programs have them: the lowest that is free.
class Plain {
 public:
  Plain() : fd_(open_null()) {}
  Plain(Plain&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Plain() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  int fd_;
};

TEST(Descriptor, StaysOutOfLowNumbers) {
  const Descriptor ours(open_null());
  EXPECT_GE(ours.get(), Descriptor::lowest);
}

TEST(Descriptor, RunsShortAtHalfOfTheLimit) {
  const Limit limit(160);
  EXPECT_FALSE(descriptors_run_short());
  // Ours and the program's are counted alike, whichever side of the border they are on. The test
  // has a few of its own.
  std::vector<Descriptor> ours;
  for (int i = 0; i < 30; ++i) ours.emplace_back(open_null());
  EXPECT_FALSE(descriptors_run_short());
  std::vector<Plain> of_program(60);
  EXPECT_TRUE(descriptors_run_short());
  ours.clear();
  of_program.resize(30);
  EXPECT_FALSE(descriptors_run_short());
}

TEST(Descriptor, RunsShortBelowTheBorderToo) {
  const Limit limit(40);
  EXPECT_FALSE(descriptors_run_short());
  std::vector<Plain> of_program(20);
  EXPECT_TRUE(descriptors_run_short());
}

TEST(Descriptor, RunsShortWithNoneLeft) {
  const Limit limit(120);
  std::vector<Plain> of_program(120);
  EXPECT_TRUE(descriptors_run_short());
}

}  // namespace
}  // namespace forebay
