// Goal: the state reads as documented JSON, and replaces its file whole. Method: expected values
// for a small state with hostile paths; a file written twice and a directory that does not exist.

#include "testbed/state.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace forebay::testbed {
namespace {

using namespace std::chrono_literals;

TEST(State, ReadsAsDocumentedJson) {
  State state;
  state.pid = 42;
  state.mount = "/mnt/a \"b\"\n\\c";
  state.backing = "/data/\xff";
  state.parameters = {.servers = 1,
                      .stripe_size = 64 * KiB,
                      .server = {.bandwidth_bytes_per_s = 4 * MiB, .latency = 3ms, .slots = 10},
                      .lock_cost = 5ms,
                      .object_cost = 2ms};
  state.page_cache = true;
  state.read_ahead = 128 * KiB;
  state.uptime_s = 1.5;
  state.servers = {{.read_requests = 1,
                    .write_requests = 2,
                    .read_bytes = 3,
                    .write_bytes = 4,
                    .lock_conflicts = 5,
                    .busy = 250ms,
                    .queue = 6,
                    .queue_max = 7}};
  const auto expected = nlohmann::json::parse(R"({
    "version": 1,
    "running": true,
    "pid": 42,
    "mount": "/mnt/a \"b\"\n\\c",
    "backing": "/data/\ufffd",
    "parameters": {"servers": 1, "bandwidth_bytes_per_s": 4194304, "latency_s": 0.003,
                   "stripe_bytes": 65536, "slots": 10, "lock_cost_s": 0.005,
                   "object_cost_s": 0.002,
                   "page_cache": true, "read_ahead_bytes": 131072},
    "uptime_s": 1.5,
    "servers": [{"read_requests": 1, "write_requests": 2, "read_bytes": 3, "write_bytes": 4,
                 "lock_conflicts": 5, "busy_s": 0.25, "queue": 6, "queue_max": 7}]
  })");
  EXPECT_EQ(nlohmann::json::parse(to_json(state)), expected);
  state.read_ahead.reset();
  const auto untold = nlohmann::json::parse(to_json(state));
  EXPECT_TRUE(untold.at("parameters").at("read_ahead_bytes").is_null());
}

TEST(State, ReplacesItsFileWhole) {
  std::string directory = testing::TempDir() + "/state_XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/state.json";
  ASSERT_TRUE(replace_file(path, "a longer first content\n"));
  ASSERT_TRUE(replace_file(path, "second\n"));
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "second\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
  std::filesystem::remove_all(directory);

  const Status status = replace_file(path, "");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::no_such_file);
}

}  // namespace
}  // namespace forebay::testbed
