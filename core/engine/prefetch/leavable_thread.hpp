#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "core/storage/background_thread.hpp"

namespace forebay {

/// A background_thread() whose end nobody waits for for long: a file server may not answer it. What
/// it uses is there until the process ends then.
class LeavableThread {
 public:
  /// Two of these are shorter than others wait for who ends them (bounded_lock.hpp).
  static constexpr std::chrono::milliseconds longest_end{1000};

  template <typename Work>
  explicit LeavableThread(Work work)
      : state_(std::make_shared<State>()),
        thread_(background_thread([state = state_, work = std::move(work)] {
          work();
          const std::lock_guard lock(state->mutex);
          state->has_ended = true;
          state->ended.notify_one();
        })) {}

  /// Neither of these was called yet.
  bool is_held() const { return thread_.joinable(); }
  /// It ends by itself, whenever it does.
  void leave() { thread_.detach(); }
  /// False: it has not ended within `longest`, and is left.
  bool join_within(std::chrono::milliseconds longest) {
    bool has_ended = false;
    {
      std::unique_lock lock(state_->mutex);
      has_ended = state_->ended.wait_for(lock, longest, [this] { return state_->has_ended; });
    }
    if (has_ended) {
      thread_.join();
    } else {
      leave();
    }
    return has_ended;
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable ended;
    bool has_ended = false;  ///< It is past all that it does.
  };

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace forebay
