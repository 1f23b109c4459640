#include "core/engine/collective/sieve_watch.hpp"

#include <map>
#include <mutex>

namespace forebay {
namespace {

using Handles = std::atomic<int>;

struct OpenFiles {
  std::mutex mutex;
  std::map<FileId, std::weak_ptr<Handles>> files;  ///< Guarded by mutex.
};

OpenFiles& open_files() {
  // Never destroyed: a program may close files in exit handlers.
  static OpenFiles& instance = *new OpenFiles;
  return instance;
}

std::shared_ptr<Handles> handles_of(const FileId& id) {
  const std::scoped_lock lock(open_files().mutex);
  auto& files = open_files().files;
  if (auto known = files[id].lock()) return known;
  auto made = std::make_shared<Handles>(0);
  files[id] = made;
  std::erase_if(files, [](const auto& file) { return file.second.expired(); });
  return made;
}

}  // namespace

SieveWatch::SieveWatch(const std::optional<FileId>& id)
    : handles_(id ? handles_of(*id) : std::make_shared<std::atomic<int>>(0)) {}

SieveWatch::~SieveWatch() { announce(false); }

void SieveWatch::announce(bool sieving) {
  if (sieving == announced_) return;
  announced_ = sieving;
  handles_->fetch_add(sieving ? 1 : -1);
}

}  // namespace forebay
