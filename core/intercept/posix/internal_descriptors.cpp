#include "core/intercept/posix/internal_descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

#include "core/intercept/posix/managed_files.hpp"
#include "core/storage/record_locks.hpp"

namespace forebay::posix {
namespace {

/// Numbers of descriptors that are ours.
std::array<std::atomic<bool>, most_descriptors> internal_numbers{};
std::atomic<unsigned> internal_end{0};  ///< None from here on was ever ours.

/// The program has set record locks. Who sets none is not asked about them.
std::atomic<bool> has_set_locks{false};

bool may_be_locked(int descriptor) { return has_set_locks.load() && has_record_locks(descriptor); }

/// A source, and its place among those that had to stay open.
struct Kept {
  std::unique_ptr<FetchSource> source;
  Kept* next = nullptr;
};
/// Those; without a lock, which a fork would find held.
std::atomic<Kept*> kept{nullptr};
/// Whose numbers the program took: to let them go would close what is the program's.
std::atomic<Kept*> given_away{nullptr};

void keep(Kept* one, std::atomic<Kept*>& among = kept) {
  one->next = among.load();
  while (!among.compare_exchange_weak(one->next, one)) {
  }
}

/// Hands each of those to `visit`, which keeps it or does not.
template <typename Visit>
void take_apart(Visit visit) {
  Kept* next = kept.exchange(nullptr);
  while (next != nullptr) visit(std::exchange(next, next->next));
}

void let_go(std::unique_ptr<Kept> one) { set_internal(one->source->descriptor(), false); }

/// A source whose descriptor the program cannot close.
class ProtectedSource final : public FetchSource {
 public:
  explicit ProtectedSource(std::unique_ptr<FetchSource> source)
      : kept_(new Kept{std::move(source)}), source_(*kept_->source) {
    set_internal(source_.descriptor(), true);
  }
  ~ProtectedSource() override {
    if (may_be_locked(source_.descriptor())) {
      keep(kept_.release());
    } else {
      let_go(std::move(kept_));
    }
  }
  ProtectedSource(const ProtectedSource&) = delete;
  ProtectedSource& operator=(const ProtectedSource&) = delete;

  Result<Bytes> read(std::span<std::byte> into, Bytes offset) override {
    return source_.read(into, offset);
  }
  std::optional<FileVersion> version() override { return source_.version(); }
  Bytes resident(Extent extent) override { return source_.resident(extent); }
  bool tells_residence() const override { return source_.tells_residence(); }
  Status advise(Extent extent, bool is_needed) override {
    return source_.advise(extent, is_needed);
  }
  Status write_out(Extent extent) override { return source_.write_out(extent); }
  bool advises_servers() const override { return source_.advises_servers(); }
  int descriptor() const override { return source_.descriptor(); }
  bool is_direct() const override { return source_.is_direct(); }

 private:
  std::unique_ptr<Kept> kept_;  ///< Made here: at the end there may be no memory.
  FetchSource& source_;
};

}  // namespace

bool is_internal(int descriptor) {
  const auto index = static_cast<unsigned>(descriptor);
  return index < most_descriptors && internal_numbers[index].load(std::memory_order_relaxed);
}

void set_internal(int descriptor, bool is_ours) {
  const auto index = static_cast<unsigned>(descriptor);
  if (index >= most_descriptors) return;
  internal_numbers[index].store(is_ours);
  unsigned end = internal_end.load();
  while (index >= end && !internal_end.compare_exchange_weak(end, index + 1)) {
  }
}

unsigned next_internal(unsigned first, unsigned last) {
  const unsigned end = internal_end.load();
  while (first <= last && first < end && !is_internal(static_cast<int>(first))) ++first;
  return first < end ? std::min(first, last + 1) : last + 1;
}

bool has_internal() { return next_internal(0, most_descriptors - 1) < most_descriptors; }

void close_internal() {
  kept.store(nullptr);  // Locks are not inherited. Nothing of these is freed, as of all else.
  for (unsigned fd = 0; fd < internal_end.load(); ++fd) {
    if (internal_numbers[fd].exchange(false)) ::close(static_cast<int>(fd));
  }
}

void takes_record_lock() {
  if (!has_set_locks.load(std::memory_order_relaxed)) has_set_locks.store(true);
}

void close_unlocked() {
  take_apart([](Kept* one) {
    if (may_be_locked(one->source->descriptor())) {
      keep(one);
    } else {
      let_go(std::unique_ptr<Kept>(one));
    }
  });
}

void keep_through_exec() {
  // Also those that a thread of ours is about to be done with, and will keep.
  for (unsigned fd = 0; has_set_locks.load() && fd < internal_end.load(); ++fd) {
    const auto descriptor = static_cast<int>(fd);
    if (is_internal(descriptor) && may_be_locked(descriptor)) ::fcntl(descriptor, F_SETFD, 0);
  }
}

void leave_to_program(int descriptor) {
  take_apart([descriptor](Kept* one) {
    const bool is_taken = one->source->descriptor() == descriptor;
    if (is_taken) set_internal(descriptor, false);
    keep(one, is_taken ? given_away : kept);
  });
}

Result<std::unique_ptr<FetchSource>> open_protected_source(int descriptor, const std::string& path,
                                                           Through way) {
  if (may_be_locked(descriptor)) return fail(EBUSY, "open once more " + path);
  auto source = open_fetch_source(descriptor, path, way);
  if (!source) return source;
  return std::make_unique<ProtectedSource>(*std::move(source));
}

std::shared_ptr<ReadProgress> protect(std::unique_ptr<ReadProgress> progress) {
  set_internal(progress->descriptor(), true);
  return {progress.release(), [](ReadProgress* ended) {
            set_internal(ended->descriptor(), false);
            delete ended;
          }};
}

}  // namespace forebay::posix
