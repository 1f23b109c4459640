#include <fcntl.h>
#include <liburing.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "core/storage/descriptor.hpp"
#include "core/storage/read_queue.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t wake_tag = std::numeric_limits<std::uint64_t>::max();

/// The kernel lacks memory or the like for now (EAGAIN): it is asked again so often, so far apart.
/// After that it is taken for a refusal, so that whoever waits for us does not wait for ever.
constexpr int most_tries = 100;
constexpr std::chrono::milliseconds between_tries{1};

class UringQueue final : public ReadQueue {
 public:
  /// `bell`: an eventfd that the ring waits for along with the reads.
  UringQueue(const io_uring& ring, Descriptor bell, int depth, std::function<void(int)> lets_go)
      : ring_(ring), bell_(std::move(bell)), depth_(depth), lets_go_(std::move(lets_go)) {}

  ~UringQueue() override {
    drain();
    if (lets_go_ != nullptr) {  // Without a vector: there may be no memory for one.
      for (const int descriptor : {ring_.ring_fd, bell_.get()}) lets_go_(descriptor);
    }
    io_uring_queue_exit(&ring_);
  }

  UringQueue(const UringQueue&) = delete;
  UringQueue& operator=(const UringQueue&) = delete;

  int depth() const override { return depth_; }
  std::vector<int> descriptors() const override { return {ring_.ring_fd, bell_.get()}; }

  Status start(const ReadRequest& request) override {
    assert(under_way_ < depth_ && request.tag != wake_tag);
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) return fail(EAGAIN, "queue a read");
    io_uring_prep_read(entry, request.source->descriptor(), request.into.data(),
                       static_cast<unsigned>(request.into.size()),
                       static_cast<std::uint64_t>(request.offset));
    io_uring_sqe_set_data64(entry, request.tag);
    ++under_way_;
    return {};
  }

  Result<std::vector<ReadOutcome>> wait() override {
    // Before they end: none may be lost for want of memory.
    std::vector<ReadOutcome> ended;
    ended.reserve(static_cast<std::size_t>(depth_));
    const auto reaped = reap([&](const ReadOutcome& outcome) { ended.push_back(outcome); });
    if (!reaped) return tl::unexpected(reaped.error());
    return ended;
  }

  /// The kernel writes into the memory of its reads until they have ended.
  bool drain() override {
    while (under_way_ > 0) {
      if (!reap([](const ReadOutcome&) {})) return false;
    }
    return true;
  }

  bool wake() override {
    // A program that closes descriptors past us may have a file by this number: an eventfd is of no
    // type (anon_inodefs).
    struct stat status{};
    if (::fstat(bell_.get(), &status) != 0 || (status.st_mode & S_IFMT) != 0) return false;
    // Fails only where the counter is full, and then the ring wakes anyway.
    const std::uint64_t one = 1;
    (void)!::write(bell_.get(), &one, sizeof one);
    return true;
  }

 private:
  /// Waits until something ends, and calls `take` for all that did.
  template <typename Take>
  Status reap(Take take) {
    if (!listening_) {
      io_uring_sqe* entry = io_uring_get_sqe(&ring_);
      if (entry == nullptr) return fail(EAGAIN, "listen for a wake-up");
      io_uring_prep_read(entry, bell_.get(), &rung_, sizeof rung_, 0);
      io_uring_sqe_set_data64(entry, wake_tag);
      listening_ = true;
    }
    if (const int status = enter(); status < 0) return fail(-status, "wait for reads");
    io_uring_cqe* entry = nullptr;
    while (io_uring_peek_cqe(&ring_, &entry) == 0) {
      if (entry->user_data == wake_tag) {
        listening_ = false;
        if (entry->res < 0) {
          const int reason = -entry->res;
          io_uring_cqe_seen(&ring_, entry);
          return fail(reason, "listen for a wake-up");
        }
      } else {
        --under_way_;
        take(ReadOutcome{entry->user_data, entry->res < 0 ? 0 : entry->res,
                         entry->res < 0 ? -entry->res : 0});
      }
      io_uring_cqe_seen(&ring_, entry);
    }
    return {};
  }

  /// Hands over what was started, and waits until something has ended; negative: errno.
  int enter() {
    for (int tries = 1;;) {
      const int status = io_uring_submit_and_wait(&ring_, 1);
      if (status == -EINTR) continue;
      if (status != -EAGAIN || tries++ == most_tries) return status;
      std::this_thread::sleep_for(between_tries);
    }
  }

  io_uring ring_;
  const Descriptor bell_;
  const int depth_;
  const std::function<void(int)> lets_go_;
  int under_way_ = 0;
  bool listening_ = false;
  std::uint64_t rung_ = 0;
};

}  // namespace

std::unique_ptr<ReadQueue> make_uring_queue(int depth, std::function<void(int)> lets_go) {
  Descriptor bell(::eventfd(0, EFD_CLOEXEC));
  if (!bell.valid()) return nullptr;
  io_uring ring{};
  if (io_uring_queue_init(static_cast<unsigned>(depth) + 1, &ring, 0) != 0) return nullptr;
  // Out of the low numbers, as any Descriptor of ours; the ring closes it.
  const int high = ::fcntl(ring.ring_fd, F_DUPFD_CLOEXEC, Descriptor::lowest);
  if (high >= 0) {
    ::close(ring.ring_fd);
    ring.ring_fd = ring.enter_ring_fd = high;
  }
  auto queue = std::make_unique<UringQueue>(ring, std::move(bell), depth, std::move(lets_go));
  // Rings that can be made and not used: a filter (seccomp) lets one call pass and refuses the
  // other, or the kernel is of before 5.6 and has no reads of this kind.
  queue->wake();
  if (!queue->wait()) return nullptr;
  return queue;
}

}  // namespace forebay
