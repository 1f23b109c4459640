#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/engine/cache/log_store.hpp"
#include "core/engine/cache/resource.hpp"
#include "core/model/error.hpp"
#include "core/model/extent.hpp"

namespace forebay {

/// How files of a log are called that hold no records of it: not yet, or not any more.
inline constexpr const char* blank_prefix = "blank-";

/// Files of flushed segments, kept for the next ones of this process's logs: their pages are there
/// already, and mapped, which to get costs more than to fill them. They lie in a store of their
/// own, under names that no reader of logs looks at, and count with the capacity. There are few of
/// them: what they hold is at most a quarter of what one holder of the capacity is entitled to, and
/// nothing where less than a quarter of all is free, where somebody waits for it, or where nothing
/// came or went for a while. Thread-safe.
class SegmentReserve {
 public:
  using Clock = std::chrono::steady_clock;
  using MakeStore = std::function<Result<std::unique_ptr<LogStore>>()>;

  /// How long files are kept that nobody takes: more than most programs compute between two files
  /// that they write.
  static constexpr std::chrono::seconds patience{60};

  /// `make_store` makes an empty store when there is something to keep.
  explicit SegmentReserve(MakeStore make_store);
  ~SegmentReserve();
  SegmentReserve(const SegmentReserve&) = delete;
  SegmentReserve& operator=(const SegmentReserve&) = delete;

  /// What is kept is held of `capacity`, as long as anybody else has that.
  void use(const std::shared_ptr<Resource>& capacity);
  /// Somebody is about to share a capacity of `amount`: what is held of another one is given back,
  /// or that would count.
  void agree(Bytes amount);

  /// The file of `bytes` that is called `name` in `store`, which may be destroyed afterwards.
  /// False: it is not kept, and is still there.
  bool keep(LogStore& store, const std::string& name, Bytes bytes, LogFile file);
  /// A file of `bytes`, if there is one, which is called `name` in `store` then.
  std::optional<LogFile> take(LogStore& store, const std::string& name, Bytes bytes);
  /// Gives all back. False: there was nothing.
  bool empty();
  /// The same, and nothing is kept any more.
  void close();

  /// What is done a few times a second: gives all back if it is time to.
  void look(Clock::time_point now);
  Bytes held() const;

 private:
  struct Kept {
    std::string name;
    Bytes bytes = 0;
    LogFile file;  ///< Without its storage, which belongs to another store.
  };
  struct Content {
    std::unique_ptr<LogStore> store;
    std::unique_ptr<ResourceHolder> capacity;  ///< Where something is kept.
    std::vector<Kept> kept;
  };

  bool begin();
  bool scarce(Bytes more) const;
  static void give_back(Content content);
  void work();

  const MakeStore make_store_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::weak_ptr<Resource> resource_;  ///< Guarded by mutex_, as is what follows.
  Content content_;
  Clock::time_point last_use_;
  std::uint64_t next_number_ = 0;  ///< Of a name.
  bool closed_ = false;
  std::thread worker_;  ///< From the first file on.
};

class CacheDirectory;

/// From now on logs in memory leave segments to the next ones: whoever says so calls
/// close_segment_reserves() when the last log is closed. A program that ends without it does so at
/// its exit.
void keep_segments();
void close_segment_reserves();
/// Of all logs of this process in `directory`. Null: nothing is kept there.
std::shared_ptr<SegmentReserve> segment_reserve(const std::shared_ptr<CacheDirectory>& directory);

}  // namespace forebay
