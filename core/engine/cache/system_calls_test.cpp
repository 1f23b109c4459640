// Goal: whichever call of the operating system fails, on the node or on the global file system, for
// want of space or by an error of the device, once or from then on: bytes that were acknowledged
// are in the file or come back with a recovery, what is read is right, and nothing hangs. Method:
// functions that stand in front of the C library's for all of this program. One workload on a real
// log, a real file and its notice, once for every call that it makes; the process killed at the
// end, before the file is closed or after. Logs are on a disk, and in memory, where they are mapped
// and begin in segments of an earlier log. Nothing is made durable, which takes long and is seen by
// nobody here. The same for every call of a recovery, after which another brings all to the file.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/cache/cached_file.hpp"
#include "core/engine/cache/log_directory.hpp"
#include "core/engine/cache/overtaken_logs.hpp"
#include "core/engine/cache/possible_content.hpp"
#include "core/engine/cache/recovery.hpp"
#include "core/engine/cache/segment_reserve.hpp"
#include "core/storage/past_page_cache.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;

enum Kind {
  open_call,
  make_directory,
  allocate,
  map_call,
  write_call,
  read_call,
  resize,
  sync_call,
  rename_call,
  remove_call,
  kinds
};
enum Side { node, global, sides };

/// Which call fails, and how many there were.
struct Injected {
  std::array<std::string, sides> places;  ///< Directories.
  Side side = node;
  Kind kind = open_call;
  int nth = 0;
  int os_errno = 0;
  bool lasting = false;
  std::atomic<int> calls{0};  ///< Of that kind on that side.

  bool met() const { return calls > nth; }
};

/// Of a call that fails, all but which one it is.
struct Failure {
  Side side = node;
  int os_errno = 0;
  bool lasting = false;
};

/// Null: all calls are let through.
std::atomic<Injected*> injected{nullptr};

/// Whether this call, on something that lies at `path`, is to fail; errno is set then.
bool fails_at(Kind kind, const char* path) {
  Injected* const plan = injected;
  if (plan == nullptr || kind != plan->kind) return false;
  const std::string& place = plan->places[plan->side];
  if (std::string_view(path).substr(0, place.size()) != place) return false;
  const int number = plan->calls++;
  if (number != plan->nth && !(plan->lasting && number > plan->nth)) return false;
  errno = plan->os_errno;
  return true;
}

bool fails_on(Kind kind, int descriptor) {
  if (injected == nullptr) return false;
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  std::array<char, PATH_MAX> path{};
  return ::readlink(link.c_str(), path.data(), path.size() - 1) > 0 && fails_at(kind, path.data());
}

/// Names below a directory that is open count as that.
bool fails_below(Kind kind, int directory, const char* path) {
  return directory == AT_FDCWD || path[0] == '/' ? fails_at(kind, path) : fails_on(kind, directory);
}

}  // namespace
}  // namespace forebay

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
#define FOREBAY_IN_FRONT extern "C" __attribute__((visibility("default")))

FOREBAY_IN_FRONT int openat(int directory, const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (forebay::fails_below(forebay::open_call, directory, path)) return -1;
  return static_cast<int>(::syscall(SYS_openat, directory, path, flags, mode));
}

FOREBAY_IN_FRONT int open(const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return openat(AT_FDCWD, path, flags, mode);
}

FOREBAY_IN_FRONT int mkdirat(int directory, const char* path, mode_t mode) noexcept {
  if (forebay::fails_below(forebay::make_directory, directory, path)) return -1;
  return static_cast<int>(::syscall(SYS_mkdirat, directory, path, mode));
}

FOREBAY_IN_FRONT int mkdir(const char* path, mode_t mode) noexcept {
  return mkdirat(AT_FDCWD, path, mode);
}

FOREBAY_IN_FRONT int fallocate(int descriptor, int mode, off_t offset, off_t length) {
  if (forebay::fails_on(forebay::allocate, descriptor)) return -1;
  return static_cast<int>(::syscall(SYS_fallocate, descriptor, mode, offset, length));
}

