#include "testbed/file_system.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <utility>

namespace forebay::testbed {
namespace {

constexpr unsigned max_write_bytes = 1u << 20;
// Asynchronous requests that may be outstanding. Far more than any window or queue would hold.
constexpr unsigned max_background_requests = 4096;

}  // namespace

void FileSystem::init(fuse_conn_info* connection) const {
  connection->max_write = max_write_bytes;
  connection->max_background = max_background_requests;
  connection->congestion_threshold = max_background_requests;
  // Bytes are copied once, from and to libfuse's buffers; pipes would only add system calls.
  connection->want &=
      ~static_cast<unsigned>(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
  if (parameters_.page_cache) {
    // What is cached stays so: the kernel would else drop it after each write, whose time it learns
    // later, and ask for the attributes at each read.
    connection->want &= ~static_cast<unsigned>(FUSE_CAP_AUTO_INVAL_DATA);
    // The kernel takes the lesser of this and what its read-ahead is set to by now.
    connection->max_readahead = std::numeric_limits<unsigned>::max();
  }
}

Result<std::unique_ptr<FileSystem>> FileSystem::open(const FileSystemParameters& parameters) {
  FileDescriptor root(::open(parameters.backing.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) {
    return fail(errno, "open directory " + parameters.backing);
  }
  return std::unique_ptr<FileSystem>(new FileSystem(parameters, std::move(root)));
}

FileSystem::FileSystem(const FileSystemParameters& parameters, FileDescriptor root)
    : parameters_(parameters),
      started_(ReplyTimer::now()),
      nodes_(std::move(root), root_node, first_backing_node),
      cluster_(parameters.cluster),
      timer_(std::make_unique<ReplyTimer>()) {}

const fuse_lowlevel_ops& FileSystem::operations() {
  // No getlk, setlk and flock: without them the kernel keeps the locks, which is right where all
  // clients are on one machine. No access: the mount option default_permissions checks.
  static const fuse_lowlevel_ops table = [] {
    fuse_lowlevel_ops ops{};
    ops.init = [](void* self, fuse_conn_info* connection) {
      static_cast<const FileSystem*>(self)->init(connection);
    };
    ops.lookup = call<&FileSystem::lookup>;
    ops.forget = call<&FileSystem::forget>;
    ops.getattr = call<&FileSystem::getattr>;
    ops.setattr = call<&FileSystem::setattr>;
    ops.readlink = call<&FileSystem::readlink>;
    ops.mknod = call<&FileSystem::mknod>;
    ops.mkdir = call<&FileSystem::mkdir>;
    ops.unlink = call<&FileSystem::unlink>;
    ops.rmdir = call<&FileSystem::rmdir>;
    ops.symlink = call<&FileSystem::symlink>;
    ops.rename = call<&FileSystem::rename>;
    ops.link = call<&FileSystem::link>;
    ops.open = call<static_cast<void (FileSystem::*)(fuse_req_t, fuse_ino_t, fuse_file_info*)>(
        &FileSystem::open)>;
    ops.read = call<&FileSystem::read>;
    ops.write = call<&FileSystem::write>;
    ops.flush = call<&FileSystem::flush>;
    ops.release = call<&FileSystem::release>;
    ops.fsync = call<&FileSystem::fsync>;
    ops.opendir = call<&FileSystem::opendir>;
    ops.readdir = call<&FileSystem::readdir>;
    ops.releasedir = call<&FileSystem::releasedir>;
    ops.statfs = call<&FileSystem::statfs>;
    ops.setxattr = call<&FileSystem::setxattr>;
    ops.getxattr = call<&FileSystem::getxattr>;
    ops.listxattr = call<&FileSystem::listxattr>;
    ops.removexattr = call<&FileSystem::removexattr>;
    ops.create = call<&FileSystem::create>;
    ops.forget_multi = call<&FileSystem::forget_multi>;
    ops.fallocate = call<&FileSystem::fallocate>;
    ops.lseek = call<&FileSystem::lseek>;
    return ops;
  }();
  return table;
}

State FileSystem::state(bool running) {
  State result;
  result.running = running;
  result.pid = ::getpid();
  result.mount = parameters_.mount;
  result.backing = parameters_.backing;
  result.parameters = parameters_.cluster;
  result.page_cache = parameters_.page_cache;
  if (parameters_.page_cache) {
    const auto read_ahead = read_ahead_ ? read_ahead_->bytes() : Result<Bytes>(0);
    result.read_ahead = read_ahead ? std::optional(*read_ahead) : std::nullopt;
  }
  const std::lock_guard lock(cluster_mutex_);
  const Time now = ReplyTimer::now();
  result.uptime_s = std::chrono::duration<double>(now - started_).count();
  result.servers = cluster_.counters(now);
  return result;
}

void FileSystem::finish() { timer_.reset(); }

}  // namespace forebay::testbed
