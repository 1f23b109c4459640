#include "toolkit/native/page_events.hpp"

#include <event-parse.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>
extern "C" {
#include <kbuffer.h>
}
#include <linux/magic.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/storage/text_file.hpp"

namespace forebay {
namespace {

constexpr const char* tracefs = "/sys/kernel/tracing";

struct Named {
  const char* system;
  std::string_view name;
  PageEvent::Kind kind;
  bool is_always_wanted;
};
constexpr std::array<Named, 5> kinds{{
    {"filemap", "mm_filemap_get_pages", PageEvent::Kind::read, true},
    {"filemap", "mm_filemap_fault", PageEvent::Kind::fault, true},
    {"filemap", "mm_filemap_map_pages", PageEvent::Kind::around, true},
    {"filemap", "mm_filemap_add_to_page_cache", PageEvent::Kind::added, false},
    {"task", "task_newtask", PageEvent::Kind::began, false},
}};

/// Of each core: 100,000 events and more between two calls of take().
constexpr const char* buffer_kib = "8192";

tl::unexpected<Error> not_done(const std::string& doing) {
  const bool is_forbidden = errno == EACCES || errno == EPERM;
  return fail(errno, is_forbidden ? doing + " (which takes root)" : doing);
}

bool is_mounted() {
  struct statfs status{};
  return ::statfs(tracefs, &status) == 0 && status.f_type == TRACEFS_MAGIC;
}

Status write_to(const std::string& path, std::string_view text) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid() || ::write(file.get(), text.data(), text.size()) < 0) {
    return not_done("write " + path);
  }
  return {};
}

std::string event_place(const Named& known) {
  return std::string("events/") + known.system + "/" + std::string(known.name);
}

/// The kernel's own form of a device, which stat() does not show.
std::uint64_t device_of(std::uint64_t kernel) {
  constexpr unsigned minor_bits = 20;
  return makedev(static_cast<unsigned>(kernel >> minor_bits),
                 static_cast<unsigned>(kernel & ((1U << minor_bits) - 1)));
}

/// None: it is no event of ours.
std::optional<PageEvent> event_in(tep_handle* formats, tep_record& record) {
  tep_event* event = tep_find_event_by_record(formats, &record);
  if (event == nullptr) return std::nullopt;
  const auto known = std::ranges::find(kinds, std::string_view(event->name), &Named::name);
  if (known == kinds.end()) return std::nullopt;
  const auto value = [&](const char* name) {
    unsigned long long found = 0;
    tep_format_field* field = tep_find_field(event, name);
    if (field != nullptr) tep_read_number_field(field, record.data, &found);
    return static_cast<std::uint64_t>(found);
  };
  const pid_t thread = tep_data_pid(formats, &record);
  if (known->kind == PageEvent::Kind::began) {
    return PageEvent{.kind = known->kind,
                     .file = {},
                     .extent = {},
                     .thread = thread,
                     .made = static_cast<pid_t>(value("pid")),
                     .is_of_process = (value("clone_flags") & CLONE_THREAD) != 0};
  }
  const Bytes page = ::sysconf(_SC_PAGESIZE);
  const auto first = static_cast<Bytes>(value("index"));
  Bytes last = first;
  if (known->kind == PageEvent::Kind::added) {
    last += (Bytes{1} << value("order")) - 1;
  } else if (known->kind != PageEvent::Kind::fault) {
    last = static_cast<Bytes>(value("last_index"));
  }
  return PageEvent{known->kind,
                   {device_of(value("s_dev")), value("i_ino")},
                   {first * page, (last - first + 1) * page},
                   thread};
}

}  // namespace

Result<std::unique_ptr<PageEvents>> PageEvents::begin(pid_t parent, bool with_all) {
  std::unique_ptr<PageEvents> events(new PageEvents(parent, with_all));
  const Status done = events->set_up();
  if (!done) return tl::unexpected(done.error());
  return events;
}

