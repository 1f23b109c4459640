#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "core/storage/file.hpp"

namespace forebay {

/// Which handles of one file, in this process, stand under views through which writes are sieved.
/// A rank that sieves puts old bytes back into the gaps, so every other write to the file must keep
/// away by a lock, also one through another handle. Handles that announce themselves here are open
/// on all processes of the program and change together on all of them; so a process need not ask
/// another. Thread-safe.
class SieveWatch {
 public:
  /// For the handles of the file `id`; without one, for this handle alone.
  explicit SieveWatch(const std::optional<FileId>& id);
  ~SieveWatch();
  SieveWatch(const SieveWatch&) = delete;
  SieveWatch& operator=(const SieveWatch&) = delete;

  /// What holds for this handle from now on.
  void announce(bool sieving);

  /// Any handle, this one too.
  bool sieving() const { return handles_->sieving > 0; }
  bool another_sieves() const { return handles_->sieving > (announced_ ? 1 : 0); }

 private:
  struct Handles {
    std::atomic<int> sieving{0};  ///< How many do.
  };

  std::shared_ptr<Handles> handles_;
  bool announced_ = false;
};

}  // namespace forebay
