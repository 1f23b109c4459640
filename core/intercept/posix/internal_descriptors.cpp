#include "core/intercept/posix/internal_descriptors.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <span>
#include <utility>

#include "core/intercept/posix/managed_files.hpp"

namespace forebay::posix {
namespace {

/// Numbers of descriptors that are ours.
std::array<std::atomic<bool>, most_descriptors> internal_numbers{};
std::atomic<unsigned> internal_end{0};  ///< None from here on was ever ours.

/// A source whose descriptor the program cannot close.
class ProtectedSource final : public FetchSource {
 public:
  explicit ProtectedSource(std::unique_ptr<FetchSource> source) : source_(std::move(source)) {
    set_internal(source_->descriptor(), true);
  }
  ~ProtectedSource() override { set_internal(source_->descriptor(), false); }
  ProtectedSource(const ProtectedSource&) = delete;
  ProtectedSource& operator=(const ProtectedSource&) = delete;

  Result<Bytes> read(std::span<std::byte> into, Bytes offset) override {
    return source_->read(into, offset);
  }
  std::optional<FileVersion> version() override { return source_->version(); }
  Bytes resident(Extent extent) override { return source_->resident(extent); }
  Status advise(Extent extent, bool is_needed) override {
    return source_->advise(extent, is_needed);
  }
  int descriptor() const override { return source_->descriptor(); }

 private:
  const std::unique_ptr<FetchSource> source_;
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

void close_internal() {
  for (unsigned fd = 0; fd < internal_end.load(); ++fd) {
    if (internal_numbers[fd].exchange(false)) ::close(static_cast<int>(fd));
  }
}

std::unique_ptr<FetchSource> protect(std::unique_ptr<FetchSource> source) {
  return std::make_unique<ProtectedSource>(std::move(source));
}

std::shared_ptr<ReadProgress> protect(std::unique_ptr<ReadProgress> progress) {
  set_internal(progress->descriptor(), true);
  return {progress.release(), [](ReadProgress* ended) {
            set_internal(ended->descriptor(), false);
            delete ended;
          }};
}

}  // namespace forebay::posix
