#include "core/engine/cache/log_probe.hpp"

#include <random>
#include <utility>
#include <vector>

#include "core/storage/background_thread.hpp"
#include "core/storage/thread_waits.hpp"

namespace forebay {
namespace {

constexpr Bytes file_bytes = 1 * MiB;   ///< Written over and over.
constexpr Bytes write_bytes = 8 * KiB;  ///< Others wait for the same device.

/// Bytes that no device makes smaller.
std::vector<std::byte> random_bytes() {
  std::vector<std::byte> bytes(static_cast<std::size_t>(write_bytes));
  std::mt19937 random(std::random_device{}());
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

/// A file that is gone when it is let go of, whatever becomes of us.
Result<LogFile> nameless_file(LogStore& store) {
  constexpr auto name = "probe";
  auto file = store.create(name, file_bytes);
  if (auto removed = store.remove(name); file && !removed) return tl::unexpected(removed.error());
  return file;
}

}  // namespace

std::unique_ptr<LogProbe> LogProbe::start(LogStore& store, std::shared_ptr<LogTrial> trial) {
  std::unique_ptr<LogProbe> probe(new LogProbe(store, std::move(trial)));
  auto thread = try_background_thread([self = probe.get()] { self->work(); });
  if (!thread) {
    probe->trial_->unprobed(true);
    return nullptr;
  }
  probe->worker_ = std::move(*thread);
  return probe;
}

LogProbe::LogProbe(LogStore& store, std::shared_ptr<LogTrial> trial)
    : store_(store), trial_(std::move(trial)) {}

LogProbe::~LogProbe() {
  stopping_ = true;
  if (worker_.joinable()) worker_.join();
}

void LogProbe::work() {
  const auto file = nameless_file(store_);
  const auto bytes = random_bytes();
  bool done = file.has_value();
  bool wanted = true;
  for (Bytes at = 0; done && wanted && !stopping_; at = (at + write_bytes) % file_bytes) {
    const long waits = waits_of_thread();
    const std::int64_t since = trial_->now_ns();
    done = file->storage->write_at(bytes, at).has_value();
    if (done) {
      wanted = trial_->probed(write_bytes, trial_->now_ns() - since, waits_of_thread() != waits);
    }
  }
  if (wanted) trial_->unprobed(!done);
}

}  // namespace forebay
