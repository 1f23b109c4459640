#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/engine/cache/cached_file.hpp"
#include "core/engine/cache/intercepted_calls.hpp"
#include "core/engine/cache/log_directory.hpp"
#include "core/engine/cache/overtaken_logs.hpp"
#include "core/engine/cache/recovery.hpp"
#include "core/engine/cache/segment_reserve.hpp"
#include "core/storage/past_page_cache.hpp"

namespace forebay {

/// For tests: a node-local directory and a global one, which a file is in, what a program does
/// there, and a recovery after it.
class CacheSite {
 public:
  /// Where logs lie.
  enum class Device { disk, memory };
  enum class Side { node, global };

  /// Whether a program makes such a call there. Directories are made for notices and logs, only the
  /// file is cut, and only memory is mapped, which is read without a call then.
  static bool is_made(CallKind call, Side side, Device device) {
    if (call == CallKind::resize) return side == Side::global;
    if (call == CallKind::map) return side == Side::node && device == Device::memory;
    if (call == CallKind::read) return side == Side::global || device == Device::disk;
    return true;
  }

  /// A flush that begins with a sync is one that the sync does not wait for.
  static SyncScope scope_of(CacheFlush policy) {
    return policy == CacheFlush::onsync ? SyncScope::node : SyncScope::file;
  }

  explicit CacheSite(Device device)
      : device_(device),
        local_(
            made_in(device == Device::memory ? memory() : std::filesystem::temp_directory_path())),
        global_(made_in(memory())) {
    const Descriptor made(::open(file().c_str(), O_CREAT | O_WRONLY, 0600));
    EXPECT_TRUE(made.valid());
  }
  ~CacheSite() {
    end_process();
    for (const std::filesystem::path& path : {local_, global_}) std::filesystem::remove_all(path);
  }
  CacheSite(const CacheSite&) = delete;
  CacheSite& operator=(const CacheSite&) = delete;

  std::string file() const { return global_ / "data"; }
  std::string side(Side side) const { return side == Side::node ? local_ : global_; }

  /// In memory it has segments of a log of another file, fewer than the next log needs, with values
  /// from 200 on.
  void begin_process() {
    if (device_ == Device::memory) fill_reserve();
  }
  /// What is kept for later logs goes.
  void end_process() { reserve_.reset(); }

  /// Null where the log cannot be made: who opens the file then goes without.
  std::unique_ptr<CachedFile> open(CacheFlush policy, SyncScope sync = SyncScope::file) {
    return open(policy, sync, file(), "log");
  }

  std::vector<std::byte> content() {
    const auto opened = open_posix_file(file(), OpenMode::read_only, counters_);
    std::vector<std::byte> bytes(static_cast<std::size_t>((*opened)->size().value()));
    EXPECT_EQ((*opened)->read_at(bytes, 0).value(), static_cast<Bytes>(bytes.size()));
    return bytes;
  }
  /// Whether something beside the file says that it is not complete.
  bool has_notice() const {
    const auto read = Sidecar(file()).read();
    return read && !read->notices.empty();
  }

  void recover(Incomplete incomplete = Incomplete::replay) {
    if (!CacheDirectory::open(side(Side::node), CacheDirectory::Access::existing)) return;
    const Status done = try_to_recover(incomplete);
    ASSERT_TRUE(done) << to_string(done.error());
  }
  /// As the command does, unless it is told to replay what was written past.
  Status try_to_recover(Incomplete incomplete = Incomplete::replay) {
    const auto directory = CacheDirectory::open(side(Side::node), CacheDirectory::Access::existing);
    if (!directory) return tl::unexpected(directory.error());
    Sidecar sidecar(file());
    const auto overtaken = overtaken_logs(sidecar);
    if (!overtaken) return tl::unexpected(overtaken.error());
    std::vector<LeftLog> logs;
    const auto names = (*directory)->logs();
    if (!names) return tl::unexpected(names.error());
    for (const std::string& name : *names) {
      if (overtaken->contains(name)) continue;
      auto store = LogDirectory::open(*directory, name, LogDirectory::Use::replace);
      if (!store) return tl::unexpected(store.error());
      logs.push_back({name, std::move(*store)});
    }
    auto opened = open_posix_file(file(), OpenMode::read_write, counters_);
    if (!opened) return tl::unexpected(opened.error());
    const auto target = past_page_cache(std::move(*opened), counters_);
    const auto report =
        forebay::recover(*target, sidecar, std::move(logs), {.incomplete = incomplete});
    return report ? Status{} : tl::unexpected(report.error());
  }

