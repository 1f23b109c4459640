// Goal: who watches a log from outside sees how far its writer has got, or that it cannot be told.
// Method: a page in memory, read back; one that is damaged, one that cannot be written.

#include "core/engine/cache/status_page.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "core/engine/cache/memory_log_store.hpp"

namespace forebay {
namespace {

TEST(StatusPage, ShowsWhatWasPublishedLast) {
  MemoryLog log;
  const auto store = log.open();
  EXPECT_EQ(StatusPage::read(*store).error().kind, ErrorKind::no_such_file);
  StatusPage page(*store);
  page.publish({.absorbed = 1}, true);
  page.publish({.absorbed = 100, .drained = 60, .dirty = 40, .draining = true}, true);
  CacheProgress found = StatusPage::read(*store).value();
  EXPECT_GT(found.updated_unix_ms, 0);
  found.updated_unix_ms = 0;
  EXPECT_EQ(found, (CacheProgress{.absorbed = 100, .drained = 60, .dirty = 40, .draining = true}));
}

TEST(StatusPage, IsNotRewrittenAtEveryWrite) {
  MemoryLog log;
  const auto plan = std::make_shared<FaultPlan>();
  StatusPage page(*log.open(plan));
  page.publish({.absorbed = 1}, true);
  const std::int64_t once = plan->calls(StorageCall::write);
  for (Bytes i = 0; i < 1000; ++i) page.publish({.absorbed = i}, false);
  EXPECT_LT(plan->calls(StorageCall::write), once + 1000);
}

TEST(StatusPage, IsAskedForAgainWhereItWasBeingRewritten) {
  MemoryLog log;
  StatusPage page(*log.open());
  page.publish({.absorbed = 100}, true);
  auto files = log.files();
  files.at("status").at(30) ^= std::byte{1};
  MemoryLog torn(files);
  EXPECT_EQ(StatusPage::read(*torn.open()).error().kind, ErrorKind::io);
}

TEST(StatusPage, StandsInNobodysWay) {
  for (const StorageCall call : {StorageCall::allocate, StorageCall::write}) {
    MemoryLog log;
    const auto plan = std::make_shared<FaultPlan>(
        std::vector<Fault>{{.call = call, .nth = 0, .os_errno = ENOSPC, .lasting = true}});
    StatusPage page(*log.open(plan));
    page.publish({.absorbed = 100}, true);
    page.publish({.absorbed = 200}, true);
    EXPECT_FALSE(StatusPage::read(*log.open()));
  }
}

}  // namespace
}  // namespace forebay
