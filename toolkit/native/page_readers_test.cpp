// Goal: what cannot be read ahead for want of descriptors is told, and what has been read makes way
// for it. Method: files in a directory of their own, and few descriptors; records are looked for
// after the end.

#include "toolkit/native/page_readers.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/intercept/posix/record_file.hpp"
#include "core/storage/descriptor.hpp"

namespace forebay {
namespace {

constexpr Bytes size = 8 * KiB;

class PageReadersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "forebay-page-readers-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    ::setenv("FOREBAY_REPORT_DIR", name.c_str(), 1);
    posix::know_report_directory();
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit_), 0);
  }
  void TearDown() override {
    allow(limit_.rlim_cur);
    std::filesystem::remove_all(directory_);
  }

  void allow(rlim_t descriptors) const {
    const rlimit limit{descriptors, limit_.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }

  /// A program opens the file of this number.
  void open(PageReaders& readers, int number) const {
    const std::string path = directory_ / (std::to_string(number) + ".dat");
    std::ofstream(path) << std::string(size, 'a');
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const auto version = version_of(file.get());
    ASSERT_TRUE(version.has_value());
    readers.opened({file.get(), path, *version, false});
  }

  /// What is told of files that have this in their record.
  int told(const std::string& words) const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      if (entry.path().extension() != ".reads") continue;
      std::ifstream record(entry.path());
      const std::string text{std::istreambuf_iterator<char>(record), {}};
      if (text.find(words) != std::string::npos) ++count;
    }
    return count;
  }

  static std::vector<ReadSection> declared() {
    auto sections = read_sections("[[file]]\npath = '*.dat'\nwillneed = [[0, 0]]\n", "reads.toml");
    return sections ? *std::move(sections) : std::vector<ReadSection>();
  }

  std::filesystem::path directory_;
  rlimit limit_{};
};

TEST_F(PageReadersTest, WhatIsOpenedBeyondTheDescriptorsIsTold) {
  PageReaders readers(declared());
  open(readers, 0);
  allow(8);
  open(readers, 1);
  open(readers, 1);
  readers.finish();
  EXPECT_EQ(told("\"version\""), 2);
  EXPECT_EQ(told("1.dat: Too many open files"), 1);
}

}  // namespace
}  // namespace forebay
