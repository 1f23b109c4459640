#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/storage/file.hpp"

namespace forebay {

// Fault model.
//
// A file system may, at any call, (a) fail with an errno before it did anything; (b) do a part and
// then fail: the first bytes of a write are in the file, the first bytes of a read in the buffer,
// the rest is not; (c) move a part and succeed when asked for the rest, which is what short writes,
// short reads and signals come to once a StorageFile has resumed them. Between the parts of (c)
// other calls may run, so a transfer is not atomic. After a failure the device may work again
// (EIO, EINTR's relatives) or stay as it is (a full disk): `lasting`. Pieces are moved in order.
// Not in the model: bytes that change by themselves, writes that land elsewhere or are lost after a
// sync, and processes that die.

/// The calls of StorageFile that may fail. write and read stand for both of their forms. An unlock
/// does not fail while the file is open.
enum class StorageCall { write, read, size, resize, allocate, sync, lock };
constexpr int storage_calls = 7;

/// What happens at one call.
struct Fault {
  StorageCall call = StorageCall::write;
  std::int64_t nth = 0;   ///< Which call of that kind, counted from 0.
  int os_errno = 0;       ///< What it fails with; 0: it succeeds, a transfer in two parts, (c).
  Bytes after_bytes = 0;  ///< Of a write or read: bytes moved first, at most all of them.
  bool lasting = false;   ///< Every later call of that kind fails too, with nothing moved.
};

/// The faults of one or more files, and the count of their calls. A test runs once without faults,
/// asks how many calls there were, and then runs once for each of them. Thread-safe.
class FaultPlan {
 public:
  explicit FaultPlan(std::vector<Fault> faults = {});

  std::int64_t calls(StorageCall call) const;  ///< Made so far.
  std::int64_t fired() const;                  ///< Calls that met a fault so far.

 private:
  friend class FaultyFile;
  struct Meeting {
    const Fault* fault = nullptr;  ///< Null: the call meets none.
    Bytes first_bytes = 0;         ///< Bytes to move before it strikes.
  };
  /// Counts one call, and says which fault it meets.
  Meeting next(StorageCall call);

  const std::vector<Fault> faults_;
  std::array<std::atomic<std::int64_t>, storage_calls> calls_{};
  std::atomic<std::int64_t> fired_{0};
};

/// `inner`, with the faults of `plan`. Errors are those that PosixFile gives for the same errno.
std::unique_ptr<StorageFile> make_faulty(std::unique_ptr<StorageFile> inner,
                                         std::shared_ptr<FaultPlan> plan);

}  // namespace forebay
