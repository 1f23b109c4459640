#include "core/intercept/mpi/file_record.hpp"

#include <mpi.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "core/intercept/record_file.hpp"

namespace forebay {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// The type of the file system that holds `path` ("ext4"), from the mount table; the file may be
/// gone already, then its directory is asked.
std::string file_system_of(const std::filesystem::path& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0 && stat(path.parent_path().c_str(), &status) != 0) {
    return "unknown";
  }
  const std::string device =
      std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, line_device;
    words >> id >> parent >> line_device;
    const auto dash = line.find(" - ");
    if (line_device != device || dash == std::string::npos) continue;
    const auto first = dash + 3;
    return line.substr(first, line.find(' ', first) - first);
  }
  return "unknown";
}

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  PMPI_Get_library_version(text.data(), &length);
  const std::string version(text.data());
  return version.substr(0, version.find('\n'));
}

constexpr std::size_t class_count = call_class_names.size();

/// One rank's figures as they are reduced: seconds as nanoseconds.
struct Figures {
  std::vector<std::int64_t> sums;
  std::vector<std::int64_t> maxima;
};

/// Sums: time and calls per class, every counter, the kernel's four. Maxima: time per class
/// and per group of classes, every counter, and last whether any rank has something to tell in
/// words. Which of the two a counter uses is chosen when the record is written.
Figures combine(const FileRecord& record, const KernelIo& storage, bool has_words,
                Exchange& exchange) {
  Figures figures;
  for (std::size_t c = 0; c < class_count; ++c) {
    figures.sums.push_back(record.times.elapsed_ns(c));
    figures.maxima.push_back(record.times.elapsed_ns(c));
  }
  for (const CallGroup& group : call_groups::list) {
    figures.maxima.push_back(record.times.elapsed_ns(group.classes));
  }
  for (std::size_t c = 0; c < class_count; ++c) figures.sums.push_back(record.times.calls(c));
#define FOREBAY_COLLECT(name, combine, meaning) \
  figures.sums.push_back(record.counters.name); \
  figures.maxima.push_back(record.counters.name);
  FOREBAY_COUNTERS(FOREBAY_COLLECT)
#undef FOREBAY_COLLECT
  for (const std::int64_t value :
       {storage.read_calls, storage.write_calls, storage.read_bytes, storage.write_bytes}) {
    figures.sums.push_back(value);
  }
  figures.maxima.push_back(has_words);
  exchange.all_reduce(figures.sums, Reduce::sum);
  exchange.all_reduce(figures.maxima, Reduce::max);
  return figures;
}

/// Texts of one kind that a rank, and a record, keep apart; a file with thousands has said enough.
constexpr std::size_t most_texts = 16;
constexpr const char* more_failures = "further failures";

constexpr const char* more_notes = "further notes";

template <typename Counts>
void add(OrderedJson& total, const Counts& counts, const char* more) {
  for (const auto& [what, count] : counts.items()) {
    const std::string& key = total.contains(what) || total.size() < most_texts ? what : more;
    total[key] = total.value(key, std::int64_t{0}) + count.template get<std::int64_t>();
  }
}

/// What a rank has to tell in words: reasons for passing calls through, failures, and notes, each
/// with how often.
using Words = std::array<OrderedJson, 3>;

/// Those of all ranks, added up.
Words combine_words(const Words& mine, Exchange& exchange) {
  Words total = {OrderedJson::object(), OrderedJson::object(), OrderedJson::object()};
  const std::vector<std::uint8_t> packed = OrderedJson::to_msgpack(mine);
  for (const auto& part : exchange.all_gather_varying(std::as_bytes(std::span(packed)))) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(part.data());
    const OrderedJson words = OrderedJson::from_msgpack(begin, begin + part.size());
    for (std::size_t i = 0; i < total.size(); ++i) {
      add(total[i], words[i], i == 2 ? more_notes : more_failures);
    }
  }
  return total;
}

/// Leaves a record; told on standard error if it cannot be done.
void publish(const std::string& directory, const OrderedJson& json, const char* ending) {
  // Paths and hints may hold any bytes; the record is UTF-8.
  const std::string content =
      json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  if (const Status done = put_record(directory, content, ending); !done) {
    // Once: a program may close thousands of files.
    static std::once_flag said;
    std::call_once(said,
                   [&] { std::fprintf(stderr, "forebay: %s\n", to_string(done.error()).c_str()); });
  }
}

}  // namespace

std::vector<std::string> amode_names(int amode) {
  struct Name {
    int bit;
    const char* name;
  };
  static constexpr Name names[] = {
      {MPI_MODE_RDONLY, "RDONLY"},
      {MPI_MODE_WRONLY, "WRONLY"},
      {MPI_MODE_RDWR, "RDWR"},
      {MPI_MODE_CREATE, "CREATE"},
      {MPI_MODE_EXCL, "EXCL"},
      {MPI_MODE_DELETE_ON_CLOSE, "DELETE_ON_CLOSE"},
      {MPI_MODE_UNIQUE_OPEN, "UNIQUE_OPEN"},
      {MPI_MODE_SEQUENTIAL, "SEQUENTIAL"},
      {MPI_MODE_APPEND, "APPEND"},
  };
  std::vector<std::string> result;
  for (const Name& name : names) {
    if ((amode & name.bit) != 0) result.emplace_back(name.name);
  }
  return result;
}

