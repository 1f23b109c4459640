#include "proxies/workload/options.hpp"

#include <sstream>

namespace workload {
namespace {

/// Splits `key=value,key=value`; a comma that no `key=` follows belongs to the value, as in
/// `cb_config_list=*:1,*:2`. Throws Refused if there is no `=`.
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
      throw Refused("--hints", "'" + text + "' is not of the form key=value,key=value");
    }
  }
  return hints;
}

}  // namespace

Options::Options(CommandLine& line) {
  line.add("PATH", path, "File to write and to read back (PATH.0, PATH.1, ... with --files)")
      .required();
  line.add("--iterations", iterations_, "Write phases; by default one for each file")
      .positive()
      .no_default_shown();
  line.add("--files", files, "Spread the iterations over this many files").positive();
  line.add("--compute", compute_seconds,
           "Seconds between two phases in which nothing is written (the processor sleeps)")
      .not_negative();
  line.add("--seed", seed, "Seed of the data");
  line.add_words("--hints", hint_words_, "MPI_Info hints, as key=value,key=value; may be repeated");
  line.add_flag("--read,!--no-read", read, "Read the file back (default)").no_default_shown();
  line.add_flag("--verify,!--no-verify", verify, "Check every byte that was read (default)")
      .no_default_shown();
  line.add_flag("--verify-only", verify_only,
                "Write nothing: read and check an earlier run's file");
  line.add_flag("--independent", independent, "Independent in place of collective data calls");
  line.add_flag("--sync", sync, "MPI_File_sync before a file that was written is closed");
  line.add_flag("--cold", cold, "Drop the file from the page cache before reading it");
  line.add_check([this] {
    for (const auto& word : hint_words_) {
      for (auto& hint : parse_hints(word)) hints.push_back(std::move(hint));
    }
    if (verify_only && !(read && verify)) {
      throw Refused("--verify-only", "excludes --no-read and --no-verify");
    }
    if (iterations() < files) {
      throw Refused("--files", "is more than --iterations: some would stay unwritten");
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

}  // namespace workload
