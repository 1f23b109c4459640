#include "core/engine/cache/segment_reserve.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <utility>

#include "core/engine/cache/log_directory.hpp"
#include "core/storage/background_thread.hpp"

namespace forebay {
namespace {

constexpr std::chrono::milliseconds between_looks{100};
/// Of what a holder is entitled to, what is kept at most; and of all, what has to be free.
constexpr Bytes part = 4;

/// Of this process.
struct Reserves {
  /// That wants them; 0: none. Looked at before the mutex, which a forked child may find locked.
  std::atomic<pid_t> process{0};
  std::mutex mutex;
  /// Guarded by mutex.
  std::map<std::string, std::shared_ptr<SegmentReserve>> of_directory;
};

Reserves& reserves() {
  static auto* const all = new Reserves;  // Threads may still close logs while statics go.
  return *all;
}

constexpr const char* prefix = "spare-";

/// A new name for a store of spare segments: to those who look at logs it is one that holds none.
std::string store_name() {
  std::uint64_t salt = 0;
  if (::getrandom(&salt, sizeof salt, 0) != sizeof salt) salt = 0;
  return fmt::format("{}{}-{:016x}", prefix, ::getpid(), salt);
}

bool holds_spares_alone(LogStore& store) {
  const auto names = store.list();
  return names && std::ranges::all_of(*names, [](const std::string& name) {
           return name.starts_with(blank_prefix);
         });
}

/// Removes what processes that were killed kept, and nothing that holds a record, whatever its name
/// is: logs have their host's in front. One that is just beginning may be hit before it has its
/// lock: it keeps nothing then, and begins anew.
void remove_left(const std::shared_ptr<CacheDirectory>& directory) {
  const auto names = directory->logs();
  if (!names) return;
  for (const std::string& name : *names) {
    if (!name.starts_with(prefix)) continue;
    auto left = LogDirectory::open(directory, name, LogDirectory::Use::replace);
    // Else a process that lives has it, or it is gone.
    if (left && holds_spares_alone(**left)) (void)(*left)->destroy();
  }
}

}  // namespace

SegmentReserve::SegmentReserve(MakeStore make_store) : make_store_(std::move(make_store)) {}

SegmentReserve::~SegmentReserve() { close(); }

void SegmentReserve::use(const std::shared_ptr<Resource>& capacity) {
  const std::scoped_lock lock(mutex_);
  resource_ = capacity;
}

void SegmentReserve::agree(Bytes amount) {
  {
    const std::scoped_lock lock(mutex_);
    if (!content_.capacity || content_.capacity->resource().amount() == amount) return;
  }
  (void)empty();
}

/// Whether there is something to keep files in. With mutex_ held.
bool SegmentReserve::begin() {
  if (closed_) return false;
  if (content_.capacity == nullptr) {
    auto resource = resource_.lock();
    if (resource == nullptr) return false;
    auto joined = ResourceHolder::join(std::move(resource));
    if (!joined) return false;
    content_.capacity = std::move(*joined);
  }
  if (content_.store == nullptr) {
    auto made = make_store_();
    if (!made) {
      content_.capacity.reset();
      return false;
    }
    content_.store = std::move(*made);
  }
  if (worker_.joinable()) return true;
  auto thread = try_background_thread([this] { work(); });
  if (!thread) {
    content_.capacity.reset();
    return false;
  }
  worker_ = std::move(*thread);
  return true;
}

/// Whether others may need what would be kept. With mutex_ held.
bool SegmentReserve::scarce(Bytes more) const {
  const ResourceHolder& mine = *content_.capacity;
  const Resource& all = mine.resource();
  return all.free() - more < all.amount() / part || mine.wanted_by_others();
}

bool SegmentReserve::keep(LogStore& store, const std::string& name, Bytes bytes, LogFile file) {
  const std::scoped_lock lock(mutex_);
  if (!begin()) return false;
  ResourceHolder& mine = *content_.capacity;
  const bool fits = !scarce(bytes) && mine.held() + bytes <= mine.share() / part;
  const std::string as = fmt::format("{}{}", blank_prefix, next_number_++);
  bool kept = fits && mine.take(bytes);
  if (kept && !store.move_to(*content_.store, name, as)) {
    mine.give_back(bytes);
    kept = false;
  }
  if (kept) {
    file.storage.reset();
    content_.kept.push_back({as, bytes, std::move(file)});
    last_use_ = Clock::now();
    changed_.notify_all();
  }
  if (content_.kept.empty()) content_.capacity.reset();
  return kept;
}

std::optional<LogFile> SegmentReserve::take(LogStore& store, const std::string& name, Bytes bytes) {
  const std::scoped_lock lock(mutex_);
  const auto found = std::ranges::find(content_.kept, bytes, &Kept::bytes);
  if (found == content_.kept.end()) return std::nullopt;
  Kept kept = std::move(*found);
  content_.kept.erase(found);
  std::optional<LogFile> taken;
  if (content_.store->move_to(store, kept.name, name)) {
    if (auto opened = store.open(name)) {
      taken = std::move(kept.file);
      taken->storage = std::move(*opened);
    } else {
      (void)store.remove(name);  // It goes with that store at the latest.
    }
  }
  content_.capacity->give_back(bytes);
  if (content_.kept.empty()) content_.capacity.reset();
  last_use_ = Clock::now();
  return taken;
}

/// Files first, and then what they took of the capacity.
void SegmentReserve::give_back(Content content) {
  content.kept.clear();
  if (content.store == nullptr) return;
  // What cannot be removed is a log that holds nothing, to those who look at logs.
  (void)content.store->destroy();
}

bool SegmentReserve::empty() {
  Content content;
  {
    const std::scoped_lock lock(mutex_);
    content = std::exchange(content_, {});
  }
  const bool any = !content.kept.empty();
  give_back(std::move(content));
  return any;
}

void SegmentReserve::close() {
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  if (worker_.joinable()) worker_.join();
  (void)empty();
}

Bytes SegmentReserve::held() const {
  const std::scoped_lock lock(mutex_);
  return content_.capacity == nullptr ? 0 : content_.capacity->held();
}

void SegmentReserve::look(Clock::time_point now) {
  {
    const std::scoped_lock lock(mutex_);
    const bool short_of = content_.capacity != nullptr && scarce(0);
    if (!short_of && now - last_use_ < patience) return;
  }
  (void)empty();
}

void SegmentReserve::work() {
  std::unique_lock lock(mutex_);
  while (!closed_) {
    if (content_.store == nullptr) {
      changed_.wait(lock);
      continue;
    }
    if (content_.kept.empty()) {
      changed_.wait_until(lock, last_use_ + patience);
    } else {
      changed_.wait_for(lock, between_looks);
    }
    lock.unlock();
    look(Clock::now());
    lock.lock();
  }
}

void keep_segments() {
  pid_t nobody = 0;
  reserves().process.compare_exchange_strong(nobody, ::getpid());
  static const bool registered = std::atexit(close_segment_reserves) == 0;
  (void)registered;
}

void close_segment_reserves() {
  Reserves& all = reserves();
  // What a forked child inherits is its parent's.
  pid_t own = ::getpid();
  if (!all.process.compare_exchange_strong(own, 0)) return;
  std::map<std::string, std::shared_ptr<SegmentReserve>> closing;
  {
    const std::scoped_lock lock(all.mutex);
    closing.swap(all.of_directory);
  }
  for (const auto& [path, reserve] : closing) reserve->close();
}

std::shared_ptr<SegmentReserve> segment_reserve(const std::shared_ptr<CacheDirectory>& directory) {
  if (!directory->in_memory()) return nullptr;
  Reserves& all = reserves();
  if (all.process != ::getpid()) return nullptr;
  const std::scoped_lock lock(all.mutex);
  std::shared_ptr<SegmentReserve>& reserve = all.of_directory[directory->path()];
  if (reserve == nullptr) {
    remove_left(directory);
    reserve = std::make_shared<SegmentReserve>([directory]() -> Result<std::unique_ptr<LogStore>> {
      auto made = LogDirectory::create(directory, store_name());
      if (!made) return tl::unexpected(made.error());
      return std::unique_ptr<LogStore>(std::move(*made));
    });
  }
  return reserve;
}

}  // namespace forebay
