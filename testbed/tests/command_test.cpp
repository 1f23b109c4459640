// Goal: the program says what is wrong and what to do, and ends as asked. Method: run it, look at
// its exit status, its output and its state file.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "testbed/tests/mounted_testbed.hpp"

namespace forebay::testbed {
namespace {

using testing::Test;

class CommandTest : public MountedTestbed {
 protected:
  /// Runs the program, which must fail and say `expected`.
  void expect_refusal(const std::vector<std::string>& arguments, const std::string& expected) {
    std::vector<std::string> all = {program()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Outcome outcome = run(all);
    EXPECT_NE(outcome.status, 0) << outcome.output;
    EXPECT_NE(outcome.output.find(expected), std::string::npos) << outcome.output;
  }
};

TEST_F(CommandTest, RefusesWrongQuantitiesAndNamesTheAcceptedForm) {
  const std::string backing = backing_;
  expect_refusal({"--backing", backing, "--bandwidth", "4M", mount_}, "a rate like 4MiB/s");
  expect_refusal({"--backing", backing, "--latency", "soon", mount_}, "a duration like 3ms");
  expect_refusal({"--backing", backing, "--stripe", "0", mount_}, "at least one byte");
  expect_refusal({"--backing", backing, "--servers", "0", mount_}, "--servers");
  expect_refusal({"--backing", backing, "--page-cache", "--read-ahead", "100", mount_},
                 "a multiple of 1KiB");
  expect_refusal({"--backing", backing, "--read-ahead", "1MiB", mount_}, "--page-cache");
  expect_refusal({"--backing", backing, "--unreadable", "1MiB", mount_}, "1MiB+64KiB");
  expect_refusal({"--backing", backing, "--longest-read", "0", mount_}, "at least one byte");
  expect_refusal({"--backing", backing, "--page-cache", "--longest-read", "1KiB", mount_},
                 "--page-cache");
  expect_refusal({mount_}, "--backing is required");
  EXPECT_NE(run({program(), "--help"}).output.find("Example:"), std::string::npos);
}

TEST_F(CommandTest, RefusesDirectoriesThatCannotServe) {
  expect_refusal({"--backing", directory_ / "absent", mount_}, "mkdir -p");
  expect_refusal({"--backing", backing_, directory_ / "absent"}, "mkdir -p");
  expect_refusal({"--backing", directory_, mount_}, "outside each other");
  expect_refusal({"--backing", backing_, backing_}, "outside each other");
  mount({});
  expect_refusal({"--backing", backing_, mount_}, "fusermount3 -u");
}

TEST_F(CommandTest, SaysSoWhenItsStateCannotBeWritten) {
  const Outcome outcome = run(
      {program(), "--backing", backing_, "--state", directory_ / "absent" / "state.json", mount_});
  run({"fusermount3", "-u", mount_});
  EXPECT_NE(outcome.output.find("state.json"), std::string::npos) << outcome.output;
}

TEST_F(CommandTest, StateIsThereWhenTheCommandReturns) {
  mount({"--servers", "3", "--bandwidth", "2MiB/s", "--latency", "1ms", "--lock-cost", "4ms",
         "--object-cost", "50us"});
  const nlohmann::json json = state();
  EXPECT_TRUE(json.at("running"));
  EXPECT_EQ(json.at("mount"), mount_.string());
  EXPECT_EQ(json.at("parameters"), nlohmann::json::parse(R"({
    "servers": 3, "bandwidth_bytes_per_s": 2097152, "latency_s": 0.001, "stripe_bytes": 65536,
    "slots": 10, "lock_cost_s": 0.004, "object_cost_s": 0.00005, "page_cache": false,
    "read_ahead_bytes": 0})"));
}

TEST_F(CommandTest, EndsWhenTerminatedInTheForeground) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(program().c_str(), program().c_str(), "--foreground", "--backing", backing_.c_str(),
            "--state", state_.c_str(), mount_.c_str(), nullptr);
    ::_exit(127);
  }
  // The state file is there once the mount is; a request then waits until it is served.
  while (!std::filesystem::exists(state_)) std::this_thread::yield();
  EXPECT_TRUE(std::filesystem::exists(on_mount(".forebay-testbed/counters.json")));
  ASSERT_EQ(::kill(child, SIGTERM), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(std::filesystem::exists(on_mount(".forebay-testbed")));
  EXPECT_FALSE(state().at("running"));
}

}  // namespace
}  // namespace forebay::testbed
