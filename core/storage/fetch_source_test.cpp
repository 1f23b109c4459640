// Goal: an opening of our own asks of the kernel what the program's asks of it. Method: a temporary
// file, which its owner may open without setting the time of its last access.
#include "core/storage/fetch_source.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "core/storage/descriptor.hpp"

namespace forebay {
namespace {

TEST(FetchSource, LeavesTheTimeOfLastAccessAloneWhereTheProgramDoes) {
  std::string path = ::testing::TempDir() + "/fetch_source_XXXXXX";
  const Descriptor made(::mkstemp(path.data()));
  ASSERT_TRUE(made.valid());
  for (const int flag : {O_NOATIME, 0}) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flag));
    ASSERT_TRUE(file.valid());
    for (const Through way : {Through::direct, Through::widened_page_cache, Through::page_cache}) {
      const auto source = open_fetch_source(file.get(), path, way);
      ASSERT_TRUE(source.has_value()) << to_string(source.error());
      EXPECT_EQ(::fcntl((*source)->descriptor(), F_GETFL) & O_NOATIME, flag);
    }
  }
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace forebay
