// Goal: which file an MPI opened by a name is told by what is there, and not told where that leaves
// a choice. Method: a directory of the test's own, and files of either name.
#include "core/intercept/mpi/file_name.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace forebay {
namespace {

class FileName : public testing::Test {
 protected:
  FileName() {
    std::string name = (std::filesystem::temp_directory_path() / "file_name_test-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    before_ = std::filesystem::current_path();
    std::filesystem::current_path(directory_);
    directory_ = std::filesystem::current_path();  // Without links.
  }
  ~FileName() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(directory_);
  }
  static void make(const std::string& name) { std::ofstream(name) << "x"; }
  std::string here(const std::string& name) const { return (directory_ / name).string(); }

 private:
  std::filesystem::path directory_;
  std::filesystem::path before_;
};

TEST_F(FileName, WithoutColonIsItself) {
  EXPECT_EQ(opened_path("a"), here("a"));  // It may be gone again.
  EXPECT_EQ(opened_path("/x/./y"), "/x/y");
  EXPECT_EQ(opened_path("b/../a"), here("b/../a"));
}

TEST_F(FileName, WithColonIsTheOneThatIsThere) {
  make("ufs:whole");
  EXPECT_EQ(opened_path("ufs:whole"), here("ufs:whole"));
  make("rest");
  EXPECT_EQ(opened_path("ufs:rest"), here("rest"));
  EXPECT_EQ(opened_path("ufs:" + here("rest")), here("rest"));
  make("12:30");
  EXPECT_EQ(opened_path(here("12:30")), here("12:30"));
}

TEST_F(FileName, WithColonMayLeaveAChoice) {
  EXPECT_FALSE(opened_path("ufs:neither"));
  EXPECT_FALSE(opened_path("ufs:"));
  make("both");
  make("ufs:both");
  EXPECT_FALSE(opened_path("ufs:both"));
}

TEST_F(FileName, IsDeclaredWithoutFileSystem) {
  EXPECT_EQ(declared_path("lustre:/scratch/a"), "/scratch/a");
  EXPECT_EQ(declared_path("ufs:a"), here("a"));
  EXPECT_EQ(declared_path("12:30"), here("12:30"));
}

TEST(FamilyOf, IsOneForFilesWhoseNamesDifferInNumbersAlone) {
  EXPECT_EQ(family_of("/run7/plt_0099.h5"), family_of("/run7/plt_00100.h5"));
  EXPECT_NE(family_of("/run7/plt_1"), family_of("/run8/plt_1"));
  EXPECT_NE(family_of("/run7/plt_1"), family_of("/run7/chk_1"));
  EXPECT_EQ(family_of("/run7/7"), "/run7/#");
  EXPECT_EQ(family_of("restart"), "restart");
}

}  // namespace
}  // namespace forebay
