#include "core/storage/fetch_source.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "core/model/direct_io.hpp"
#include "core/storage/descriptor.hpp"
#include "core/storage/page_residence.hpp"
#include "core/storage/server_advice.hpp"
#include "core/storage/thread_waits.hpp"
#include "core/storage/told_alignment.hpp"

namespace forebay {
namespace {

class PosixFetchSource final : public FetchSource {
 public:
  PosixFetchSource(Descriptor fd, bool is_direct, bool writes_out, std::string path,
                   std::unique_ptr<ServerAdvice> servers)
      : fd_(std::move(fd)),
        is_direct_(is_direct),
        writes_out_(writes_out),
        told_(residence_told(fd_.get())),
        path_(std::move(path)),
        servers_(std::move(servers)) {}

  Result<Bytes> read(std::span<std::byte> into, Bytes offset) override {
    ssize_t moved = 0;
    do {
      moved = ::pread(fd_.get(), into.data(), into.size(), offset);
    } while (moved < 0 && errno == EINTR);
    if (moved < 0) return fail(errno, "fetch from " + path_);
    return moved;
  }

  std::optional<FileVersion> version() override { return version_of(fd_.get()); }
  Bytes resident(Extent extent) override { return resident_bytes(fd_.get(), extent, told_); }
  bool tells_residence() const override { return told_ != ResidenceTold::nothing; }
  Status advise(Extent extent, bool is_needed) override {
    const int failed = ::posix_fadvise(fd_.get(), extent.offset, extent.length,
                                       is_needed ? POSIX_FADV_WILLNEED : POSIX_FADV_DONTNEED);
    if (servers_ != nullptr) return servers_->advise(fd_.get(), extent, is_needed);
    if (failed != 0) return fail(failed, "advise on " + path_);
    return {};
  }
  Status write_out(Extent extent) override {
    if (writes_out_ || forebay::write_out(fd_.get(), extent)) return {};
    const int failed = errno;
    const bool is_lost = failed == EIO || failed == ENOSPC || failed == EDQUOT;
    if (is_lost) return fail(failed, "write out what was stored in " + path_);
    return {};  // It does not do so at all; the file's times are looked at with each read.
  }
  bool advises_servers() const override { return servers_ != nullptr; }
  int descriptor() const override { return fd_.get(); }
  bool is_direct() const override { return is_direct_; }

 private:
  const Descriptor fd_;
  const bool is_direct_;
  const bool writes_out_;  ///< Its reads do.
  const ResidenceTold told_;
  const std::string path_;
  const std::unique_ptr<ServerAdvice> servers_;  ///< Null where the kernel is all that there is.
};

}  // namespace

Result<std::int64_t> FetchSource::time_read(std::span<std::byte> into, Bytes offset) {
  const long waits = waits_of_thread();
  const auto begun = std::chrono::steady_clock::now();
  if (const auto moved = read(into, offset); !moved) return tl::unexpected(moved.error());
  if (!may_have_waited(waits)) return 0;
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - begun).count();
}

Result<std::unique_ptr<FetchSource>> open_fetch_source(int descriptor, const std::string& path,
                                                       Through way) {
  // The name may lead to another file by now; this link leads to the one that is open.
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  // Who asks that its reads leave the time of last access alone means ours, too.
  const int flags = O_RDONLY | O_CLOEXEC | (::fcntl(descriptor, F_GETFL) & O_NOATIME);
  int fd = -1;
  const auto alignment = told_direct_alignment(descriptor);
  if (way == Through::direct && suits_direct_io(alignment.value_or(direct_alignment))) {
    fd = ::open(link.c_str(), flags | O_DIRECT);
  }
  const bool is_direct = fd >= 0;
  if (fd < 0) fd = ::open(link.c_str(), flags);
  if (fd < 0) return fail(errno, "open once more " + path);
  // Doubles the kernel's limit for this descriptor; RANDOM after it leaves the limit as it is
  // (mm/fadvise.c).
  if (!is_direct && way != Through::page_cache) ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  // Our own reads through the page cache bring what they read, and nothing around it.
  if (!is_direct) ::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
  return std::make_unique<PosixFetchSource>(Descriptor(fd), is_direct, is_direct && alignment, path,
                                            server_advice_of(fd, link));
}

}  // namespace forebay
