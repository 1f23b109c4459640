// Goal: a backing file has one node while the kernel knows it, under all its names, and none after.
// Method: real files in a temporary directory, entered and forgotten.

#include "testbed/node_table.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace forebay::testbed {
namespace {

class NodeTableTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/node_table_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    std::ofstream(directory_ / "a") << "a";
    std::filesystem::create_hard_link(directory_ / "a", directory_ / "a_too");
    std::ofstream(directory_ / "b") << "b";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  FileDescriptor open(const char* name) const {
    return FileDescriptor(::open((directory_ / name).c_str(), O_PATH | O_CLOEXEC));
  }
  std::shared_ptr<Node> enter(NodeTable& table, const char* name) const {
    FileDescriptor fd = open(name);
    struct stat status{};
    EXPECT_EQ(::fstat(fd.get(), &status), 0);
    return table.enter(std::move(fd), status);
  }

  std::filesystem::path directory_;
};

TEST_F(NodeTableTest, HardLinksAreOneNode) {
  NodeTable table(open("."), 1, 16);
  const auto a = enter(table, "a");
  EXPECT_EQ(a->id, 16u);
  EXPECT_EQ(enter(table, "a_too"), a);
  EXPECT_NE(enter(table, "b"), a);
  EXPECT_EQ(enter(table, ".")->id, 1u);
  EXPECT_EQ(table.find(16), a);
  EXPECT_EQ(table.find(99), nullptr);
}

TEST_F(NodeTableTest, ANodeLivesUntilAllLookupsAreForgotten) {
  NodeTable table(open("."), 1, 16);
  const NodeId id = enter(table, "a")->id;
  enter(table, "a");
  enter(table, "a");
  table.forget(id, 2);
  EXPECT_NE(table.find(id), nullptr);
  table.forget(id, 1);
  EXPECT_EQ(table.find(id), nullptr);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_NE(enter(table, "a")->id, id) << "ids are never used again";
}

TEST_F(NodeTableTest, TheRootIsNeverForgotten) {
  NodeTable table(open("."), 1, 16);
  table.forget(1, 1);
  EXPECT_NE(table.find(1), nullptr);
}

}  // namespace
}  // namespace forebay::testbed
