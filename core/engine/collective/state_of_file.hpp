#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "core/storage/file.hpp"

namespace forebay {

/// The State of the file `id`, of which this process has one as long as somebody keeps it.
template <typename State>
std::shared_ptr<State> state_of_file(const FileId& id) {
  struct Files {
    std::mutex mutex;
    std::map<FileId, std::weak_ptr<State>> states;  ///< Guarded by mutex.
  };
  // Never destroyed: a program may close files in exit handlers.
  static Files& files = *new Files;
  const std::scoped_lock lock(files.mutex);
  if (auto known = files.states[id].lock()) return known;
  auto made = std::make_shared<State>();
  files.states[id] = made;
  std::erase_if(files.states, [](const auto& file) { return file.second.expired(); });
  return made;
}

}  // namespace forebay
