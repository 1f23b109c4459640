// Goal: a file that cannot be read ends no program.  Method: a file, one that is not there, and a
// directory, of which opening succeeds and reading fails, as of a process in /proc that has ended.

#include "core/storage/text_file.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace forebay {
namespace {

TEST(TextFile, IsReadWhole) {
  std::string directory = testing::TempDir() + "forebay-text-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/file";
  const std::string text = std::string(10'000, 'a') + '\0' + "\n";
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(text_of(path), text);
  std::ofstream(path, std::ios::binary | std::ios::trunc).flush();
  EXPECT_EQ(text_of(path), "");
  std::filesystem::remove_all(directory);
}

TEST(TextFile, WhatIsNotThereIsAnError) {
  const auto found = text_of("/nowhere/at/all");
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().os_errno, ENOENT);
}

TEST(TextFile, AFailingReadIsAnErrorAndNoException) {
  const auto found = text_of("/proc");
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().os_errno, EISDIR);
}

}  // namespace
}  // namespace forebay
