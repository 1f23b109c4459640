// Goal: what a stream's position says of its reads, also where it says two things.  Method: a file
// with nothing in it, and a descriptor that is moved as streams move theirs.
#include "core/storage/read_progress.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace forebay {
namespace {

using Seen = ReadProgress::Seen;

constexpr Extent at(Bytes offset, Bytes length) { return {offset, length}; }

class PositionTest : public ::testing::Test {
 protected:
  PositionTest() {
    std::string name = ::testing::TempDir() + "read_progress_XXXXXX";
    fd_ = ::mkstemp(name.data());
    ::unlink(name.c_str());
  }
  ~PositionTest() override { ::close(fd_); }

  void go_to(Bytes position) const { EXPECT_EQ(::lseek(fd_, position, SEEK_SET), position); }
  PositionProgress watch() const {
    return PositionProgress(fd_, version_of(fd_).value_or(FileVersion{}).id);
  }
  int descriptor() const { return fd_; }

 private:
  int fd_;
};

TEST_F(PositionTest, WhereItWasBeforeWasNotReadThisWay) {
  go_to(MiB);
  auto progress = watch();
  EXPECT_EQ(progress.look({}), std::nullopt);
  go_to(2 * MiB);
  EXPECT_TRUE(progress.look({}));
  EXPECT_EQ(progress.look({}), std::nullopt) << "it did not move since";
}

TEST_F(PositionTest, OfWhatIsExpectedTheFurthestByteIsTold) {
  auto progress = watch();
  const std::vector<Extent> pieces = {at(1'000'100, 50'000), at(2'000'100, 50'000)};
  go_to(1'998'848);
  EXPECT_EQ(progress.look(pieces), std::nullopt) << "only sought";
  go_to(2'010'000);
  EXPECT_EQ(progress.look(pieces), (Seen{at(2'009'999, 1)}));
  go_to(2'052'096);
  EXPECT_EQ(progress.look(pieces), (Seen{at(2'050'099, 1)})) << "a page was read whole";
}

TEST_F(PositionTest, WithTwoPiecesInOneBufferTheLaterByteCounts) {
  auto progress = watch();
  const std::vector<Extent> pieces = {at(8192, 1000), at(9192, 1000)};
  go_to(12'288);
  EXPECT_EQ(progress.look(pieces), (Seen{at(10'191, 1)}));
}

TEST_F(PositionTest, WhatIsNotExpectedMayHaveBeenReadOrSought) {
  auto progress = watch();
  constexpr Bytes buffer = PositionProgress::longest_buffer;
  go_to(MiB);
  EXPECT_EQ(progress.look({}), (Seen{at(MiB - buffer, buffer), at(MiB, buffer)}));
  go_to(100);
  EXPECT_EQ(progress.look({}), (Seen{at(0, 100), at(100, buffer)}));
}

TEST_F(PositionTest, OfAClosedDescriptorTheLastPositionCounts) {
  auto progress = watch();
  go_to(5000);
  EXPECT_FALSE(progress.end(descriptor() + 1));
  EXPECT_TRUE(progress.end(descriptor()));
  go_to(MiB);
  EXPECT_TRUE(progress.has_ended());
  EXPECT_EQ(progress.look(std::vector{at(4000, 2000)}), (Seen{at(4999, 1)}));
}

TEST_F(PositionTest, ADescriptorThatIsClosedMeanwhileIsNotTheOneAfterIt) {
  const std::vector<Extent> pieces = {at(100'000, 50'000), at(900'000, 50'000)};
  const std::function<void()> nothing = [] {};
  std::function<void()> meanwhile = nothing;
  PositionProgress progress(descriptor(), version_of(descriptor()).value_or(FileVersion{}).id,
                            [&](int fd) {
                              std::exchange(meanwhile, nothing)();
                              return ::lseek(fd, 0, SEEK_CUR);
                            });
  go_to(150'000);
  meanwhile = [&] {
    EXPECT_TRUE(progress.end(descriptor()));
    go_to(910'000);  // The next stream's.
  };
  EXPECT_EQ(progress.look(pieces), (Seen{at(149'999, 1)}));
}

}  // namespace
}  // namespace forebay
