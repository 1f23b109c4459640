// Goal: lost logs are there again under their names when they are whole, and nothing that is half
// done is ever taken for one.
// Method: members and parity on a file system of the test's own; an attempt that left something.

#include "core/engine/redundancy/lost_logs.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/engine/cache/log_contents.hpp"
#include "core/engine/redundancy/parity_writer.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;
using Content = std::vector<std::byte>;

class LostLogs : public ::testing::Test {
 protected:
  LostLogs() {
    std::string name = fs::temp_directory_path() / "forebay-lost-logs-XXXXXX";
    base_ = ::mkdtemp(name.data());
    write_logs();
  }
  ~LostLogs() override { fs::remove_all(base_); }

  std::shared_ptr<CacheDirectory> node(const std::string& name) {
    fs::create_directories(base_ / name);
    fs::permissions(base_ / name, fs::perms::owner_all);
    return *CacheDirectory::open(base_ / name, CacheDirectory::Access::create);
  }

  static std::unique_ptr<ResourceHolder> room() {
    return *ResourceHolder::join(std::make_shared<Resource>("cache.local", GiB));
  }

  /// Two members on nodes of their own, and their sum on a third one.
  void write_logs() {
    Stripe stripe;
    stripe.group = "group";
    stripe.generation = 1;
    std::vector<std::unique_ptr<LogWriter>> writers;
    std::vector<std::vector<LogRun>> runs;
    for (int i = 0; i < 2; ++i) {
      LogIdentity identity;
      identity.log = "log-" + std::to_string(i);
      identity.file.path = "/scratch/a";
      writers.push_back(std::make_unique<LogWriter>(
          *LogDirectory::create(node("node-" + std::to_string(i)), identity.log), identity,
          LogSettings{64 * KiB, 4 * KiB}, room(), [](const LogRecord&, const LogPlace&) {}));
      Content bytes(static_cast<std::size_t>(5000 + i), static_cast<std::byte>(i + 1));
      const iovec piece{bytes.data(), bytes.size()};
      EXPECT_TRUE(writers.back()->append({&piece, 1}, i * 10'000, 1).status);
      EXPECT_TRUE(writers.back()->commit(1));
      LogGrowth growth = writers.back()->grown({});
      runs.push_back(std::move(growth.runs));
      stripe.members.push_back({.identity = identity,
                                .ranges = ranges_of(runs.back()),
                                .last_sequence = growth.end.sequence});
    }
    LogIdentity identity;
    identity.log = "parity-0";
    identity.purpose = LogPurpose::protection;
    identity.file.path = "/scratch/a";
    ParityWriter parity(*LogDirectory::create(node("node-2"), identity.log), identity, {}, room());
    ASSERT_TRUE(
        parity.append(stripe, [&](std::size_t member, Bytes offset, Bytes length, Content& buffer) {
          return read_runs(runs[member], offset, length, buffer);
        }));
    // What came later is not protected.
    Content bytes(100, std::byte{9});
    const iovec piece{bytes.data(), bytes.size()};
    ASSERT_TRUE(writers.front()->append({&piece, 1}, 50'000, 2).status);
    ASSERT_TRUE(writers.front()->commit(2));
  }

  /// `damaged`: what is left of it.
  Result<RebuiltLogs> rebuild_first(bool accept_missing = false, LogStore* damaged = nullptr) {
    const auto parity_store = LogDirectory::open(node("node-2"), "parity-0", Use::look);
    const auto parity = read_parity_log(**parity_store, ReadDepth::payloads);
    StoresByName left;
    const auto member = LogDirectory::open(node("node-1"), "log-1", Use::look);
    if (member) left["log-1"] = member->get();
    if (damaged != nullptr) left["log-0"] = damaged;
    const std::vector<std::string> names = {"log-0"};
    return rebuild_logs(node("node-2"), std::span(&*parity, 1), left, names, accept_missing);
  }

  std::vector<std::string> logs() { return *node("node-2")->logs(); }

  using Use = LogDirectory::Use;
  fs::path base_;
};

TEST_F(LostLogs, AreThereAgain) {
  {
    const auto rebuilt = rebuild_first();
    ASSERT_TRUE(rebuilt) << to_string(rebuilt.error());
    ASSERT_EQ(rebuilt->logs.size(), 1U);
    EXPECT_EQ(rebuilt->logs[0].name, "log-0");
    const auto contents = read_log(*rebuilt->logs[0].store, ReadDepth::payloads);
    ASSERT_TRUE(contents);
    EXPECT_EQ(contents->complete_bytes(), 5000);
    EXPECT_TRUE(contents->damage.empty());
    EXPECT_EQ(logs(), (std::vector<std::string>{"log-0", "parity-0"}));
    EXPECT_EQ(LogDirectory::open(node("node-2"), "log-0", Use::replace).error().kind,
              ErrorKind::exists)
        << "it is locked";
  }
  EXPECT_TRUE(LogDirectory::open(node("node-2"), "log-0", Use::replace));
}

TEST_F(LostLogs, ThatAreDamagedAreReadWithWhatIsMadeAgain) {
  const auto damaged = LogDirectory::open(node("node-0"), "log-0", Use::replace);
  ASSERT_TRUE(damaged);
  const Content wrong(100, std::byte{7});
  const auto segment = (*damaged)->open(segment_name(0));
  ASSERT_TRUE((*segment)->write_at(wrong, superblock_bytes + 1000));
  // An attempt that was interrupted has left something of that name.
  ASSERT_TRUE((*damaged)->create("remade-" + segment_name(0), 10));

  const auto rebuilt = rebuild_first(false, damaged->get());
  ASSERT_TRUE(rebuilt) << to_string(rebuilt.error());
  ASSERT_EQ(rebuilt->logs.size(), 1U);
  EXPECT_EQ(rebuilt->logs[0].store, nullptr);

  EXPECT_FALSE(read_log(**damaged, ReadDepth::payloads)->damage.empty());
  const LogParts parts{damaged->get(), rebuilt->logs[0].remade.get()};
  const auto together = read_logs({&parts, 1}, ReadDepth::payloads, 1);
  ASSERT_TRUE(together[0]);
  EXPECT_TRUE(together[0]->damage.empty());
  EXPECT_EQ(together[0]->complete_bytes(), 5000 + 100);
  EXPECT_EQ(logs(), std::vector<std::string>{"parity-0"}) << "it is no log of its own";
  ASSERT_TRUE((*damaged)->destroy());
  EXPECT_TRUE(node("node-0")->logs()->empty());
}

TEST_F(LostLogs, WhatWasNotProtectedIsFoundWhereTheSuperblockIsDamaged) {
  const auto damaged = LogDirectory::open(node("node-0"), "log-0", Use::replace);
  ASSERT_TRUE(damaged);
  const auto segment = (*damaged)->open(segment_name(0));
  ASSERT_TRUE((*segment)->write_at(Content(100, std::byte{7}), 30));
  ASSERT_FALSE(read_log(**damaged, ReadDepth::payloads));

  const auto rebuilt = rebuild_first(false, damaged->get());
  ASSERT_TRUE(rebuilt) << to_string(rebuilt.error());
  const LogParts parts{damaged->get(), rebuilt->logs.at(0).remade.get()};
  const auto together = read_logs({&parts, 1}, ReadDepth::payloads, 1);
  ASSERT_TRUE(together[0]);
  EXPECT_TRUE(together[0]->damage.empty());
  EXPECT_EQ(together[0]->complete_bytes(), 5000 + 100);
}

TEST_F(LostLogs, AreMadeAnewWhereAnAttemptWasInterrupted) {
  {
    const auto half = LogDirectory::create(node("node-2"), ".rebuilding-log-0");
    ASSERT_TRUE(half);
    ASSERT_TRUE((*half)->create("segment-00000000000000000000", 10));
  }
  EXPECT_EQ(logs(), std::vector<std::string>{"parity-0"}) << "that is no log";
  const auto rebuilt = rebuild_first();
  ASSERT_TRUE(rebuilt) << to_string(rebuilt.error());
  EXPECT_EQ(read_log(*rebuilt->logs[0].store, ReadDepth::payloads)->complete_bytes(), 5000);
}

TEST_F(LostLogs, LeaveNothingWhereTheyCannotBeGotBack) {
  fs::remove_all(base_ / "node-1");
  const auto failed = rebuild_first();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::io);
  EXPECT_NE(failed.error().what.find("log-0, log-1"), std::string::npos);
  EXPECT_EQ(logs(), std::vector<std::string>{"parity-0"});
  const auto accepted = rebuild_first(true);
  ASSERT_TRUE(accepted);
  EXPECT_EQ(accepted->report.missing.size(), 1U);
}

}  // namespace
}  // namespace forebay
