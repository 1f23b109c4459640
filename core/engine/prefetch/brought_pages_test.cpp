// Goal: what is fetched through the page cache does not stay there, and what was there before does.
// Method: a source that is a page cache, which its reads fill or pass by.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/engine/prefetch/prefetch_rig.hpp"
#include "core/engine/prefetch/prefetched_file.hpp"
#include "core/plan/fetch_piece.hpp"

namespace forebay {
namespace {

using ::testing::IsEmpty;

constexpr Bytes unit = direct_alignment;
constexpr Bytes block = 16 * unit;
constexpr Bytes size = 16 * block + 100;

class PagedSource final : public FetchSource {
 public:
  explicit PagedSource(VersionedContent& content) : content_(content), file_(content.open()) {}

  Result<Bytes> read(std::span<std::byte> into, Bytes offset) override {
    for (Bytes at = offset; at < offset + static_cast<Bytes>(into.size()); at += unit) {
      if (keeps_reads && at < size) pages.insert(at);
    }
    most_pages = std::max(most_pages, pages.size());
    return file_->read_at(into, offset);
  }
  std::optional<FileVersion> version() override { return content_.version(); }
  Bytes resident(Extent extent) override {
    Bytes count = 0;
    for (Bytes at = extent.offset; at < extent.end(); at += unit) count += pages.count(at) * unit;
    return count;
  }
  Status advise(Extent extent, bool) override {
    for (Bytes at = extent.offset; at < extent.end(); at += unit) pages.erase(at);
    return {};
  }
  int descriptor() const override { return -1; }

  bool keeps_reads = true;
  std::set<Bytes> pages;
  std::size_t most_pages = 0;

 private:
  VersionedContent& content_;
  const std::unique_ptr<StorageFile> file_;
};

struct Rig {
  Rig() {
    auto made = std::make_unique<PagedSource>(content);
    source = made.get();
    ReadIntent intent;
    intent.willneed = {{0, 0}};
    file = std::make_unique<PrefetchedFile>("memory", std::move(made), std::move(intent),
                                            *FetchBuffer::make(4 * block), block);
    file->start(content.version(), VersionedContent::later_ns);
  }

  /// The whole file, all of it from memory.
  void read_all() {
    std::vector<std::byte> into(static_cast<std::size_t>(unit));
    for (Bytes at = 0; at < size; at += unit) {
      fetch_all(*file);
      const Bytes length = std::min(unit, size - at);
      EXPECT_EQ(file->serve(std::span(into).first(static_cast<std::size_t>(length)), at,
                            content.version(), VersionedContent::later_ns)
                    .bytes,
                length);
    }
  }

  VersionedContent content{size};
  PagedSource* source = nullptr;
  std::unique_ptr<PrefetchedFile> file;
};

TEST(BroughtPages, GoAsSoonAsTheBufferHasThem) {
  Rig rig;
  rig.read_all();
  EXPECT_THAT(rig.source->pages, IsEmpty());
  EXPECT_LE(rig.source->most_pages, static_cast<std::size_t>(block / unit));
}

TEST(BroughtPages, WhatWasThereBeforeStays) {
  Rig rig;
  const std::set<Bytes> before = {3 * unit, 4 * unit, 20 * unit};
  rig.source->pages = before;
  rig.read_all();
  EXPECT_EQ(rig.source->pages, before);
}

TEST(BroughtPages, WhereReadsLeaveNoneOthersMayBringThemMeanwhile) {
  Rig rig;
  rig.source->keeps_reads = false;
  const auto first = rig.file->next_request();
  ASSERT_TRUE(first.has_value());
  carry_out(*rig.file, *first);
  const auto second = rig.file->next_request();
  ASSERT_TRUE(second.has_value());
  const std::set<Bytes> of_others = {second->offset, second->offset + unit};
  rig.source->pages = of_others;
  carry_out(*rig.file, *second);
  EXPECT_EQ(rig.source->pages, of_others);
}

}  // namespace
}  // namespace forebay
