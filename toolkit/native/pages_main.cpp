// forebay-pages: sees in the kernel's page cache what the processes of a run read, also those that
// nothing can be preloaded into. It is what `forebay run --pages` starts: it writes down what they
// read, or, with an intent file, reads ahead of them. It says "ready", goes on until its standard
// input ends, and prints one line of JSON. Records are left in the directory FOREBAY_REPORT_DIR.

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/intercept/posix/complaint.hpp"
#include "core/intercept/posix/record_file.hpp"
#include "core/intercept/posix/trace_record.hpp"
#include "core/model/read_intent.hpp"
#include "core/storage/text_file.hpp"
#include "toolkit/native/opened_files.hpp"
#include "toolkit/native/page_events.hpp"
#include "toolkit/native/page_readers.hpp"
#include "toolkit/native/page_trace.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;

/// Between two looks: each in vain doubles it. Looking takes some system calls for each core.
constexpr milliseconds shortest_look{1};
constexpr milliseconds longest_look{32};

constexpr std::size_t most_names = 1 << 20;

/// What all files were called that were opened.
class Names {
 public:
  void add(const OpenedFiles::Opened& file) {
    if (names_.size() == most_names) return;
    Name& name = names_[file.version.id];
    name.path = file.path;
    name.size = file.version.size;
    name.was_written |= file.was_written;
  }

  /// Leaves records of all that may be read ahead; returns of how many files no name is known.
  int leave_records(const PageTrace& pages) const {
    int unnamed = 0;
    for (const auto& [key, trace] : pages.traces()) {
      const auto name = names_.find(key.file);
      if (name == names_.end()) {
        ++unnamed;
      } else if (!name->second.was_written && !is_program(name->second.path)) {
        posix::write_trace_record(name->second.path, name->second.size, trace);
      }
    }
    return unnamed;
  }

 private:
  struct Name {
    std::string path;
    Bytes size = 0;
    bool was_written = false;
  };

  /// A program or library (ELF), which the loader maps before anything could be read ahead.
  static bool is_program(const std::string& path) {
    std::array<char, 4> begin{};
    std::ifstream(path, std::ios::binary).read(begin.data(), begin.size());
    return begin == std::array<char, 4>{'\x7f', 'E', 'L', 'F'};
  }

  std::map<FileId, Name> names_;
};

/// Whether the run goes on, after having waited for `time`.
bool goes_on(milliseconds time) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (::poll(&input, 1, static_cast<int>(time.count())) <= 0) return true;
  char unread = 0;
  return ::read(STDIN_FILENO, &unread, 1) > 0;
}

template <typename Opened, typename Read>
void watch(OpenedFiles& files, PageEvents& events, Opened&& opened, Read&& read) {
  std::puts("ready");
  std::fflush(stdout);
  auto between = shortest_look;
  bool more = true;
  while (more) {
    more = goes_on(between);
    files.take(opened);
    between = events.take(read) > 0 ? shortest_look : std::min(2 * between, longest_look);
  }
}

/// Each file that is read ahead takes some, as long as the run goes on.
void allow_all_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Returns `status`.
int say(const Error& error, int status = 1) {
  std::fprintf(stderr, "%s\n", to_string(error).c_str());
  return status;
}

constexpr int wrong_intent = 2;

int run(int argc, char** argv) {
  CLI::App app("Sees what processes read in the kernel's page cache");
  pid_t parent = 0;
  std::string intent;
  app.add_option("--parent", parent, "Whose children")->required();
  app.add_option("--intent", intent, "Read ahead what this file declares");
  CLI11_PARSE(app, argc, argv);
  // The terminal's are for the command.
  for (const int number : {SIGINT, SIGQUIT, SIGHUP, SIGTERM}) ::signal(number, SIG_IGN);
  allow_all_descriptors();

  std::vector<ReadSection> sections;
  if (!intent.empty()) {
    const auto text = text_of(intent);
    if (!text) return say(text.error(), wrong_intent);
    auto found = read_sections(*text, intent);
    if (!found) return say(found.error(), wrong_intent);
    sections = *std::move(found);
  }
  auto files = OpenedFiles::begin();
  if (!files) return say(files.error());
  // Only what is written down has to be exact.
  auto events = PageEvents::begin(parent, intent.empty());
  if (!events) return say(events.error());

  int unnamed = 0;
  if (intent.empty()) {
    Names names;
    PageTrace pages;
    watch(
        **files, **events, [&](const auto& file) { names.add(file); },
        [&](const PageEvent& event) { pages.add(event); });
    unnamed = names.leave_records(pages);
  } else {
    PageReaders readers(std::move(sections));
    watch(
        **files, **events, [&](const auto& file) { readers.opened(file); },
        [&](const PageEvent& event) { readers.read(event); });
    readers.finish();
  }
  const nlohmann::json said = {{"lost", (*events)->lost()}, {"unnamed", unnamed}};
  std::puts(said.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  try {
    forebay::posix::know_error_stream();
    forebay::posix::know_report_directory();
    return forebay::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "forebay-pages: %s\n", error.what());
    return 1;
  }
}
