// Goal: a fault strikes the call that the plan names, does there what the fault model says, and
// nothing else changes; and every call of a run can be made to fail in turn.
// Method: a small workload on a MemoryFile, enumerated.

#include "core/storage/faulty_file.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <numeric>

#include "core/storage/memory_file.hpp"

namespace forebay {
namespace {

std::vector<std::byte> counting(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i + 1);
  return bytes;
}

struct Rig {
  explicit Rig(std::vector<Fault> faults)
      : plan(std::make_shared<FaultPlan>(std::move(faults))),
        file(make_faulty(open_memory_file(inode, counters), plan)) {}

  std::shared_ptr<MemoryInode> inode = std::make_shared<MemoryInode>();
  Counters counters;
  std::shared_ptr<FaultPlan> plan;
  std::unique_ptr<StorageFile> file;
};

TEST(FaultyFile, WithoutFaultsItIsTheFileInside) {
  Rig rig({});
  ASSERT_TRUE(rig.file->write_at(counting(10), 5));
  EXPECT_EQ(rig.file->size().value(), 15);
  EXPECT_TRUE(rig.file->sync());
  EXPECT_EQ(rig.plan->calls(StorageCall::write), 1);
  EXPECT_EQ(rig.plan->calls(StorageCall::size), 1);
  EXPECT_EQ(rig.plan->calls(StorageCall::sync), 1);
  EXPECT_EQ(rig.plan->calls(StorageCall::read), 0);
  EXPECT_EQ(rig.plan->fired(), 0);
}

TEST(FaultyFile, OnlyTheNthCallFails) {
  Rig rig({{.call = StorageCall::write, .nth = 1, .os_errno = EIO}});
  EXPECT_TRUE(rig.file->write_at(counting(4), 0));
  const auto second = rig.file->write_at(counting(4), 4);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::io);
  EXPECT_EQ(to_string(second.error()), "write to memory (injected): Input/output error");
  EXPECT_EQ(rig.file->size().value(), 4) << "nothing was written";
  EXPECT_TRUE(rig.file->write_at(counting(4), 4));
  EXPECT_EQ(rig.plan->fired(), 1);
}

TEST(FaultyFile, AFullDiskStaysFull) {
  Rig rig({{.call = StorageCall::write,
            .nth = 0,
            .os_errno = ENOSPC,
            .after_bytes = 3,
            .lasting = true}});
  const auto data = counting(8);
  std::vector<std::byte> copy = data;
  const std::vector<iovec> pieces{{copy.data(), 2}, {copy.data() + 2, 6}};
  EXPECT_EQ(rig.file->write_pieces(pieces, 0).error().kind, ErrorKind::no_space);
  EXPECT_EQ(rig.inode->content(), counting(3)) << "the bytes before the disk was full";
  EXPECT_EQ(rig.file->write_at(data, 100).error().kind, ErrorKind::no_space);
  EXPECT_EQ(rig.inode->content(), counting(3)) << "none afterwards";
  EXPECT_EQ(rig.plan->fired(), 2);
}

TEST(FaultyFile, AShortTransferIsResumedAndWhole) {
  for (const Bytes part : {0, 1, 5, 8, 100}) {
    Rig rig({{.call = StorageCall::write, .after_bytes = part},
             {.call = StorageCall::read, .after_bytes = part}});
    ASSERT_TRUE(rig.file->write_at(counting(8), 0));
    EXPECT_EQ(rig.inode->content(), counting(8));
    std::vector<std::byte> back(8);
    EXPECT_EQ(rig.file->read_at(back, 0).value(), 8);
    EXPECT_EQ(back, counting(8));
    std::vector<std::byte> beyond(20);
    EXPECT_EQ(rig.file->read_at(beyond, 4).value(), 4);
    EXPECT_EQ(rig.plan->fired(), 2);
  }
}

TEST(FaultyFile, AShortReadStillEndsWhereTheFileEnds) {
  for (const Bytes part : {2, 4, 6}) {
    Rig rig({{.call = StorageCall::read, .after_bytes = part}});
    ASSERT_TRUE(rig.file->write_at(counting(4), 0));
    std::vector<std::byte> buffer(10);
    EXPECT_EQ(rig.file->read_at(buffer, 0).value(), 4) << part;
  }
}

// One call of each kind, and two writes; the index of the call that failed, or -1.
int workload(StorageFile& file, std::vector<std::byte>& read) {
  if (!file.lock({0, 10}, StorageFile::LockKind::exclusive)) return 0;
  if (!file.write_at(counting(6), 0)) return 1;
  if (!file.write_at(counting(6), 6)) return 2;
  read.resize(12);
  if (!file.read_at(read, 0)) return 3;
  if (!file.resize(8)) return 4;
  if (!file.size()) return 5;
  if (!file.sync()) return 6;
  if (!file.allocate(9)) return 7;
  EXPECT_TRUE(file.unlock({0, 10}));
  return -1;
}

TEST(FaultyFile, EveryCallOfARunCanFailInTurn) {
  Rig clean({});
  std::vector<std::byte> read;
  ASSERT_EQ(workload(*clean.file, read), -1);
  const std::vector<int> order_of_kind[storage_calls] = {{1, 2}, {3}, {5}, {4}, {7}, {6}, {0}};
  int runs = 0;
  for (int kind = 0; kind < storage_calls; ++kind) {
    const auto call = static_cast<StorageCall>(kind);
    const std::int64_t calls = clean.plan->calls(call);
    ASSERT_EQ(calls, static_cast<std::int64_t>(order_of_kind[kind].size()));
    for (std::int64_t nth = 0; nth < calls; ++nth, ++runs) {
      Rig rig({{.call = call, .nth = nth, .os_errno = EDQUOT}});
      EXPECT_EQ(workload(*rig.file, read), order_of_kind[kind][static_cast<std::size_t>(nth)]);
      EXPECT_EQ(rig.plan->fired(), 1);
    }
  }
  EXPECT_EQ(runs, 8);
}

}  // namespace
}  // namespace forebay
