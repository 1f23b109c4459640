// Goal: a recovery reads logs that protect each other once, and says how far it has got all along.
// Method: logs as programs leave them, in directories of the test's own; what is said to be checked
// is counted against what the logs take.

#include "toolkit/native/gathered_logs.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/engine/cache/file_identity.hpp"
#include "core/model/counters.hpp"
#include "core/storage/file.hpp"
#include "toolkit/native/tests/protected_nodes.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t block = 10'000;
constexpr std::size_t rounds = 5;

class GatheredLogsTest : public ::testing::Test {
 protected:
  GatheredLogsTest() {
    std::string name = fs::temp_directory_path() / "forebay-gathered-XXXXXX";
    base_ = ::mkdtemp(name.data());
    for (const char* node : {"member-0", "member-1", "parity-0"}) {
      fs::create_directory(base_ / node);
      fs::permissions(base_ / node, fs::perms::owner_all);
    }
    std::ofstream(base_ / "file").close();
    for (std::size_t i = 0; i < 2 * rounds * block; ++i) {
      data_.push_back(static_cast<char>(i * i / 7));
    }
  }
  ~GatheredLogsTest() override { fs::remove_all(base_); }

  std::string place(const char* node) const { return base_ / node; }

  void leave_logs() {
    ProtectedNodes nodes(
        {.members = {place("member-0"), place("member-1")}, .parities = {place("parity-0")}},
        identify(place("file")).value());
    ASSERT_TRUE(nodes.open());
    for (std::size_t at = 0; at < data_.size();) {
      for (const std::size_t member : {0U, 1U}) {
        ASSERT_TRUE(
            nodes.write(member, std::span(data_).subspan(at, block), static_cast<Bytes>(at)));
        at += block;
      }
      ASSERT_TRUE(nodes.protect());
    }
  }

  std::vector<char> content() const {
    std::ifstream file(base_ / "file", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path base_;
  std::vector<char> data_;
};

TEST_F(GatheredLogsTest, AreReadOnceAndSaySoAllAlong) {
  leave_logs();
  const FoundLogs found =
      find_logs({.directories = {place("member-0"), place("member-1"), place("parity-0")},
                 .files = {},
                 .names = {}},
                ReadDepth::headers);
  const auto files = by_file(found);
  ASSERT_EQ(files.size(), 1U);
  Bytes data = 0;
  for (const FoundLog* log : files[0].logs) data += log->summary.contents.stored_bytes;
  Bytes parity = 0;
  for (const FoundLog* log : files[0].parity) parity += log->summary.contents.stored_bytes;
  ASSERT_GT(data, 0);
  ASSERT_GT(parity, 0);

  Bytes checked = 0;
  const ScanProgress check = [&](Bytes more) { checked += more; };
  auto locked = lock_all(files[0].all());
  ASSERT_TRUE(locked);
  auto gathered = gather(files[0], std::move(*locked), {}, {}, {.checked = check, .rebuilt = {}});
  ASSERT_TRUE(gathered) << to_string(gathered.error());
  EXPECT_EQ(checked, data + parity) << "whether they are whole is not known before";

  Counters counters;
  const auto file = open_posix_file(place("file"), OpenMode::read_write, counters);
  ASSERT_TRUE(file);
  Sidecar sidecar(place("file"));
  const auto report =
      recover(**file, sidecar, std::move(gathered->logs), {}, {.checked = check, .replayed = {}});
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(checked, data + parity) << "and they are not read again";
  EXPECT_EQ(report->logs, 3);
  EXPECT_EQ(content(), data_);
}

TEST_F(GatheredLogsTest, AreNotReadWhereARecoveryHadReplayedThem) {
  leave_logs();
  const FoundLogs found =
      find_logs({.directories = {place("member-0"), place("member-1")}, .files = {}, .names = {}},
                ReadDepth::headers);
  const auto files = by_file(found);
  ASSERT_EQ(files.size(), 1U);
  Bytes checked = 0;
  auto locked = lock_all(files[0].all());
  ASSERT_TRUE(locked);
  const auto gathered = gather(files[0], std::move(*locked), {"log-0", "log-1"}, {},
                               {.checked = [&](Bytes more) { checked += more; }, .rebuilt = {}});
  ASSERT_TRUE(gathered);
  EXPECT_EQ(checked, 0);
}

}  // namespace
}  // namespace forebay
