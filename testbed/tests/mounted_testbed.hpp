#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace forebay::testbed {

/// What a command did.
struct Outcome {
  int status = 0;      ///< Exit status.
  std::string output;  ///< Standard output and standard error.
};

/// Runs a program by its arguments (no shell) until it ends.
Outcome run(const std::vector<std::string>& arguments);

/// Runs `body` in `count` child processes at once, with its number; all start when all are ready.
/// Returns the wall time from the start until the last `body` has returned, in seconds. `body`
/// gives the exit status, which must be 0. GoogleTest assertions do not work in children.
double in_processes(int count, const std::function<int(int)>& body);

/// A backing directory with a testbed mounted over it, for tests; skips the test where FUSE cannot
/// be used. Unmounts at the end, and then expects that the testbed has ended.
class MountedTestbed : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// Mounts with these options; once per test.
  void mount(const std::vector<std::string>& options);
  void unmount();

  /// The content of the state file.
  nlohmann::json state() const;

  /// What each server counted, read from the mount: an array of objects.
  nlohmann::json servers() const;

  /// The sum over the servers (or the maximum, if `largest`) of one whole-numbered counter.
  std::int64_t counter(const std::string& name, bool largest = false) const;

  static std::string program();
  std::filesystem::path on_mount(const std::string& name) const { return mount_ / name; }
  std::filesystem::path in_backing(const std::string& name) const { return backing_ / name; }

  std::filesystem::path directory_;
  std::filesystem::path backing_;
  std::filesystem::path mount_;
  std::filesystem::path state_;
  bool mounted_ = false;
};

/// The whole content of a file.
std::string content_of(const std::filesystem::path& path);

}  // namespace forebay::testbed
