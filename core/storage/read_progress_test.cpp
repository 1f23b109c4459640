// Goal: what a stream's position says of its reads, also where it says two things; and that letting
// go of a mapping's pages destroys nothing, whatever lies there by now. Method: a file with nothing
// in it, and a descriptor that is moved as streams move theirs; mappings of a file of some pages,
// in whose place the test puts other memory.
#include "core/storage/read_progress.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/storage/page_residence.hpp"

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

class MappedTest : public ::testing::Test {
 protected:
  inline static const Bytes page = ::sysconf(_SC_PAGESIZE);
  inline static const Bytes size = 8 * page;
  inline static const Extent passed{page, 4 * page};

  MappedTest() {
    std::string name = ::testing::TempDir() + "read_progress_XXXXXX";
    fd_ = ::mkstemp(name.data());
    ::unlink(name.c_str());
    const std::vector<char> content(static_cast<std::size_t>(size), 'f');
    EXPECT_EQ(::pwrite(fd_, content.data(), content.size(), 0), size);
  }
  ~MappedTest() override {
    unmap();
    ::close(fd_);
  }

  /// All of the file, every page touched.
  Mapping map(int flags, int protection = PROT_READ) {
    unmap();
    place_ = static_cast<char*>(
        ::mmap(nullptr, static_cast<std::size_t>(size), protection, flags, fd_, 0));
    if (place_ == MAP_FAILED) throw std::runtime_error("a file of some pages cannot be mapped");
    for (Bytes at = 0; at < size; at += page) EXPECT_EQ(byte(at), 'f');
    return {begin(), size, 0};
  }
  std::uintptr_t begin() const { return reinterpret_cast<std::uintptr_t>(place_); }
  std::uintptr_t end() const { return begin() + static_cast<std::uintptr_t>(size); }
  char byte(Bytes offset) const { return const_cast<const volatile char*>(place_)[offset]; }
  void store(Bytes offset, char value) const { place_[offset] = value; }
  ShownMemory::Place show() {
    auto place = shown_.add(begin(), end());
    if (!place) throw std::runtime_error("there are too many places");
    return *std::move(place);
  }
  int descriptor() const { return fd_; }
  Bytes in_page_cache() const { return resident_bytes(fd_, {0, size}, residence_told(fd_)); }
  /// In place of one page of the file.
  void map_own_memory() const {
    ASSERT_NE(::mmap(place_ + passed.offset, static_cast<std::size_t>(page), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              MAP_FAILED);
    store(passed.offset, 'o');
  }
  static bool is_in_use(MappedProgress& progress, Extent extent) {
    return progress.look({&extent, 1}).has_value();
  }
  ShownMemory& shown() { return shown_; }

 private:
  void unmap() const {
    if (place_ != nullptr) ::munmap(place_, static_cast<std::size_t>(size));
  }

  int fd_;
  char* place_ = nullptr;
  ShownMemory shown_;
};

TEST_F(MappedTest, PagesAreLetGoOfAndStayInThePageCache) {
  if (residence_told(descriptor()) == ResidenceTold::nothing) GTEST_SKIP() << "nobody tells";
  for (const int flags : {MAP_SHARED, MAP_PRIVATE}) {
    const Mapping mapping = map(flags);
    MappedProgress progress(mapping, show());
    ASSERT_TRUE(is_in_use(progress, passed));
    progress.let_go({passed.offset - 10, passed.length + 20});
    EXPECT_FALSE(is_in_use(progress, passed));
    EXPECT_TRUE(is_in_use(progress, {0, page})) << "only whole pages";
    EXPECT_TRUE(is_in_use(progress, {passed.end(), page}));
    EXPECT_EQ(in_page_cache(), size);
    EXPECT_EQ(byte(passed.offset), 'f');
  }
}

TEST_F(MappedTest, WhatWasStoredPrivatelyStays) {
  const Mapping mapping = map(MAP_PRIVATE, PROT_READ | PROT_WRITE);
  MappedProgress progress(mapping, show());
  store(passed.offset, 's');
  progress.let_go(passed);
  EXPECT_EQ(byte(passed.offset), 's');
}

TEST_F(MappedTest, OtherMemoryInTheirPlaceIsLeftAlone) {
  const Mapping mapping = map(MAP_SHARED);
  MappedProgress progress(mapping, show());
  map_own_memory();
  progress.let_go(passed);
  EXPECT_EQ(byte(passed.offset), 'o') << "past the calls that tell of it";
  const Extent elsewhere{passed.end(), page};
  progress.let_go(elsewhere);
  EXPECT_TRUE(is_in_use(progress, elsewhere)) << "nothing there is known any more";
}

TEST_F(MappedTest, WhatWasTakenAwayIsLeftAlone) {
  const Mapping mapping = map(MAP_SHARED);
  MappedProgress progress(mapping, show());
  shown().take_away(end() - 1, end());
  progress.let_go(passed);
  EXPECT_TRUE(is_in_use(progress, passed));
}

}  // namespace
}  // namespace forebay
