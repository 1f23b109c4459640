// Goal: who looks at a file sees which logs hold bytes of it, and sees nothing half written; what a
// recovery had got to is known after it was interrupted.
// Method: a directory of the test's own; random notices; damaged ones.

#include "core/engine/cache/sidecar.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace forebay {
namespace {

namespace fs = std::filesystem;

DirtyNotice some_notice(const std::string& log) {
  DirtyNotice notice;
  notice.file = {"/scratch/a \"b\"\n", 7, 8};
  notice.log = log;
  notice.log_path = "/dev/shm/forebay-cache-0/" + log;
  notice.host = "node1";
  notice.job = "4711";
  notice.process = 99;
  notice.rank = 3;
  notice.since_unix_s = 1'700'000'000;
  notice.is_protected = true;
  notice.flushed = 17;
  return notice;
}

class SidecarTest : public ::testing::Test {
 protected:
  SidecarTest() {
    std::string name = fs::temp_directory_path() / "forebay-sidecar-XXXXXX";
    base_ = ::mkdtemp(name.data());
    file_ = base_ / "data.h5";
    beside_ = base_ / ".data.h5.forebay-dirty";
  }
  ~SidecarTest() override { fs::remove_all(base_); }

  fs::path base_;
  fs::path file_;
  fs::path beside_;
};

TEST_F(SidecarTest, IsThereAsLongAsALogIsDirty) {
  Sidecar sidecar(file_);
  EXPECT_EQ(sidecar.path(), beside_);
  EXPECT_TRUE(sidecar.read()->notices.empty());
  ASSERT_TRUE(sidecar.announce(some_notice("one")));
  ASSERT_TRUE(sidecar.announce(some_notice("two")));
  DirtyNotice changed = some_notice("one");
  changed.rank = 5;
  ASSERT_TRUE(sidecar.announce(changed));
  const auto found = sidecar.read();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->notices, (std::vector<DirtyNotice>{changed, some_notice("two")}));
  ASSERT_TRUE(sidecar.withdraw("one"));
  EXPECT_TRUE(fs::exists(beside_));
  ASSERT_TRUE(sidecar.withdraw("two"));
  EXPECT_FALSE(fs::exists(beside_));
  EXPECT_TRUE(sidecar.withdraw("two"));
}

TEST_F(SidecarTest, IsPutThereAndTakenAwayByManyRanksAtOnce) {
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([&, log = "log-" + std::to_string(rank)] {
      Sidecar sidecar(file_);
      for (int i = 0; i < 200; ++i) {
        const Status announced = sidecar.announce(some_notice(log));
        EXPECT_TRUE(announced) << to_string(announced.error());
        const Status withdrawn = sidecar.withdraw(log);
        EXPECT_TRUE(withdrawn) << to_string(withdrawn.error());
      }
    });
  }
  for (auto& rank : ranks) rank.join();
  EXPECT_FALSE(fs::exists(beside_));
}

TEST_F(SidecarTest, TellsOfNoticesThatCannotBeRead) {
  Sidecar sidecar(file_);
  ASSERT_TRUE(sidecar.announce(some_notice("good")));
  std::ofstream(beside_ / "bad.json") << "{";
  std::ofstream(beside_ / ".good.json-17") << "half wri";
  const auto found = sidecar.read();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->notices.size(), 1U);
  ASSERT_EQ(found->problems.size(), 1U);
  EXPECT_NE(found->problems[0].find("bad.json"), std::string::npos);
}

TEST_F(SidecarTest, CannotBeMadeWhereItsDirectoryIsNot) {
  Sidecar sidecar(base_ / "none" / "file");
  EXPECT_EQ(sidecar.announce(some_notice("x")).error().kind, ErrorKind::no_such_file);
  EXPECT_TRUE(sidecar.read()->notices.empty());
  EXPECT_TRUE(sidecar.recovered()->empty());
}

