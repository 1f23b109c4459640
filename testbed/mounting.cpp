#include "testbed/mounting.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "testbed/fuse_api.hpp"
#include "testbed/state_writer.hpp"

namespace forebay::testbed {
namespace {

namespace fs = std::filesystem;

// Backing calls take microseconds, and no thread waits for a reply to be due.
constexpr unsigned max_threads = 8;

bool is_testbed(const std::string& path) {
  return ::getxattr(path.c_str(), stripe_attribute_name, nullptr, 0) >= 0;
}

bool lies_within(const fs::path& inner, const fs::path& outer) {
  const fs::path relative = inner.lexically_relative(outer);
  return !relative.empty() && *relative.begin() != "..";
}

Error refuse(std::string what) { return {ErrorKind::invalid_argument, 0, std::move(what)}; }

/// The kernel keeps a node, and so this process a descriptor, for every file it remembers.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

sigset_t signals_for_threads_to_leave() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) ::sigaddset(&set, signal);
  return set;
}

/// Before the first request is served: the kernel keeps what is set then.
Status settle_read_ahead(const FileSystemParameters& parameters, FileSystem& file_system) {
  if (!parameters.page_cache) return {};
  const auto read_ahead = ReadAhead::of(parameters.mount);
  if (!read_ahead) return tl::unexpected(read_ahead.error());
  if (parameters.read_ahead) {
    const Status set = read_ahead->set(*parameters.read_ahead);
    if (!set) return set;
  }
  file_system.mounted(*read_ahead);
  return {};
}

struct SessionDeleter {
  void operator()(fuse_session* session) const { fuse_session_destroy(session); }
};

struct LoopConfigDeleter {
  void operator()(fuse_loop_config* config) const { fuse_loop_cfg_destroy(config); }
};

}  // namespace

Status check_directories(std::string& backing, std::string& mount) {
  std::error_code error;
  fs::path absolute[2];
  std::string* const given[2] = {&backing, &mount};
  for (int i = 0; i < 2; ++i) {
    absolute[i] = fs::canonical(*given[i], error);
    if (error == std::errc::not_connected) {
      return tl::unexpected(refuse(fmt::format(
          "{0} is the mount of a file system that has died; free it: fusermount3 -u {0}",
          *given[i])));
    }
    if (error || !fs::is_directory(absolute[i], error)) {
      return tl::unexpected(
          refuse(fmt::format("{0} is not a directory; make it: mkdir -p {0}", *given[i])));
    }
    *given[i] = absolute[i].string();
  }
  if (lies_within(absolute[0], absolute[1]) || lies_within(absolute[1], absolute[0])) {
    return tl::unexpected(
        refuse("the backing directory and the mount point must lie outside each other"));
  }
  if (is_testbed(mount)) {
    return tl::unexpected(
        refuse(fmt::format("{0} is a testbed already; end it: fusermount3 -u {0}", mount)));
  }
  return {};
}

Status serve(const FileSystemParameters& parameters, const std::string& state_path,
             const std::function<void()>& mounted) {
  raise_descriptor_limit();
  ::umask(0);  // the kernel has applied the requester's
  // The threads made here leave signals to this one and to the state writer.
  const sigset_t signals = signals_for_threads_to_leave();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  auto file_system = FileSystem::open(parameters);
  if (!file_system) return tl::unexpected(file_system.error());

  std::string options = "default_permissions,subtype=forebay-testbed,fsname=forebay-testbed";
  if (::geteuid() == 0) options += ",allow_other";
  char program[] = "forebay-testbedfs";
  char dash_o[] = "-o";
  char* arguments[] = {program, dash_o, options.data(), nullptr};
  fuse_args args = FUSE_ARGS_INIT(3, arguments);
  // libfuse has said on stderr what is wrong where one of its calls fails.
  const std::unique_ptr<fuse_session, SessionDeleter> session(fuse_session_new(
      &args, &FileSystem::operations(), sizeof(fuse_lowlevel_ops), file_system->get()));
  fuse_opt_free_args(&args);
  if (!session || fuse_session_mount(session.get(), parameters.mount.c_str()) != 0) {
    return tl::unexpected(Error{ErrorKind::io, 0, "cannot mount on " + parameters.mount});
  }

  const Status read_ahead = settle_read_ahead(parameters, **file_system);
  if (!read_ahead) {
    fuse_session_unmount(session.get());
    return read_ahead;
  }

  int ended = -1;
  {
    std::optional<StateWriter> state_writer;
    if (!state_path.empty()) {
      state_writer.emplace(state_path, [&] { return to_json((*file_system)->state(true)); });
    }
    if (fuse_set_signal_handlers(session.get()) == 0) {
      sigset_t to_handle = signals;
      ::sigdelset(&to_handle, SIGUSR1);
      ::pthread_sigmask(SIG_UNBLOCK, &to_handle, nullptr);
      mounted();
      const std::unique_ptr<fuse_loop_config, LoopConfigDeleter> config(fuse_loop_cfg_create());
      fuse_loop_cfg_set_max_threads(config.get(), max_threads);
      fuse_loop_cfg_set_idle_threads(config.get(), max_threads);
      ended = fuse_session_loop_mt(session.get(), config.get());
      fuse_remove_signal_handlers(session.get());
    }
  }
  (*file_system)->finish();
  fuse_session_unmount(session.get());
  if (!state_path.empty()) {
    const Status written = replace_file(state_path, to_json((*file_system)->state(false)));
    if (!written) return written;
  }
  // Positive: ended by that signal.
  if (ended < 0) return tl::unexpected(Error{ErrorKind::io, -ended, "serve " + parameters.mount});
  return {};
}

int in_background(const std::string& mount,
                  const std::function<int(const std::function<void()>&)>& serve_foreground) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    std::perror("forebay-testbedfs: pipe");
    return 1;
  }
  FileDescriptor listen(ends[0]);
  FileDescriptor tell(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) {
    std::perror("forebay-testbedfs: fork");
    return 1;
  }
  if (child == 0) {
    listen = FileDescriptor();
    ::setsid();
    const int root = ::chdir("/");
    const int status = serve_foreground([&] {
      // Whoever reads our output must see its end; what libfuse would still say has no reader.
      const FileDescriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
      for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        ::dup2(null.get(), standard);
      }
      [[maybe_unused]] const ssize_t told = ::write(tell.get(), "m", 1);
      tell = FileDescriptor();
    });
    ::_exit(root == 0 ? status : 1);
  }
  tell = FileDescriptor();
  char byte = 0;
  // Our end of the pipe alone is left here, so a child that dies ends the wait.
  if (::read(listen.get(), &byte, 1) == 1) {
    if (is_testbed(mount)) return 0;
    fmt::print(stderr, "forebay-testbedfs: {} is mounted and does not answer\n", mount);
    return 1;
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : 1;
}

}  // namespace forebay::testbed
