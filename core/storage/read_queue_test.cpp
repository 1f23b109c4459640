// Goal: reads in the background bring the file's bytes, tell failures and the end of the file, and
// can be woken; by io_uring and by threads alike.
// Method: a temporary file, both queues over the same cases. Where the kernel has no io_uring, its
// half is skipped. What may not be called is refused by a filter (seccomp) that holds for one
// thread.

#include "core/storage/read_queue.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/storage/descriptor.hpp"

namespace forebay {
namespace {

constexpr Bytes unit = 4 * KiB;

class ReadQueueTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    queue = std::string(GetParam()) == "uring" ? make_uring_queue(8) : make_thread_queue(8);
    if (queue == nullptr) GTEST_SKIP() << "this kernel gives no io_uring";
    std::string name = ::testing::TempDir() + "/read_queue_XXXXXX";
    file = Descriptor(::mkstemp(name.data()));
    ASSERT_TRUE(file.valid());
    ::unlink(name.c_str());
    for (Bytes i = 0; i < 100 * unit + 10; ++i) content.push_back(static_cast<char>(i * 31 / 7));
    ASSERT_EQ(::write(file.get(), content.data(), content.size()),
              static_cast<ssize_t>(content.size()));
    auto opened = open_fetch_source(file.get(), name);
    ASSERT_TRUE(opened.has_value()) << to_string(opened.error());
    source = *std::move(opened);
    ASSERT_EQ(::posix_memalign(reinterpret_cast<void**>(&memory), unit, 8 * unit), 0);
  }
  void TearDown() override {
    queue.reset();
    std::free(memory);
  }

  std::span<std::byte> place(std::uint64_t index) { return {memory + index * unit, unit}; }

  /// Everything that is under way, by tag.
  std::map<std::uint64_t, ReadOutcome> wait_for(std::size_t count) {
    std::map<std::uint64_t, ReadOutcome> outcomes;
    while (outcomes.size() < count) {
      const auto ended = queue->wait();
      if (!ended) {
        ADD_FAILURE() << to_string(ended.error());
        break;
      }
      for (const auto& outcome : *ended) outcomes.emplace(outcome.tag, outcome);
    }
    return outcomes;
  }

  std::unique_ptr<ReadQueue> queue;
  Descriptor file;
  std::string content;
  std::unique_ptr<FetchSource> source;
  std::byte* memory = nullptr;
};

TEST_P(ReadQueueTest, BringsTheBytesOfTheFile) {
  for (std::uint64_t round = 0; round < 10; ++round) {
    for (std::uint64_t i = 0; i < 8; ++i) {
      const Bytes offset = static_cast<Bytes>((round * 8 + i) * 37 % 100) * unit;
      ASSERT_TRUE(queue->start({round * 8 + i, source.get(), place(i), offset}).has_value());
    }
    const auto outcomes = wait_for(8);
    for (std::uint64_t i = 0; i < 8; ++i) {
      const auto& outcome = outcomes.at(round * 8 + i);
      EXPECT_EQ(outcome.os_errno, 0);
      EXPECT_EQ(outcome.moved, unit);
      const Bytes offset = static_cast<Bytes>((round * 8 + i) * 37 % 100) * unit;
      EXPECT_EQ(std::memcmp(place(i).data(), content.data() + offset, unit), 0);
    }
  }
}

TEST_P(ReadQueueTest, TheEndOfTheFileIsAShortRead) {
  ASSERT_TRUE(queue->start({7, source.get(), place(0), 100 * unit}).has_value());
  EXPECT_EQ(wait_for(1).at(7).moved, 10);
}

TEST_P(ReadQueueTest, AFailureIsTold) {
  // A source whose descriptor is for writing only.
  class WriteOnly final : public FetchSource {
   public:
    explicit WriteOnly(Descriptor fd) : fd_(std::move(fd)) {}
    Result<Bytes> read(std::span<std::byte> into, Bytes offset) override {
      const ssize_t moved = ::pread(fd_.get(), into.data(), into.size(), offset);
      if (moved < 0) return tl::unexpected(error_from_errno(errno, "read"));
      return moved;
    }
    std::optional<FileVersion> version() override { return std::nullopt; }
    Bytes resident(Extent) override { return 0; }
    Status advise(Extent, bool) override { return {}; }
    int descriptor() const override { return fd_.get(); }

   private:
    Descriptor fd_;
  } writer(Descriptor(::open("/dev/null", O_WRONLY | O_CLOEXEC)));
  ASSERT_TRUE(queue->start({1, &writer, place(0), 0}).has_value());
  EXPECT_EQ(wait_for(1).at(1).os_errno, EBADF);
}