/// Paths are bytes, and JSON is UTF-8.
TEST_F(SidecarTest, HasPathsOfAnyBytes) {
  DirtyNotice notice = some_notice("one");
  notice.file.path = "/scratch/\xff\xfe";
  notice.log_path = "/local/\xff/forebay-cache-0/one";
  Sidecar sidecar(file_);
  ASSERT_TRUE(sidecar.announce(notice));
  EXPECT_EQ(sidecar.read()->notices, std::vector{notice});
  const std::string text = encode_notice(notice);
  EXPECT_NE(text.find("/scratch/\xEF\xBF\xBD"), std::string::npos) << "for people: " << text;
  const RecoveryNote note{.host = "node1", .logs = {{"one", "/local/\xff"}}};
  EXPECT_EQ(parse_recovery(encode_recovery(note)).value(), note);
}

RecoveryNote some_recovery(const std::vector<std::string>& logs) {
  RecoveryNote note;
  note.host = "node1";
  for (const std::string& log : logs) note.logs.push_back({log, "/local/nvme/forebay-cache-0"});
  return note;
}

TEST_F(SidecarTest, RemembersWhatEachRecoveryHasDone) {
  Sidecar sidecar(file_);
  EXPECT_TRUE(sidecar.recoveries()->empty());
  const RecoveryNote one = some_recovery({"one", "two"});
  RecoveryNote other = some_recovery({"three"});
  other.host = "node2";
  other.logs.push_back({"four", "/rescued/node3/forebay-cache-0"});
  const auto one_name = sidecar.note_recovered(one);
  ASSERT_TRUE(one_name);
  const auto other_name = sidecar.note_recovered(other);
  ASSERT_TRUE(other_name);
  EXPECT_EQ(sidecar.recoveries().value(),
            (std::map<std::string, RecoveryNote>{{*one_name, one}, {*other_name, other}}));
  EXPECT_EQ(sidecar.recovered().value(), (std::vector<std::string>{"one", "two", "three", "four"}));
  EXPECT_TRUE(sidecar.read()->notices.empty());
  ASSERT_TRUE(sidecar.forget_recovery(*one_name));
  EXPECT_EQ(sidecar.recovered().value(), (std::vector<std::string>{"three", "four"}));
  ASSERT_TRUE(sidecar.forget_recovery(*other_name));
  EXPECT_FALSE(fs::exists(beside_));
}

TEST_F(SidecarTest, ReadsWhatARecoveryOfVersion1HasDone) {
  fs::create_directory(beside_);
  std::ofstream(beside_ / "recovered")
      << R"({"checksum":"446b4732","content":{"logs":["one","two"]},)"
      << R"("format":"forebay recovery","version":1})" << '\n';
  Sidecar sidecar(file_);
  RecoveryNote expected;
  expected.logs = {{"one", ""}, {"two", ""}};
  const auto found = sidecar.recoveries();
  ASSERT_TRUE(found) << to_string(found.error());
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->begin()->second, expected);
  ASSERT_TRUE(sidecar.forget_recovery(found->begin()->first));
  EXPECT_FALSE(fs::exists(beside_));
}

TEST_F(SidecarTest, IsTidiedOfWhatNobodyFinished) {
  Sidecar sidecar(file_);
  ASSERT_TRUE(sidecar.note_recovered(some_recovery({"other"})));
  for (const char* name : {".one.json-17", ".one.recovered-17", ".other.recovered-18"}) {
    std::ofstream(beside_ / name) << "half wri";
  }
  ASSERT_TRUE(sidecar.tidy({"one"}));
  EXPECT_FALSE(fs::exists(beside_ / ".one.json-17"));
  EXPECT_FALSE(fs::exists(beside_ / ".one.recovered-17"));
  EXPECT_TRUE(fs::exists(beside_ / ".other.recovered-18")) << "somebody may be writing it";
  EXPECT_EQ(sidecar.recovered().value(), (std::vector<std::string>{"other"}));
}

