// Goal: whoever reads what is only in the log gets what was written or an error, whatever the
// device gives back; one damaged record costs nothing but its own bytes. Method: bits are flipped
// in the log under an open file, which is read whole, in parts and by several threads.

#include "core/engine/cache/merged_read.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/engine/cache/cache_rig.hpp"
#include "core/engine/cache/log_contents.hpp"
#include "core/engine/cache/log_directory.hpp"
#include "core/engine/cache/replay.hpp"
#include "core/model/noise.hpp"

namespace forebay {
namespace {

using Content = std::vector<std::byte>;
using ::testing::HasSubstr;

constexpr Bytes payload = 1024;

/// Flips one bit in the middle of the payload of the record, counted from 0.
void flip_in(LogStore& log, std::size_t record) {
  const auto contents = read_log(log, ReadDepth::headers);
  ASSERT_TRUE(contents);
  const LogPlace& place = contents->complete.at(record).place;
  const Bytes at = place.payload + place.stored / 2;
  const auto segment = log.open(segment_name(0));
  Content byte(1);
  ASSERT_TRUE((*segment)->read_at(byte, at));
  byte[0] ^= std::byte{4};
  ASSERT_TRUE((*segment)->write_at(byte, at));
}

/// Three records that are only in the log, of 1024 bytes each, and nothing else is.
class MergedRead : public ::testing::TestWithParam<Toggle> {
 protected:
  MergedRead() {
    rig_.options.flush = CacheFlush::onclose;
    rig_.options.log = {32 * KiB, payload, GetParam()};
    // As they are in the log, and such that lz4 makes something of them.
    bytes_ = noise(3 * payload, 1);
    if (GetParam() == Toggle::enable) {
      rig_.options.log = {128 * KiB, 8 * payload, GetParam()};
      bytes_.resize(3 * 8 * payload);
      for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::byte>(i / 100);
    }
    length_ = static_cast<Bytes>(bytes_.size()) / 3;
    file_ = rig_.open();
    EXPECT_TRUE(file_->write_at(bytes_, 0));
    EXPECT_TRUE(file_->commit(2));
  }

  void flip(std::size_t record) { flip_in(*rig_.log->open(), record); }
  Result<Content> read(Bytes offset, Bytes length) {
    Content back(static_cast<std::size_t>(length));
    const auto got = file_->read_at(back, offset);
    if (!got) return tl::unexpected(got.error());
    back.resize(static_cast<std::size_t>(*got));
    return back;
  }
  Content written(Bytes offset, Bytes length) const {
    return {bytes_.begin() + offset, bytes_.begin() + offset + length};
  }
  void expect_right(Bytes offset, Bytes length) {
    const auto back = read(offset, length);
    ASSERT_TRUE(back) << to_string(back.error());
    EXPECT_EQ(*back, written(offset, length));
  }