TEST_P(ReadQueueTest, CanBeWoken) {
  queue->wake();
  const auto nothing = queue->wait();
  ASSERT_TRUE(nothing.has_value());
  EXPECT_THAT(*nothing, ::testing::IsEmpty());
  std::thread other([&] { queue->wake(); });
  EXPECT_TRUE(queue->wait().has_value());
  other.join();
}

TEST_P(ReadQueueTest, MayEndWithReadsUnderWay) {
  for (std::uint64_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(queue->start({i, source.get(), place(i), 0}).has_value());
  }
  queue->wake();
  ASSERT_TRUE(queue->wait().has_value());
  queue.reset();
  SUCCEED() << "what the sanitizers watch: nobody writes into freed memory";
}

TEST_P(ReadQueueTest, ItsDescriptorsAreOutOfTheWay) {
  for (const int descriptor : queue->descriptors()) EXPECT_GE(descriptor, Descriptor::lowest);
}

/// io_uring_enter() fails for the calling thread from now on.
void refuse_to_enter(int os_errno) {
  std::array filter{
      sock_filter(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))),
      sock_filter(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 1)),
      sock_filter(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(os_errno))),
      sock_filter(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)),
  };
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/// Until the thread waits for its ring, or the kernel does not tell in 5 s.
void await_ring(pid_t thread) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  std::string waits_in;
  while (!waits_in.starts_with("io_") && std::chrono::steady_clock::now() < end) {
    std::ifstream("/proc/self/task/" + std::to_string(thread) + "/wchan") >> waits_in;
  }
}

/// Until then nobody else may have their numbers.
TEST(UringQueue, LetsGoOfItsDescriptorsOnceNothingIsUnderWay) {
  std::atomic<bool> may_end{false};
  std::vector<int> gone;
  auto queue = make_uring_queue(8, [&](int descriptor) {
    EXPECT_TRUE(may_end.load()) << "a read is under way";
    EXPECT_NE(::fcntl(descriptor, F_GETFD), -1) << "it is closed after that";
    gone.push_back(descriptor);
  });
  if (queue == nullptr) GTEST_SKIP() << "this kernel gives no io_uring";
  const std::vector<int> descriptors = queue->descriptors();
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Descriptor out(ends[0]);
  const Descriptor in(ends[1]);
  auto source = open_fetch_source(out.get(), "pipe", Through::page_cache);
  ASSERT_TRUE(source.has_value());
  std::array<std::byte, 4> into{};
  std::atomic<pid_t> ending{0};
  std::thread ends_it([&] {
    ASSERT_TRUE(queue->start({1, source->get(), into, 0}).has_value());
    ASSERT_TRUE(queue->wake());
    ASSERT_TRUE(queue->wait().has_value());
    ending = ::gettid();
    queue.reset();
  });
  while (ending == 0) std::this_thread::yield();
  await_ring(ending);
  may_end = true;
  EXPECT_EQ(::write(in.get(), "four", 4), 4);
  ends_it.join();
  EXPECT_EQ(gone, descriptors);
}

class RefusedRing : public ::testing::TestWithParam<int> {};

TEST_P(RefusedRing, IsNotTaken) {
  std::thread([] {
    refuse_to_enter(GetParam());
    EXPECT_EQ(make_uring_queue(8), nullptr);
  }).join();
}

TEST_P(RefusedRing, EndsWithAnErrorWhereItWorkedBefore) {
  auto queue = make_uring_queue(8);
  if (queue == nullptr) GTEST_SKIP() << "this kernel gives no io_uring";
  const Descriptor zeros(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  auto source = open_fetch_source(zeros.get(), "zeros", Through::page_cache);
  ASSERT_TRUE(source.has_value());
  std::array<std::byte, 64> into{};
  std::thread([&] {
    refuse_to_enter(GetParam());
    ASSERT_TRUE(queue->start({1, source->get(), into, 0}).has_value());
    const auto ended = queue->wait();
    ASSERT_FALSE(ended.has_value());
    EXPECT_EQ(ended.error().os_errno, GetParam());
    EXPECT_FALSE(queue->drain()) << "what is under way may still write";
    queue.reset();
  }).join();
}

INSTANTIATE_TEST_SUITE_P(Refusals, RefusedRing,
                         ::testing::Values(EPERM, EACCES, ENOSYS, ENOMEM, EAGAIN, EBUSY),
                         [](const auto& refusal) {
                           return std::string(strerrorname_np(refusal.param));
                         });

INSTANTIATE_TEST_SUITE_P(Both, ReadQueueTest, ::testing::Values("uring", "threads"),
                         [](const auto& queue) { return std::string(queue.param); });

}  // namespace
}  // namespace forebay
