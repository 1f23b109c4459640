// Goal: an opening of our own asks of the kernel what the program's asks of it, and what is in the
// page cache is told from what is not. Method: a temporary file, which its owner may open without
// setting the time of its last access, and which was written just now.
#include "core/storage/fetch_source.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/storage/descriptor.hpp"
#include "core/storage/thread_waits.hpp"

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

void wait_a_moment() { ::poll(nullptr, 0, 1); }

/// Of who never waited that is not known.
bool waits_are_counted() {
  wait_a_moment();
  return waits_of_thread() > 0;
}

/// One that waits, or does not.
class SlowSource final : public FetchSource {
 public:
  explicit SlowSource(bool waits) : waits_(waits) {}
  Result<Bytes> read(std::span<std::byte> into, Bytes /*offset*/) override {
    if (waits_) wait_a_moment();
    return static_cast<Bytes>(into.size());
  }
  std::optional<FileVersion> version() override { return std::nullopt; }
  Bytes resident(Extent /*extent*/) override { return 0; }
  Status advise(Extent /*extent*/, bool /*is_needed*/) override { return {}; }
  int descriptor() const override { return -1; }

 private:
  const bool waits_;
};

TEST(FetchSource, OnlyWhoWaitsTakesTime) {
  if (!waits_are_counted()) GTEST_SKIP();
  std::vector<std::byte> bytes(1);
  EXPECT_GT(SlowSource(true).time_read(bytes, 0).value(), 0);
  EXPECT_EQ(SlowSource(false).time_read(bytes, 0).value(), 0);
}

TEST(FetchSource, WhatIsInThePageCacheIsReadWithoutWaiting) {
  if (!waits_are_counted()) GTEST_SKIP();
  std::string path = ::testing::TempDir() + "/fetch_source_XXXXXX";
  const Descriptor file(::mkstemp(path.data()));
  ASSERT_TRUE(file.valid());
  std::vector<std::byte> bytes(1 << 20);
  ASSERT_EQ(::write(file.get(), bytes.data(), bytes.size()), std::ssize(bytes));
  const auto source = open_fetch_source(file.get(), path, Through::page_cache);
  ASSERT_TRUE(source.has_value()) << to_string(source.error());
  const auto ns = (*source)->time_read(bytes, 0);
  ASSERT_TRUE(ns.has_value()) << to_string(ns.error());
  EXPECT_EQ(*ns, 0);
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace forebay