  CacheRig rig_;
  Content bytes_;
  Bytes length_ = 0;  ///< Of a record.
  std::unique_ptr<CachedFile> file_;
};

TEST_P(MergedRead, AFlippedBitIsAnErrorOfItsRecordAlone) {
  flip(1);
  for (const Extent range : {Extent{0, 3 * length_}, Extent{length_, length_}, Extent{length_, 1},
                             Extent{2 * length_ - 1, 1}}) {
    const auto refused = read(range.offset, range.length);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::io);
    EXPECT_THAT(refused.error().what, HasSubstr("bytes " + std::to_string(length_) + " to " +
                                                std::to_string(2 * length_) + " are in record 2"));
    EXPECT_THAT(refused.error().what, HasSubstr(segment_name(0) + " is damaged: the checksum of "));
    EXPECT_THAT(refused.error().what, HasSubstr("recover --skip-damage "));
  }
  expect_right(0, length_);
  expect_right(length_ - 10, 10);
  expect_right(2 * length_, length_);
  expect_right(2 * length_ + 5, 10);
}

TEST_P(MergedRead, WhatIsWrittenOverADamagedRecordIsReadAndFlushed) {
  flip(1);
  EXPECT_FALSE(read(length_, 10));
  const Content again = noise(static_cast<std::size_t>(length_), 2);
  ASSERT_TRUE(file_->write_at(again, length_));
  std::ranges::copy(again, bytes_.begin() + length_);
  expect_right(0, 3 * length_);
  ASSERT_TRUE(file_->close());
  EXPECT_EQ(rig_.file->content(), bytes_);
}

TEST_P(MergedRead, ADamagedRecordTakesNoOthersWithIt) {
  flip(1);
  EXPECT_FALSE(read(length_, 10));
  EXPECT_FALSE(file_->close()) << "it is in no file";
  file_.reset();
  const auto log = rig_.log->open();
  const auto contents = read_log(*log, ReadDepth::payloads);
  ASSERT_TRUE(contents);
  const auto file = open_volatile_file(rig_.file);
  ASSERT_TRUE(replay(*file, std::vector{*contents}, {.skip_damage = true}));
  std::fill_n(bytes_.begin() + length_, length_, std::byte{0});
  EXPECT_EQ(rig_.file->content(), bytes_);
}

TEST_P(MergedRead, PartsOfOneRecordCostOneReadOfTheLog) {
  const std::int64_t before = rig_.log_plan->calls(StorageCall::read);
  for (Bytes at = 0; at < length_; at += 64) expect_right(at, 64);
  EXPECT_EQ(rig_.log_plan->calls(StorageCall::read) - before, 1);
  flip(0);
  expect_right(10, 20);  // Of what was verified, whatever the device says now.
  flip(1);
  EXPECT_FALSE(read(length_ + 10, 20));
  EXPECT_FALSE(read(10, 20)) << "it is kept no more";
}

TEST_P(MergedRead, PartsThatWereWrittenOverAreNotReadOfWhatIsKept) {
  for (int turn = 0; turn < 3; ++turn) {
    expect_right(0, 500);
    const Content newer = noise(100, static_cast<unsigned>(10 + turn));
    ASSERT_TRUE(file_->write_at(newer, 200 + turn * 50));
    std::ranges::copy(newer, bytes_.begin() + 200 + turn * 50);
    expect_right(0, 500);
    expect_right(210, 50);
    expect_right(0, 3 * length_);
  }
}

TEST_P(MergedRead, ThreadsReadPartsBesideEachOther) {
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([this, number] {
      for (int i = 0; i < 200; ++i) expect_right((number * 37 + i * 101) % (3 * length_ - 90), 90);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Payloads, MergedRead, ::testing::Values(Toggle::disable, Toggle::enable));

TEST(MergedReadFaults, ALogThatCannotBeReadOnceIsReadTheNextTime) {
  CacheRig rig;
  rig.options.flush = CacheFlush::onclose;
  rig.log_plan = std::make_shared<FaultPlan>(std::vector<Fault>{
      {.call = StorageCall::read, .nth = 0, .os_errno = EIO, .after_bytes = 10}});
  const auto file = rig.open();
  const Content bytes = noise(1000, 1);
  ASSERT_TRUE(file->write_at(bytes, 0));
  Content back(100);
  EXPECT_EQ(file->read_at(back, 300).error().kind, ErrorKind::io);
  ASSERT_TRUE(file->read_at(back, 300));
  EXPECT_TRUE(std::equal(back.begin(), back.end(), bytes.begin() + 300));
}

TEST(MergedReadFaults, ABitThatFlipsInMemoryIsFoundToo) {
  std::string name = "/dev/shm/forebay-read-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) GTEST_SKIP() << "no /dev/shm here";
  {
    const auto directory = CacheDirectory::open(name, CacheDirectory::Access::create);
    ASSERT_TRUE(directory);
    const CacheRig rig;
    LogIdentity identity;
    identity.log = "log";
    CacheOptions options = CacheRig::small_options();
    options.flush = CacheFlush::onclose;
    const auto file =
        *CachedFile::open(open_volatile_file(rig.file), *LogDirectory::create(*directory, "log"),
                          identity, rig.capacity, options);
    const Content bytes = noise(2 * payload, 1);
    ASSERT_TRUE(file->write_at(bytes, 0));
    ASSERT_TRUE(file->commit(2));
    flip_in(**LogDirectory::open(*directory, "log", LogDirectory::Use::look), 1);
    Content back(2 * payload);
    EXPECT_EQ(file->read_at(back, 0).error().kind, ErrorKind::io);
    EXPECT_FALSE(file->read_at(std::span(back).first(10), payload));
    const auto first = std::span(back).first(payload);
    ASSERT_TRUE(file->read_at(first.first(10), 0));
    ASSERT_TRUE(file->read_at(first.subspan(10), 10));
    EXPECT_TRUE(std::ranges::equal(first, std::span(bytes).first(payload)));
  }
  std::filesystem::remove_all(name);
}

}  // namespace
}  // namespace forebay
