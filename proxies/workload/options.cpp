#include "proxies/workload/options.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <iostream>
#include <iterator>
#include <numeric>
#include <sstream>

namespace workload {
namespace {

Dimensions parse_dimensions(const std::string& text, std::size_t count) {
  Dimensions sizes;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    int size = 0;
    const auto [rest, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 1) break;
    sizes.push_back(size);
    if (rest == end) {
      if (sizes.size() == 1) sizes.resize(count, size);
      if (sizes.size() == count) return sizes;
      break;
    }
    if (*rest != 'x') break;
    at = rest + 1;
  }
  std::string form = "N";
  for (std::size_t i = 1; i < count; ++i) form += "xN";
  throw CLI::ValidationError("'" + text + "' is not of the form " + form +
                             " with sizes of at least 1");
}

}  // namespace

Options::Options(CLI::App& app) {
  app.option_defaults()->always_capture_default();
  app.add_option("PATH", path, "File to write and to read back (PATH.0, PATH.1, ... with --files)")
      ->required();
  app.add_option("--iterations", iterations_, "Write phases; by default one for each file")
      ->check(CLI::PositiveNumber)
      ->default_str("");
  app.add_option("--files", files, "Spread the iterations over this many files")
      ->check(CLI::PositiveNumber);
  app.add_option("--compute", compute_seconds,
                 "Seconds between two phases in which nothing is written (the processor sleeps)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seed", seed, "Seed of the data");
  app.add_option("--hints", hint_words_, "MPI_Info hints, as key=value,key=value; may be repeated")
      ->allow_extra_args(false)
      ->always_capture_default(false);
  app.add_flag("--read,!--no-read", read, "Read the file back (default)")->default_str("");
  app.add_flag("--verify,!--no-verify", verify, "Check every byte that was read (default)")
      ->default_str("");
  app.add_flag("--verify-only", verify_only, "Write nothing: read and check an earlier run's file");
  app.add_flag("--independent", independent, "Independent in place of collective data calls");
  app.add_flag("--cold", cold, "Drop the file from the page cache before reading it");
  app.parse_complete_callback([this] {
    for (const auto& word : hint_words_) {
      for (auto& hint : parse_hints(word)) hints.push_back(std::move(hint));
    }
    if (verify_only && !(read && verify)) {
      throw CLI::ValidationError("--verify-only", "excludes --no-read and --no-verify");
    }
    if (iterations() < files) {
      throw CLI::ValidationError("--files", "is more than --iterations: some would stay unwritten");
    }
  });
}

std::string Options::file_of(int iteration) const {
  return files == 1 ? path : path + "." + std::to_string(iteration % files);
}

int Options::last_iteration_of(int file) const {
  const int last = iterations() - 1;
  return last - (last - file) % files;
}

std::optional<int> parse(CLI::App& app, const Session& session, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream unheard;
    const bool speaks = session.rank() == 0;
    const int code = app.exit(error, speaks ? std::cout : unheard, speaks ? std::cerr : unheard);
    return code == 0 ? 0 : 2;
  }
  return std::nullopt;
}

CLI::Option* add_dimensions(CLI::App& app, const std::string& name, Dimensions& value,
                            std::size_t count, const std::string& description) {
  auto* option = app.add_option_function<std::string>(
      name, [&value, count](const std::string& text) { value = parse_dimensions(text, count); },
      description);
  option->type_name("SIZES");
  return value.empty() ? option : option->default_str(to_string(value));
}

CLI::Option* add_bytes(CLI::App& app, const std::string& name, std::uint64_t& value,
                       const std::string& description) {
  constexpr bool kb_is_1000 = true;
  // CLI11 would list every unit in --help after the type.
  return app.add_option(name, value, description)
      ->transform(CLI::AsSizeValue(kb_is_1000).description(""))
      ->check(CLI::PositiveNumber)
      ->type_name("BYTES");
}

std::string to_string(const Dimensions& dimensions) {
  std::string text;
  for (const int size : dimensions) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

std::int64_t volume(const Dimensions& dimensions) {
  return std::accumulate(dimensions.begin(), dimensions.end(), std::int64_t{1},
                         std::multiplies<>());
}

void settle_global(Dimensions& global, const Dimensions& grid, const Dimensions& local, int ranks) {
  if (volume(grid) != ranks) {
    throw CLI::ValidationError("--grid", to_string(grid) + " has " + std::to_string(volume(grid)) +
                                             " processes, but there are " + std::to_string(ranks) +
                                             " ranks");
  }
  if (global.empty()) {
    std::ranges::transform(local, grid, std::back_inserter(global), std::multiplies<>());
  }
  for (std::size_t d = 0; d < grid.size(); ++d) {
    if (global[d] < grid[d]) {
      throw CLI::ValidationError(
          "--global", to_string(global) + " is too small for the grid " + to_string(grid));
    }
  }
}

std::vector<std::pair<std::string, std::string>> parse_hints(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> hints;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto equals = word.find('=');
    if (equals != std::string::npos && equals > 0) {
      hints.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    } else if (!hints.empty()) {
      hints.back().second += "," + word;
    } else {
      throw CLI::ValidationError("--hints",
                                 "'" + text + "' is not of the form key=value,key=value");
    }
  }
  return hints;
}

}  // namespace workload