Status PageEvents::set_up() {
  if (!is_mounted()) {
    if (::mount("nodev", tracefs, "tracefs", 0, nullptr) != 0) return not_done("mount tracefs");
    is_mounted_ = true;
  }
  Status done = read_formats();
  if (!done) return done;
  const std::string instance =
      std::string(tracefs) + "/instances/forebay-" + std::to_string(::getpid());
  if (::mkdir(instance.c_str(), 0700) != 0) return not_done("make " + instance);
  instance_ = instance;
  const std::array<std::pair<std::string, std::string>, 3> settings{{
      {"buffer_size_kb", buffer_kib},
      {"set_event_pid", std::to_string(parent_)},
      {"options/event-fork", "1"},
  }};
  for (const auto& [name, value] : settings) {
    if (done = write_to(place(name), value); !done) return done;
  }
  if (done = open_buffers(); !done) return done;
  for (const Named& known : kinds) {
    if (!known.is_always_wanted && !with_all_) continue;
    if (done = write_to(place(event_place(known) + "/enable"), "1"); !done) return done;
  }
  return {};
}

Status PageEvents::read_formats() {
  formats_ = tep_alloc();
  page_ = kbuffer_alloc(KBUFFER_LSIZE_SAME_AS_HOST, KBUFFER_ENDIAN_SAME_AS_HOST);
  if (formats_ == nullptr || page_ == nullptr) return fail(ENOMEM, "read formats of tracepoints");
  auto header = text_of(std::string(tracefs) + "/events/header_page");
  if (!header) return tl::unexpected(header.error());
  tep_parse_header_page(formats_, header->data(), header->size(), sizeof(long));
  for (const Named& known : kinds) {
    const std::string path = std::string(tracefs) + "/" + event_place(known) + "/format";
    const auto format = text_of(path);
    if (!format || format->empty()) {
      errno = format ? ENOENT : format.error().os_errno;
      if (errno != ENOENT) return not_done("read " + path);
      return tl::unexpected(Error{ErrorKind::unsupported, 0,
                                  std::string("this kernel has no tracepoint ") + known.system +
                                      ":" + std::string(known.name)});
    }
    if (tep_parse_event(formats_, format->data(), format->size(), known.system) != 0) {
      return tl::unexpected(Error{ErrorKind::unsupported, 0, path + " is not understood"});
    }
  }
  return {};
}

Status PageEvents::open_buffers() {
  content_.resize(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  const long cores = ::sysconf(_SC_NPROCESSORS_CONF);
  for (long core = 0; core < cores; ++core) {
    const std::string path = place("per_cpu/cpu" + std::to_string(core) + "/trace_pipe_raw");
    Descriptor buffer(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!buffer.valid() && errno == ENOENT) continue;  // It is not there, and may come.
    if (!buffer.valid()) return not_done("open " + path);
    cores_.push_back(std::move(buffer));
  }
  return {};
}

PageEvents::~PageEvents() {
  cores_.clear();
  if (!instance_.empty()) ::rmdir(instance_.c_str());
  kbuffer_free(page_);
  tep_free(formats_);
  if (is_mounted_) ::umount(tracefs);  // Who uses it meanwhile keeps it.
}

std::int64_t PageEvents::take(const std::function<void(const PageEvent&)>& seen) {
  std::vector<std::pair<std::uint64_t, PageEvent>> found;
  for (const Descriptor& core : cores_) {
    while (::read(core.get(), content_.data(), content_.size()) > 0) take_page(found);
  }
  std::ranges::stable_sort(found, {}, [](const auto& one) { return one.first; });
  for (const auto& [time, event] : found) seen(event);
  return static_cast<std::int64_t>(found.size());
}

void PageEvents::take_page(std::vector<std::pair<std::uint64_t, PageEvent>>& found) {
  if (kbuffer_load_subbuffer(page_, content_.data()) != 0) return;
  const int missed = kbuffer_missed_events(page_);
  if (missed != 0) lost_ += std::max(missed, 1);
  unsigned long long time = 0;
  for (void* data = kbuffer_read_event(page_, &time); data != nullptr;
       data = kbuffer_next_event(page_, &time)) {
    tep_record record{};
    record.data = data;
    record.size = kbuffer_event_size(page_);
    const auto event = event_in(formats_, record);
    if (event && event->thread != parent_) found.emplace_back(time, *event);
  }
}

}  // namespace forebay
