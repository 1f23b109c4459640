#include "core/storage/server_advice.hpp"

#if FOREBAY_LUSTRE
#include <lustre/lustreapi.h>
#endif
#if FOREBAY_GPFS
#include <gpfs_fcntl.h>
#endif
#if FOREBAY_LUSTRE || FOREBAY_GPFS
#include <dlfcn.h>
#include <sys/stat.h>

#include "core/storage/layout.hpp"
#endif

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

namespace forebay {
namespace {

#if FOREBAY_LUSTRE || FOREBAY_GPFS
/// Looked up when the first file of such a file system is opened: what is preloaded into every
/// program should bring no library with it. Null if there is none.
template <typename Function>
Function* found_in(const char* library, const char* name) {
  if (void* there = ::dlsym(RTLD_DEFAULT, name)) return reinterpret_cast<Function*>(there);
  void* opened = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  return opened == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(opened, name));
}
#endif

#if FOREBAY_LUSTRE
class LustreAdvice final : public ServerAdvice {
 public:
  using Call = int(int, unsigned long long, int, llapi_lu_ladvise*);
  explicit LustreAdvice(Call& call) : call_(call) {}

  Status advise(int descriptor, Extent extent, bool is_needed) override {
    if (!is_needed || extent.empty()) return {};
    const std::lock_guard lock(mutex_);
    if (refused_ != 0) return fail(refused_, asking);
    llapi_lu_ladvise advice{};
    advice.lla_advice = LU_LADVISE_WILLREAD;
    advice.lla_start = static_cast<unsigned long long>(extent.offset);
    advice.lla_end = static_cast<unsigned long long>(extent.end());
    if (call_(descriptor, LF_ASYNC, 1, &advice) == 0) return {};
    // The library writes each failure on the program's standard error.
    refused_ = errno;
    return fail(refused_, asking);
  }

 private:
  static constexpr const char* asking = "advise the servers of Lustre";

  Call& call_;
  std::mutex mutex_;
  int refused_ = 0;  ///< An errno value. Guarded by mutex_.
};
#endif

#if FOREBAY_GPFS
class GpfsAdvice final : public ServerAdvice {
 public:
  using Call = int(int, void*);
  GpfsAdvice(Call& call, Bytes block) : call_(call), block_(block) {}

  Status advise(int descriptor, Extent extent, bool is_needed) override {
    const std::lock_guard lock(mutex_);
    const std::vector<Extent> parts = is_needed ? in_blocks(extent) : taken_within(extent);
    for (std::size_t at = 0; at < parts.size(); at += GPFS_MAX_RANGE_COUNT) {
      const auto some = std::span(parts).subspan(
          at, std::min<std::size_t>(GPFS_MAX_RANGE_COUNT, parts.size() - at));
      const auto taken = tell(descriptor, some, is_needed);
      if (!taken) return tl::unexpected(taken.error());
      if (is_needed) taken_.insert(taken_.end(), some.begin(), some.begin() + *taken);
      if (*taken < static_cast<std::ptrdiff_t>(some.size())) break;  // It is busy with others.
    }
    return {};
  }

 private:
  /// Each within one block.
  std::vector<Extent> in_blocks(Extent extent) const {
    std::vector<Extent> parts;
    for (Bytes at = extent.offset; at < extent.end(); at = parts.back().end()) {
      parts.push_back(intersect({at, block_ - at % block_}, extent));
    }
    return parts;
  }

  /// What was taken must be given back some time, or no more is taken.
  std::vector<Extent> taken_within(Extent extent) {
    std::vector<Extent> parts;
    std::erase_if(taken_, [&](const Extent& part) {
      const bool is_within = !intersect(part, extent).empty();
      if (is_within) parts.push_back(part);
      return is_within;
    });
    return parts;
  }

  /// How many of them were taken, from the first.
  Result<std::ptrdiff_t> tell(int descriptor, std::span<const Extent> parts, bool is_needed) {
    struct {
      gpfsFcntlHeader_t header;
      gpfsMultipleAccessRange_t hint;
    } message{};
    message.header.totalLength = sizeof message;
    message.header.fcntlVersion = GPFS_FCNTL_CURRENT_VERSION;
    message.hint.structLen = sizeof message.hint;
    message.hint.structType = GPFS_MULTIPLE_ACCESS_RANGE;
    auto& ranges = is_needed ? message.hint.accRangeArray : message.hint.relRangeArray;
    auto& count = is_needed ? message.hint.accRangeCnt : message.hint.relRangeCnt;
    for (const Extent& part : parts) {
      auto& range = ranges[count++];
      range.blockNumber = part.offset / block_;
      range.start = static_cast<int>(part.offset % block_);
      range.length = static_cast<int>(part.length);
    }
    if (call_(descriptor, &message) != 0) return fail(errno, "advise GPFS");
    const auto all = static_cast<std::ptrdiff_t>(parts.size());
    return is_needed ? std::clamp<std::ptrdiff_t>(message.hint.accRangeCnt, 0, all) : all;
  }

  Call& call_;
  const Bytes block_;
  std::mutex mutex_;
  std::vector<Extent> taken_;  ///< Guarded by mutex_.
};
#endif

}  // namespace

std::unique_ptr<ServerAdvice> server_advice_for([[maybe_unused]] std::string_view file_system,
                                                [[maybe_unused]] Bytes block) {
#if FOREBAY_LUSTRE
  if (file_system == "lustre") {
    auto* const call = found_in<LustreAdvice::Call>("liblustreapi.so.1", "llapi_ladvise");
    if (call != nullptr) return std::make_unique<LustreAdvice>(*call);
  }
#endif
#if FOREBAY_GPFS
  if (file_system == "gpfs" && block > 0) {
    auto* const call = found_in<GpfsAdvice::Call>("libgpfs.so", "gpfs_fcntl");
    if (call != nullptr) return std::make_unique<GpfsAdvice>(*call, block);
  }
#endif
  return nullptr;
}

std::unique_ptr<ServerAdvice> server_advice_of([[maybe_unused]] int descriptor,
                                               [[maybe_unused]] const std::string& link) {
#if FOREBAY_LUSTRE || FOREBAY_GPFS
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return nullptr;
  return server_advice_for(file_system_name(link), status.st_blksize);
#else
  return nullptr;
#endif
}

}  // namespace forebay