TEST_F(SidecarTest, TakesNobodyElsesWordForARecovery) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a file of another user";
  Sidecar sidecar(file_);
  const auto name = sidecar.note_recovered(some_recovery({"one"}));
  ASSERT_TRUE(name);
  ASSERT_EQ(::chown((beside_ / *name).c_str(), 12345, 12345), 0);
  EXPECT_EQ(sidecar.recovered().error().kind, ErrorKind::access);
  fs::remove(beside_ / *name);
  std::ofstream(base_ / "elsewhere") << "{}";
  fs::create_symlink(base_ / "elsewhere", beside_ / *name);
  EXPECT_FALSE(sidecar.recovered());
}

TEST(RecoveryNote, IsRefusedWhereItIsDamagedOrOfAnotherVersion) {
  const std::string text = encode_recovery(some_recovery({"one", "two"}));
  EXPECT_EQ(parse_recovery(text).value(), some_recovery({"one", "two"}));
  std::string damaged = text;
  damaged.replace(damaged.find("node1"), 5, "node2");
  EXPECT_EQ(to_string(parse_recovery(damaged).error()),
            "the forebay recovery is damaged: its checksum is wrong");
  EXPECT_EQ(to_string(parse_recovery_of_version_1(text).error()),
            "the forebay recovery is of format version 2, and this Forebay reads version 1");
  EXPECT_FALSE(parse_recovery(encode_notice(some_notice("one"))));
  for (std::size_t end = 0; end + 1 < text.size(); ++end) {
    EXPECT_FALSE(parse_recovery(text.substr(0, end)));
  }
}

RC_GTEST_PROP(DirtyNoticeProperty, is_read_as_it_was_written, ()) {
  // JSON holds text; bytes that are none are replaced, and the notice stays readable.
  const bool text = *rc::gen::arbitrary<bool>();
  const auto draw = [text] {
    return text ? *rc::gen::container<std::string>(rc::gen::inRange('\1', '\177'))
                : *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  };
  DirtyNotice notice = some_notice("log");
  notice.file.path = draw();
  notice.file.inode = *rc::gen::arbitrary<std::uint64_t>();
  notice.file.made_unix_ns = *rc::gen::arbitrary<std::int64_t>();
  notice.is_protected = *rc::gen::arbitrary<bool>();
  notice.flushed = *rc::gen::arbitrary<std::uint64_t>();
  notice.is_left = *rc::gen::arbitrary<bool>();
  notice.host = draw();
  notice.process = *rc::gen::arbitrary<std::int64_t>();
  notice.rank = *rc::gen::arbitrary<int>();
  const auto read = parse_notice(encode_notice(notice));
  RC_ASSERT(read.has_value());
  if (text) {
    RC_ASSERT(*read == notice);
  } else {
    RC_ASSERT(read->file.inode == notice.file.inode);
  }
}

TEST(DirtyNotice, IsRefusedWhereItIsDamagedOrNew) {
  const std::string text = encode_notice(some_notice("one"));
  std::string damaged = text;
  damaged.replace(damaged.find("node1"), 5, "node2");
  EXPECT_EQ(to_string(parse_notice(damaged).error()),
            "the forebay dirty notice is damaged: its checksum is wrong");
  std::string newer = text;
  newer.replace(newer.find("\"version\":1"), 11, "\"version\":2");
  EXPECT_EQ(parse_notice(newer).error().kind, ErrorKind::unsupported);
  EXPECT_EQ(to_string(parse_notice(newer).error()),
            "the forebay dirty notice is of format version 2, and this Forebay reads version 1");
  std::string nested = text;
  nested.replace(nested.find("\"version\":1"), 11,
                 "\"version\":" + std::string(500'000, '[') + std::string(500'000, ']'));
  EXPECT_EQ(parse_notice(nested).error().kind, ErrorKind::unsupported);
  for (std::size_t end = 0; end + 1 < text.size(); ++end) {
    EXPECT_FALSE(parse_notice(text.substr(0, end)));
  }
}

}  // namespace
}  // namespace forebay
