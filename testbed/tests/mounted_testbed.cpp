#include "testbed/tests/mounted_testbed.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "testbed/file_descriptor.hpp"
#include "testbed/tests/fuse_probe.hpp"

namespace forebay::testbed {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    out = FileDescriptor(ends[0]);
    in = FileDescriptor(ends[1]);
  }
  FileDescriptor out;
  FileDescriptor in;
};

}  // namespace

Outcome run(const std::vector<std::string>& arguments) {
  Pipe pipe;
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe.in.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, pipe.in.get(), STDERR_FILENO);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return {127, std::strerror(error)};
  pipe.in = FileDescriptor();
  Outcome outcome;
  char buffer[4096];
  // Ends when the program, and whatever it left in the background, has closed its output.
  for (ssize_t count; (count = ::read(pipe.out.get(), buffer, sizeof buffer)) > 0;) {
    outcome.output.append(buffer, static_cast<std::size_t>(count));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

double in_processes(int count, const std::function<int(int)>& body) {
  Pipe report;  // from the children: a byte when ready, another when done
  Pipe start;
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      start.in = FileDescriptor();
      char byte = 0;
      const bool told = ::write(report.in.get(), &byte, 1) == 1;
      const bool started = ::read(start.out.get(), &byte, 1) == 0;  // end of file: all may go
      const int status = told && started ? body(i) : 126;
      ::_exit(::write(report.in.get(), &byte, 1) == 1 ? status : 126);
    }
    EXPECT_GT(child, 0);
    children.push_back(child);
  }
  report.in = FileDescriptor();
  const auto await_reports = [&] {
    char byte = 0;
    for (int i = 0; i < count; ++i) EXPECT_EQ(::read(report.out.get(), &byte, 1), 1);
  };
  await_reports();
  const auto begin = std::chrono::steady_clock::now();
  start.in = FileDescriptor();
  await_reports();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  for (const pid_t child : children) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "a child process failed";
  }
  return taken.count();
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string MountedTestbed::program() { return FOREBAY_TESTBEDFS; }

void MountedTestbed::SetUp() {
  if (const auto reason = why_fuse_is_unusable()) GTEST_SKIP() << *reason;
  std::string pattern = (std::filesystem::temp_directory_path() / "testbed_XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  directory_ = pattern;
  backing_ = directory_ / "backing";
  mount_ = directory_ / "mount";
  state_ = directory_ / "state.json";
  std::filesystem::create_directories(backing_);
  std::filesystem::create_directories(mount_);
  std::filesystem::permissions(directory_, std::filesystem::perms(0755));
}

void MountedTestbed::TearDown() {
  if (mounted_) unmount();
  if (!directory_.empty()) std::filesystem::remove_all(directory_);
}

void MountedTestbed::mount(const std::vector<std::string>& options) {
  std::vector<std::string> arguments = {program(), "--backing", backing_, "--state", state_};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.push_back(mount_);
  const Outcome outcome = run(arguments);
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  mounted_ = true;
}

void MountedTestbed::unmount() {
  const auto pid = state().at("pid").get<pid_t>();
  const FileDescriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  ASSERT_TRUE(process.valid());
  const Outcome outcome = run({"fusermount3", "-u", mount_});
  if (outcome.status != 0) run({"fusermount3", "-u", "-z", mount_});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  mounted_ = false;
  pollfd ended{process.get(), POLLIN, 0};
  constexpr int patience_ms = 60'000;  // against a hang; an end takes milliseconds
  EXPECT_EQ(::poll(&ended, 1, patience_ms), 1) << "the testbed did not end";
  EXPECT_FALSE(state().at("running"));
}

nlohmann::json MountedTestbed::state() const { return nlohmann::json::parse(content_of(state_)); }

nlohmann::json MountedTestbed::servers() const {
  return nlohmann::json::parse(content_of(on_mount(".forebay-testbed/counters.json")))
      .at("servers");
}

std::int64_t MountedTestbed::counter(const std::string& name, bool largest) const {
  std::int64_t result = 0;
  for (const auto& server : servers()) {
    const auto value = server.at(name).get<std::int64_t>();
    result = largest ? std::max(result, value) : result + value;
  }
  return result;
}

}  // namespace forebay::testbed