FOREBAY_IN_FRONT int posix_fallocate(int descriptor, off_t offset, off_t length) {
  return fallocate(descriptor, 0, offset, length) == 0 ? 0 : errno;
}

FOREBAY_IN_FRONT void* mmap(void* address, size_t length, int protection, int flags, int descriptor,
                            off_t offset) noexcept {
  if (descriptor >= 0 && forebay::fails_on(forebay::map_call, descriptor)) return MAP_FAILED;
  return reinterpret_cast<void*>(
      ::syscall(SYS_mmap, address, length, protection, flags, descriptor, offset));
}

FOREBAY_IN_FRONT ssize_t write(int descriptor, const void* bytes, size_t length) {
  if (forebay::fails_on(forebay::write_call, descriptor)) return -1;
  return ::syscall(SYS_write, descriptor, bytes, length);
}

FOREBAY_IN_FRONT ssize_t pwrite(int descriptor, const void* bytes, size_t length, off_t offset) {
  if (forebay::fails_on(forebay::write_call, descriptor)) return -1;
  return ::syscall(SYS_pwrite64, descriptor, bytes, length, offset);
}

FOREBAY_IN_FRONT ssize_t pwritev(int descriptor, const iovec* pieces, int count, off_t offset) {
  if (forebay::fails_on(forebay::write_call, descriptor)) return -1;
  return ::syscall(SYS_pwritev, descriptor, pieces, count, offset, 0L);
}

FOREBAY_IN_FRONT ssize_t read(int descriptor, void* bytes, size_t length) {
  if (forebay::fails_on(forebay::read_call, descriptor)) return -1;
  return ::syscall(SYS_read, descriptor, bytes, length);
}

FOREBAY_IN_FRONT ssize_t pread(int descriptor, void* bytes, size_t length, off_t offset) {
  if (forebay::fails_on(forebay::read_call, descriptor)) return -1;
  return ::syscall(SYS_pread64, descriptor, bytes, length, offset);
}

FOREBAY_IN_FRONT ssize_t preadv(int descriptor, const iovec* pieces, int count, off_t offset) {
  if (forebay::fails_on(forebay::read_call, descriptor)) return -1;
  return ::syscall(SYS_preadv, descriptor, pieces, count, offset, 0L);
}

FOREBAY_IN_FRONT int ftruncate(int descriptor, off_t size) noexcept {
  if (forebay::fails_on(forebay::resize, descriptor)) return -1;
  return static_cast<int>(::syscall(SYS_ftruncate, descriptor, size));
}

FOREBAY_IN_FRONT int fsync(int descriptor) {
  return forebay::fails_on(forebay::sync_call, descriptor) ? -1 : 0;
}

FOREBAY_IN_FRONT int fdatasync(int descriptor) { return fsync(descriptor); }

