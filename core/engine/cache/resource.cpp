#include "core/engine/cache/resource.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>
#include <new>
#include <utility>

namespace forebay {

struct Resource::State {
  struct Holder {
    bool present;
    Bytes held;
    Bytes awaited;  ///< What a take() of it waits for; 0: none does.
  };

  std::atomic<std::uint32_t> stage;    ///< 0: zeros, 1: being made, 2: usable.
  std::atomic<std::uint32_t> changes;  ///< A futex: counts what waiting holders should look at.
  pthread_mutex_t mutex;               ///< Survives the death of a process that has it.
  Bytes amount;                        ///< Guarded by mutex, as is what follows.
  std::array<Holder, most_holders> holders;

  void make(Bytes given) {
    std::uint32_t unmade = 0;
    if (stage.compare_exchange_strong(unmade, 1)) {
      pthread_mutexattr_t attributes;
      pthread_mutexattr_init(&attributes);
      pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
      pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
      pthread_mutex_init(&mutex, &attributes);
      pthread_mutexattr_destroy(&attributes);
      amount = given;
      stage.store(2);
    }
    while (stage.load() != 2) ::sched_yield();
  }

  Bytes free() const {
    Bytes sum = 0;
    for (const Holder& holder : holders) sum += holder.held;
    return amount - sum;
  }

  /// What each holder is entitled to.
  Bytes share() const {
    const auto present = std::ranges::count_if(holders, &Holder::present);
    return amount / std::max<std::int64_t>(present, 1);
  }

  static bool entitled(const Holder& holder, Bytes more, Bytes share) {
    return holder.held == 0 || holder.held + more <= share;
  }

  void wake() {
    changes.fetch_add(1);
    // The memory may be shared between processes, so not FUTEX_PRIVATE_FLAG.
    ::syscall(SYS_futex, &changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "a futex is a plain word");

class Resource::Locked {
 public:
  explicit Locked(State& state) : state_(state) {
    // The state is whole between any two statements that change it: each changes one number.
    if (pthread_mutex_lock(&state_.mutex) == EOWNERDEAD) pthread_mutex_consistent(&state_.mutex);
  }
  ~Locked() { pthread_mutex_unlock(&state_.mutex); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  State& state_;
};

Bytes Resource::state_bytes() { return sizeof(State); }

Resource::Resource(std::string name, Bytes amount)
    : name_(std::move(name)), state_(new State(), [](State* state) {
        pthread_mutex_destroy(&state->mutex);
        delete state;
      }) {
  state_->make(amount);
}

Resource::Resource(std::string name, Bytes amount, std::span<std::byte> shared)
    : name_(std::move(name)),
      state_(std::launder(reinterpret_cast<State*>(shared.data())), [](State*) {}) {
  assert(static_cast<Bytes>(shared.size()) >= state_bytes());
  state_->make(amount);
}

Bytes Resource::amount() const {
  const Locked locked(*state_);
  return state_->amount;
}

Bytes Resource::free() const {
  const Locked locked(*state_);
  return state_->free();
}

ResourceHolder::ResourceHolder(std::shared_ptr<Resource> resource, std::size_t place)
    : resource_(std::move(resource)), place_(place) {}

Result<std::unique_ptr<ResourceHolder>> ResourceHolder::join(std::shared_ptr<Resource> resource) {
  Resource::State& state = *resource->state_;
  const Resource::Locked locked(state);
  const auto place = std::ranges::find(state.holders, false, &Resource::State::Holder::present);
  if (place == state.holders.end()) {
    return tl::unexpected(
        Error{ErrorKind::no_space, 0, "too many share " + resource->name() + " already"});
  }
  *place = {true, 0, 0};
  const auto index = static_cast<std::size_t>(place - state.holders.begin());
  return std::unique_ptr<ResourceHolder>(new ResourceHolder(std::move(resource), index));
}

ResourceHolder::~ResourceHolder() {
  Resource::State& state = *resource_->state_;
  {
    const Resource::Locked locked(state);
    state.holders[place_] = {};
  }
  state.wake();
}

bool ResourceHolder::grantable(Bytes amount) const {
  const Resource::State& state = *resource_->state_;
  const auto& mine = state.holders[place_];
  if (amount > state.free()) return false;
  const Bytes share = state.share();
  if (Resource::State::entitled(mine, amount, share)) return true;
  return std::ranges::none_of(state.holders, [&](const auto& holder) {
    return &holder != &mine && holder.awaited > 0 &&
           Resource::State::entitled(holder, holder.awaited, share);
  });
}

bool ResourceHolder::take(Bytes amount, std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  Resource::State& state = *resource_->state_;
  auto& mine = state.holders[place_];
  const auto deadline = Clock::now() + patience;
  for (;;) {
    const std::uint32_t seen = state.changes.load();
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now());
    {
      const Resource::Locked locked(state);
      const bool granted = grantable(amount);
      if (granted) mine.held += amount;
      mine.awaited = granted || left.count() <= 0 ? 0 : amount;
      if (granted) return true;
      if (left.count() <= 0) break;
    }
    const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    ::syscall(SYS_futex, &state.changes, FUTEX_WAIT, seen, &timeout, nullptr, 0);
  }
  state.wake();  // Who was held back for us need not be any more.
  return false;
}

void ResourceHolder::give_back(Bytes amount) {
  Resource::State& state = *resource_->state_;
  {
    const Resource::Locked locked(state);
    assert(amount <= state.holders[place_].held);
    state.holders[place_].held -= amount;
  }
  state.wake();
}

Bytes ResourceHolder::held() const {
  const Resource::Locked locked(*resource_->state_);
  return resource_->state_->holders[place_].held;
}

Bytes ResourceHolder::share() const {
  const Resource::Locked locked(*resource_->state_);
  return resource_->state_->share();
}

bool ResourceHolder::wanted_by_others() const {
  const Resource::State& state = *resource_->state_;
  const Resource::Locked locked(*resource_->state_);
  const auto& mine = state.holders[place_];
  return mine.held > 0 && std::ranges::any_of(state.holders, [&](const auto& holder) {
           return &holder != &mine && holder.awaited > 0;
         });
}

}  // namespace forebay