  /// Names of the logs that are there.
  std::vector<std::string> logs() const {
    const auto directory = CacheDirectory::open(side(Side::node), CacheDirectory::Access::existing);
    return directory ? (*directory)->logs().value() : std::vector<std::string>{};
  }

 private:
  /// Also of the global side: what outlives a process there is what does on a disk, where
  /// directories come and go slowly.
  static std::filesystem::path memory() { return "/dev/shm"; }

  static std::filesystem::path made_in(const std::filesystem::path& parent) {
    std::string made_as = parent / "forebay-place-XXXXXX";
    if (::mkdtemp(made_as.data()) == nullptr) {
      throw std::filesystem::filesystem_error("no directory for a test", parent,
                                              std::error_code(errno, std::generic_category()));
    }
    return std::filesystem::canonical(made_as);
  }

  std::unique_ptr<CachedFile> open(CacheFlush policy, SyncScope sync, const std::string& path,
                                   const std::string& name) {
    const auto directory = CacheDirectory::open(side(Side::node), CacheDirectory::Access::create);
    if (!directory) return nullptr;
    auto store = LogDirectory::create(*directory, name);
    const auto identity = identify(path);
    auto storage = open_posix_file(path, OpenMode::read_write, counters_);
    if (!store || !identity || !storage) return nullptr;
    LogIdentity log;
    log.log = name;
    log.file = *identity;
    CacheOptions options;
    options.flush = policy;
    options.sync = sync;
    options.flush_threads = 1;
    options.flush_bytes = 4 * KiB;
    options.log = {16 * KiB, 1 * KiB, Toggle::disable, reserve_};
    options.patience = std::chrono::milliseconds(1);
    auto cached = CachedFile::open(std::move(*storage), std::move(*store), log, capacity_, options);
    return cached ? std::move(*cached) : nullptr;
  }

  void fill_reserve() {
    const auto directory = CacheDirectory::open(side(Side::node), CacheDirectory::Access::create);
    ASSERT_TRUE(directory);
    ASSERT_TRUE((*directory)->in_memory());
    reserve_ = std::make_shared<SegmentReserve>(
        [directory = *directory]() -> Result<std::unique_ptr<LogStore>> {
          auto made = LogDirectory::create(directory, "spare");
          if (!made) return tl::unexpected(made.error());
          return std::unique_ptr<LogStore>(std::move(*made));
        });
    capacity_ = std::make_shared<Resource>("cache.local", 64 * MiB);
    reserve_->use(capacity_);
    const std::string other = file() + "-before";
    const Descriptor made(::open(other.c_str(), O_CREAT | O_WRONLY, 0600));
    const auto cached = open(CacheFlush::onclose, SyncScope::file, other, "log-before");
    ASSERT_NE(cached, nullptr);
    for (int i = 0; i < 4; ++i) {
      const std::vector<std::byte> bytes(4000, static_cast<std::byte>(200 + i));
      ASSERT_TRUE(cached->write_at(bytes, Bytes{3000} * i));
    }
    ASSERT_TRUE(cached->close());
    ASSERT_GT(reserve_->held(), 0);
  }

  const Device device_;
  const std::filesystem::path local_;
  const std::filesystem::path global_;
  std::shared_ptr<Resource> capacity_ = std::make_shared<Resource>("cache.local", 3 * 16 * KiB);
  std::shared_ptr<SegmentReserve> reserve_;  ///< Or null.
  Counters counters_;
};

}  // namespace forebay