FOREBAY_IN_FRONT int renameat2(int from_directory, const char* from, int to_directory,
                               const char* to, unsigned flags) noexcept {
  if (forebay::fails_below(forebay::rename_call, from_directory, from)) return -1;
  return static_cast<int>(::syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
}

FOREBAY_IN_FRONT int renameat(int from_directory, const char* from, int to_directory,
                              const char* to) noexcept {
  return renameat2(from_directory, from, to_directory, to, 0);
}

FOREBAY_IN_FRONT int rename(const char* from, const char* to) noexcept {
  return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

FOREBAY_IN_FRONT int unlinkat(int directory, const char* path, int flags) noexcept {
  if (forebay::fails_below(forebay::remove_call, directory, path)) return -1;
  return static_cast<int>(::syscall(SYS_unlinkat, directory, path, flags));
}

FOREBAY_IN_FRONT int unlink(const char* path) noexcept { return unlinkat(AT_FDCWD, path, 0); }

FOREBAY_IN_FRONT int rmdir(const char* path) noexcept {
  return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

// NOLINTEND(readability-inconsistent-declaration-parameter-name)

namespace forebay {
namespace {

constexpr std::size_t file_bytes = 12'000;

/// Where logs lie.
enum class Device { disk, memory };

/// A directory of the test's own.
fs::path made_in(const fs::path& parent) {
  std::string made_as = parent / "forebay-calls-XXXXXX";
  if (::mkdtemp(made_as.data()) == nullptr) {
    throw fs::filesystem_error("no directory for a test", parent,
                               std::error_code(errno, std::generic_category()));
  }
  return fs::canonical(made_as);
}

/// A node-local directory and a global one, and what a program does there.
class Place {
 public:
  explicit Place(Device device)
      : local_(made_in(device == Device::memory ? "/dev/shm" : fs::temp_directory_path())),
        global_(made_in(fs::temp_directory_path())) {
    const Descriptor made(::open(file().c_str(), O_CREAT | O_WRONLY, 0600));
    EXPECT_TRUE(made.valid());
    if (device == Device::memory) fill_reserve();
  }
  ~Place() {
    end_process();
    for (const fs::path& path : {local_, global_}) fs::remove_all(path);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  std::string file() const { return global_ / "data"; }
  std::string side(Side side) const { return side == node ? local_ : global_; }

  /// Null where the log cannot be made: who opens the file then goes without.
  std::unique_ptr<CachedFile> open(CacheFlush policy, SyncScope sync = SyncScope::file) {
    return open(policy, sync, file(), "log");
  }

  /// What is kept for later logs goes.
  void end_process() { reserve_.reset(); }

  std::vector<std::byte> content() {
    const auto opened = open_posix_file(file(), OpenMode::read_only, counters_);
    std::vector<std::byte> bytes(static_cast<std::size_t>((*opened)->size().value()));
    EXPECT_EQ((*opened)->read_at(bytes, 0).value(), static_cast<Bytes>(bytes.size()));
    return bytes;
  }

  void recover() {
    if (!CacheDirectory::open(side(node), CacheDirectory::Access::existing)) return;
    const Status done = try_to_recover();
    ASSERT_TRUE(done) << to_string(done.error());
  }
  /// As the command does, unless it is told to replay what was written past.
  Status try_to_recover() {
    const auto directory = CacheDirectory::open(side(node), CacheDirectory::Access::existing);
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
        forebay::recover(*target, sidecar, std::move(logs), {.incomplete = Incomplete::replay});
    return report ? Status{} : tl::unexpected(report.error());
  }

 private:
  std::unique_ptr<CachedFile> open(CacheFlush policy, SyncScope sync, const std::string& path,
                                   const std::string& name) {
    const auto directory = CacheDirectory::open(side(node), CacheDirectory::Access::create);
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

  /// Leaves segments of a log of another file, whose values no other file has.
  void fill_reserve() {
    const auto directory = CacheDirectory::open(side(node), CacheDirectory::Access::create);
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
    for (int i = 0; i < 4; ++i) {  // Fewer than the next log needs.
      const std::vector<std::byte> bytes(4000, static_cast<std::byte>(200 + i));
      ASSERT_TRUE(cached->write_at(bytes, Bytes{3000} * i));
    }
    ASSERT_TRUE(cached->close());
    ASSERT_GT(reserve_->held(), 0);
  }

  const fs::path local_;
  const fs::path global_;
  std::shared_ptr<Resource> capacity_ = std::make_shared<Resource>("cache.local", 3 * 16 * KiB);
  std::shared_ptr<SegmentReserve> reserve_;  ///< Or null.
  Counters counters_;
};

/// Writes over each other, more than the log may hold, commits, a sync, a cut, and reads. Returns
/// what the file may hold.
PossibleContent work(CachedFile& file) {
  PossibleContent possible(file_bytes);
  const auto write = [&](Bytes offset, std::size_t length, int number) {
    const auto value = static_cast<std::byte>(number);
    const std::vector<std::byte> bytes(length, value);
    possible.tried(file.write_at(bytes, offset).has_value(), offset, length, value);
  };
  const auto look = [&](Bytes offset) {
    std::vector<std::byte> back(3000);
    const auto got = file.read_at(back, offset);
    back.resize(static_cast<std::size_t>(got.value_or(0)));
    EXPECT_EQ(possible.wrong_at(offset, back), "");
  };
  for (int epoch = 0; epoch < 3; ++epoch) {
    write(epoch * 2000, 3000, 1 + 2 * epoch);
    write(epoch * 2000 + 2000, 5000, 2 + 2 * epoch);
    (void)file.commit(file.epoch() + 1);
    look(epoch * 2000 + 500);
    if (epoch == 0) (void)file.sync();
    if (epoch == 1) {
      look(0);
      constexpr Bytes cut = 5000;
      possible.tried(file.resize(cut).has_value(), cut, file_bytes - cut, std::byte{0});
    }
    if (epoch == 2) (void)file.allocate(12'000);
  }
  return possible;
}

Injected plan_for(const Place& place, const Failure& failure, Kind kind, int nth) {
  return {.places = {place.side(node), place.side(global)},
          .side = failure.side,
          .kind = kind,
          .nth = nth,
          .os_errno = failure.os_errno,
          .lasting = failure.lasting};
}

struct Case {
  Device device = Device::disk;
  CacheFlush policy = CacheFlush::immediate;
  Failure failure;
  bool closes = false;
};

/// One run. True: the call was made that was to fail.
bool run(const Case& now, Kind kind, int nth) {
  Place place(now.device);
  Injected plan = plan_for(place, now.failure, kind, nth);
  injected = &plan;
  auto file = place.open(now.policy);
  PossibleContent possible(file_bytes);
  bool closed = false;
  if (file != nullptr) {
    possible = work(*file);
    closed = now.closes && file->close();
  }
  file.reset();
  place.end_process();
  injected = nullptr;
  if (closed) {
    EXPECT_EQ(possible.wrong(place.content()), "") << "closed";
  }
  place.recover();
  EXPECT_EQ(possible.wrong(place.content()), "") << "recovered";
  return plan.met();
}

/// A recovery in which a call fails, and one more. True: the call was made.
bool recover_twice(Device device, const Failure& failure, Kind kind, int nth) {
  Place place(device);
  auto file = place.open(CacheFlush::onclose);
  EXPECT_NE(file, nullptr);
  if (file == nullptr) return false;
  const PossibleContent possible = work(*file);
  file.reset();
  place.end_process();
  Injected plan = plan_for(place, failure, kind, nth);
  injected = &plan;
  const Status done = place.try_to_recover();
  injected = nullptr;
  if (done) {
    EXPECT_EQ(possible.wrong(place.content()), "") << "recovered, as it said";
  }
  place.recover();
  EXPECT_EQ(possible.wrong(place.content()), "") << "recovered once more";
  return plan.met();
}

/// How many calls of each kind `run(kind, nth)` made: one more run for each, in which it fails.
template <typename Run>
std::map<int, int> calls_that_failed(Run run) {
  std::map<int, int> calls;
  for (int kind = 0; kind < kinds; ++kind) {
    // Which call is whose turn varies with the threads, so there may be one more or less.
    for (int nth = 0; !testing::Test::HasFailure(); ++nth) {
      SCOPED_TRACE(testing::Message() << "call " << kind << ", number " << nth);
      if (!run(static_cast<Kind>(kind), nth)) break;
      ++calls[kind];
    }
  }
  return calls;
}

/// Times that something on the global side is made durable by the first write to a log.
int durable_by_a_write(SyncScope scope) {
  Place place(Device::disk);
  Injected none;
  none.places = {place.side(node), place.side(global)};
  none.side = global;
  none.kind = sync_call;
  none.nth = INT_MAX;
  auto file = place.open(CacheFlush::onclose, scope);
  injected = &none;
  const std::vector<std::byte> bytes(100);
  EXPECT_TRUE(file->write_at(bytes, 0));
  injected = nullptr;
  EXPECT_TRUE(file->close());
  return none.calls;
}

/// Else who opens the file after a crash of the node would not know of the log, and write.
TEST(Notice, IsAsDurableAsTheLogIsToBe) {
  EXPECT_EQ(durable_by_a_write(SyncScope::file), 0);
  EXPECT_EQ(durable_by_a_write(SyncScope::node), 3) << "the notice, its name, and its directory's";
}

struct Failing {
  CacheFlush policy = CacheFlush::immediate;
  int os_errno = 0;
};

class EverySystemCall
    : public ::testing::TestWithParam<std::tuple<Device, Side, Failing, bool, bool>> {};

TEST_P(EverySystemCall, MayFailAndNothingIsLost) {
  const auto [device, side, failing, lasting, closes] = GetParam();
  const Case now{device, failing.policy, {side, failing.os_errno, lasting}, closes};
  auto calls = calls_that_failed([&now](Kind kind, int nth) { return run(now, kind, nth); });
  // Directories are made for notices and logs, only the file is cut, and only memory is mapped,
  // which is read without a call then.
  for (int kind = 0; kind < kinds; ++kind) {
    if (kind == resize && side == node) continue;
    if (kind == map_call && (side == global || device == Device::disk)) continue;
    if (kind == read_call && side == node && device == Device::memory) continue;
    EXPECT_GT(calls[kind], 0) << "call " << kind;
  }
}

INSTANTIATE_TEST_SUITE_P(
    LogsOnADisk, EverySystemCall,
    ::testing::Combine(::testing::Values(Device::disk), ::testing::Values(node, global),
                       ::testing::Values(Failing{CacheFlush::immediate, EIO},
                                         Failing{CacheFlush::immediate, ENOSPC},
                                         Failing{CacheFlush::onclose, EIO},
                                         Failing{CacheFlush::onclose, ENOSPC},
                                         Failing{CacheFlush::onsync, EIO},
                                         Failing{CacheFlush::deferred, ENOSPC}),
                       ::testing::Bool(), ::testing::Bool()));

INSTANTIATE_TEST_SUITE_P(
    LogsInMemory, EverySystemCall,
    ::testing::Combine(::testing::Values(Device::memory), ::testing::Values(node),
                       ::testing::Values(Failing{CacheFlush::immediate, ENOSPC},
                                         Failing{CacheFlush::onclose, EIO},
                                         Failing{CacheFlush::onsync, ENOSPC},
                                         Failing{CacheFlush::deferred, EIO}),
                       ::testing::Bool(), ::testing::Bool()));

class EverySystemCallOfARecovery
    : public ::testing::TestWithParam<std::tuple<Device, Side, int, bool>> {};

TEST_P(EverySystemCallOfARecovery, MayFailAndTheNextOneBringsAllToTheFile) {
  const auto [device, side, os_errno, lasting] = GetParam();
  const Failure failure{side, os_errno, lasting};
  auto calls = calls_that_failed([device = device, &failure](Kind kind, int nth) {
    return recover_twice(device, failure, kind, nth);
  });
  for (const Kind kind : {open_call, remove_call}) EXPECT_GT(calls[kind], 0) << kind;
  // Logs are read, and the file is written.
  const auto of_this_side =
      side == node ? std::vector{read_call} : std::vector{write_call, sync_call};
  for (const Kind kind : of_this_side) EXPECT_GT(calls[kind], 0) << kind;
}

INSTANTIATE_TEST_SUITE_P(Logs, EverySystemCallOfARecovery,
                         ::testing::Combine(::testing::Values(Device::disk, Device::memory),
                                            ::testing::Values(node, global),
                                            ::testing::Values(EIO, ENOSPC), ::testing::Bool()));

}  // namespace
}  // namespace forebay
