// NAME [options] PATH: CLI11 behind a few plain functions, because each source that reads its
// headers takes ten seconds to compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "proxies/workload/dimensions.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace workload {

/// Thrown by a CommandLine's check: the value of `option` cannot be used, for this reason.
class Refused : public std::runtime_error {
 public:
  Refused(std::string option, const std::string& reason)
      : std::runtime_error(reason), option_(std::move(option)) {}
  const std::string& option() const { return option_; }

 private:
  std::string option_;
};

/// What may be said of an option that was added. Valid as long as its command line.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(option) {}

  Option& required();
  Option& positive();
  Option& not_negative();
  Option& between(std::int64_t lowest, std::int64_t highest);
  Option& one_of(std::initializer_list<const char*> words);
  /// Not together with the option of that name, which was added before.
  Option& excludes(const std::string& name);
  /// --help names no default.
  Option& no_default_shown();

 private:
  CLI::Option& option_;
};

class CommandLine {
 public:
  /// `about` and `examples` stand at the beginning and at the end of --help.
  CommandLine(const std::string& about, const std::string& examples);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Options whose value goes into `value`, which must live until parse() and holds the default.
  Option add(const std::string& name, int& value, const std::string& help);
  Option add(const std::string& name, std::uint64_t& value, const std::string& help);
  Option add(const std::string& name, double& value, const std::string& help);
  Option add(const std::string& name, std::string& value, const std::string& help);

  /// One that may be repeated; each time it takes one word.
  Option add_words(const std::string& name, std::vector<std::string>& words,
                   const std::string& help);

  /// `--name`, or `--name,!--no-name` for one that can be switched off.
  Option add_flag(const std::string& name, bool& value, const std::string& help);

  /// One that takes bytes: `8`, `64KiB`, `1MB`.
  Option add_bytes(const std::string& name, std::uint64_t& value, const std::string& help);

  /// One that takes `64` or `64x32x16`; one number stands for all `count` dimensions.
  Option add_dimensions(const std::string& name, Dimensions& value, std::size_t count,
                        const std::string& help);

  /// Calls `check` when all words are parsed, in the order of adding; it may throw Refused.
  void add_check(std::function<void()> check);

  /// Parses the words. A value means that main() must return it at once: 0 after --help, 2 after an
  /// error. Both are told only if `speaks`, which is for one rank of a job.
  std::optional<int> parse(int argc, char** argv, bool speaks);

 private:
  std::unique_ptr<CLI::App> app_;
  std::vector<std::function<void()>> checks_;
};

}  // namespace workload
