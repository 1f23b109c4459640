#include "core/storage/faulty_file.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/storage/piece_walk.hpp"

namespace forebay {
namespace {

/// The first `length` bytes of `pieces`, or the rest behind them.
std::vector<iovec> head(std::span<const iovec> pieces, Bytes length) {
  std::vector<iovec> result;
  auto left = static_cast<std::size_t>(length);
  for (const iovec& piece : pieces) {
    const std::size_t step = std::min(piece.iov_len, left);
    if (step > 0) result.push_back({piece.iov_base, step});
    left -= step;
  }
  return result;
}

std::vector<iovec> tail(std::span<const iovec> pieces, Bytes length) {
  std::vector<iovec> result;
  auto skip = static_cast<std::size_t>(length);
  for (const iovec& piece : pieces) {
    const std::size_t step = std::min(piece.iov_len, skip);
    if (piece.iov_len > step) {
      result.push_back({static_cast<char*>(piece.iov_base) + step, piece.iov_len - step});
    }
    skip -= step;
  }
  return result;
}

const char* name(StorageCall call) {
  switch (call) {
    case StorageCall::write:
      return "write to";
    case StorageCall::read:
      return "read from";
    case StorageCall::size:
      return "find the size of";
    case StorageCall::resize:
      return "set the size of";
    case StorageCall::allocate:
      return "allocate";
    case StorageCall::sync:
      return "make durable";
    case StorageCall::lock:
      return "lock";
  }
  return "use";
}

}  // namespace

FaultPlan::FaultPlan(std::vector<Fault> faults) : faults_(std::move(faults)) {}

std::int64_t FaultPlan::calls(StorageCall call) const {
  return calls_[static_cast<std::size_t>(call)].load();
}

std::int64_t FaultPlan::fired() const { return fired_.load(); }

FaultPlan::Meeting FaultPlan::next(StorageCall call) {
  const std::int64_t number = calls_[static_cast<std::size_t>(call)].fetch_add(1);
  for (const Fault& fault : faults_) {
    const bool first = fault.nth == number;
    if (fault.call == call && (first || (fault.lasting && fault.nth < number))) {
      fired_.fetch_add(1);
      return {&fault, first ? fault.after_bytes : 0};
    }
  }
  return {};
}

class FaultyFile final : public StorageFile {
 public:
  FaultyFile(std::unique_ptr<StorageFile> inner, std::shared_ptr<FaultPlan> plan)
      : inner_(std::move(inner)), plan_(std::move(plan)) {}

  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override {
    const auto met = plan_->next(StorageCall::write);
    if (!met.fault) return inner_->write_pieces(pieces, offset);
    const Bytes part = std::min(met.first_bytes, total_bytes(pieces));
    if (part > 0) {
      if (auto moved = inner_->write_pieces(head(pieces, part), offset); !moved) return moved;
    }
    if (met.fault->os_errno != 0) return fail(*met.fault);
    return inner_->write_pieces(tail(pieces, part), offset + part);
  }

  Result<Bytes> read_pieces(std::span<const iovec> pieces, Bytes offset) override {
    const auto met = plan_->next(StorageCall::read);
    if (!met.fault) return inner_->read_pieces(pieces, offset);
    const Bytes part = std::min(met.first_bytes, total_bytes(pieces));
    Result<Bytes> first = 0;
    if (part > 0) {
      first = inner_->read_pieces(head(pieces, part), offset);
      if (!first) return first;
    }
    if (met.fault->os_errno != 0) return fail(*met.fault);
    if (*first < part) return first;
    auto rest = inner_->read_pieces(tail(pieces, part), offset + part);
    if (!rest) return rest;
    return *first + *rest;
  }

  Result<Bytes> size() override {
    if (const Fault* fault = failing(StorageCall::size)) return fail(*fault);
    return inner_->size();
  }

  Status resize(Bytes size) override {
    if (const Fault* fault = failing(StorageCall::resize)) return fail(*fault);
    return inner_->resize(size);
  }

  Status allocate(Bytes size) override {
    if (const Fault* fault = failing(StorageCall::allocate)) return fail(*fault);
    return inner_->allocate(size);
  }

  void lengthen(Bytes size) override { inner_->lengthen(size); }
  void read_ahead(Extent extent) override { inner_->read_ahead(extent); }
  void start_writeback(Extent extent) override { inner_->start_writeback(extent); }

  Status sync() override {
    if (const Fault* fault = failing(StorageCall::sync)) return fail(*fault);
    return inner_->sync();
  }

  Status lock(Extent range, LockKind kind) override {
    if (const Fault* fault = failing(StorageCall::lock)) return fail(*fault);
    return inner_->lock(range, kind);
  }

  Status unlock(Extent range) override { return inner_->unlock(range); }
  StripeLayout layout() const override { return inner_->layout(); }
  const std::string& path() const override { return inner_->path(); }

 private:
  /// Counts a call that cannot be done in part; the fault that it fails with, or null.
  const Fault* failing(StorageCall call) {
    const Fault* fault = plan_->next(call).fault;
    return fault != nullptr && fault->os_errno != 0 ? fault : nullptr;
  }

  tl::unexpected<Error> fail(const Fault& fault) const {
    return tl::make_unexpected(error_from_errno(
        fault.os_errno, std::string(name(fault.call)) + " " + inner_->path() + " (injected)"));
  }

  const std::unique_ptr<StorageFile> inner_;
  const std::shared_ptr<FaultPlan> plan_;
};

std::unique_ptr<StorageFile> make_faulty(std::unique_ptr<StorageFile> inner,
                                         std::shared_ptr<FaultPlan> plan) {
  return std::make_unique<FaultyFile>(std::move(inner), std::move(plan));
}

}  // namespace forebay