void FileRecord::count_passed_through(std::string_view reason) {
  const std::lock_guard lock(mutex_);
  const auto found = passed_through_.find(reason);
  if (found != passed_through_.end()) {
    ++found->second;
  } else {
    passed_through_.emplace(reason, 1);
  }
}

void FileRecord::count_failure(const std::string& what) {
  const std::lock_guard lock(mutex_);
  const bool known = failures_.contains(what) || failures_.size() < most_texts;
  ++failures_[known ? what : more_failures];
}

void FileRecord::add_storage(const KernelIo& io) {
  const std::lock_guard lock(mutex_);
  storage_ += io;
}

void write_report(const FileRecord& record, Exchange& exchange, const std::string& directory) {
  Words words = {record.passed_through_, record.failures_, OrderedJson::object()};
  for (const auto* notes : {&record.notes, &record.cache_notes}) {
    for (const std::string& note : *notes) words[2][note] = 1;
  }
  const auto is_empty = [](const OrderedJson& some) { return some.empty(); };
  const Figures figures =
      combine(record, record.storage_, !std::ranges::all_of(words, is_empty), exchange);
  if (figures.maxima.back() != 0) words = combine_words(words, exchange);
  if (exchange.rank() != 0) return;

  const bool engine = record.mode == Mode::engine;
  OrderedJson json;
  json["version"] = 1;
  json["opening"] = record.opening;
  json["path"] = record.path;
  json["mode"] = engine ? "engine" : "observe";
  json["mpi"] = FOREBAY_MPI_NAME;
  json["mpi_version"] = library_version();
  json["amode"] = amode_names(record.amode);
  json["ranks"] = record.ranks;
  json["nodes"] = record.nodes;
  json["aggregators"] = record.aggregators;
  json["file_system"] = file_system_of(record.path);
  json["stripe_size"] = record.layout.stripe_size;
  json["stripe_count"] = record.layout.servers;
  auto sum = figures.sums.begin();
  auto maximum = figures.maxima.begin();
  constexpr double seconds_per_ns = 1e-9;
  for (const std::string_view name : call_class_names) {
    json["seconds"][std::string(name)] = {{"max", static_cast<double>(*maximum++) * seconds_per_ns},
                                          {"sum", static_cast<double>(*sum++) * seconds_per_ns}};
  }
  for (const CallGroup& group : call_groups::list) {
    json["seconds_together"][std::string(group.name)] =
        static_cast<double>(*maximum++) * seconds_per_ns;
  }
  for (const std::string_view name : call_class_names) json["calls"][std::string(name)] = *sum++;
  OrderedJson counters;
#define FOREBAY_TELL(name, combine, meaning)                               \
  counters[#name] = std::string_view(#combine) == "sum" ? *sum : *maximum; \
  ++sum;                                                                   \
  ++maximum;
  FOREBAY_COUNTERS(FOREBAY_TELL)
#undef FOREBAY_TELL
  if (engine) json["counters"] = counters;
  json["storage"] = nullptr;
  if (settings().count_storage) {
    json["storage"] = {{"read_calls", sum[0]},
                       {"write_calls", sum[1]},
                       {"read_bytes", sum[2]},
                       {"write_bytes", sum[3]}};
  }
  json["hints"] = OrderedJson::object();
  for (const auto& [key, value] : record.hints) json["hints"][key] = value;
  json["hint_problems"] = record.hint_problems;
  json["passed_through"] = words[0];
  json["failures"] = words[1];
  std::vector<std::string> notes = record.engine_notes;
  for (const auto& [note, count] : words[2].items()) notes.push_back(note);
  json["notes"] = notes;

  publish(directory, json, ".json");
}

void write_cached_mark(const FileRecord& record, const std::optional<std::string>& log_path,
                       const std::string& directory) {
  OrderedJson json;
  json["version"] = 1;
  json["path"] = record.path;
  json["log_path"] = nullptr;
  if (log_path) json["log_path"] = *log_path;
  publish(directory, json, ".cached");
}

LateCounters late_counters(const Counters& counters) {
  return {counters.cache_drained, counters.cache_log_bytes, counters.cache_exposed_ns};
}

void write_late_report(const FileRecord& record, const LateCounters& grown,
                       const std::string& directory) {
  OrderedJson json;
  json["version"] = 1;
  json["opening"] = record.opening;
  json["counters"] = {{"cache_drained", grown.drained},
                      {"cache_log_bytes", grown.log_bytes},
                      {"cache_exposed_ns", grown.exposed_ns}};
  publish(directory, json, ".late.json");
}

}  // namespace forebay
