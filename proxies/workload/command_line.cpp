#include "proxies/workload/command_line.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
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

Option& Option::required() {
  option_.required();
  return *this;
}

Option& Option::positive() {
  option_.check(CLI::PositiveNumber);
  return *this;
}

Option& Option::not_negative() {
  option_.check(CLI::NonNegativeNumber);
  return *this;
}

Option& Option::between(std::int64_t lowest, std::int64_t highest) {
  option_.check(CLI::Range(lowest, highest));
  return *this;
}

Option& Option::one_of(std::initializer_list<const char*> words) {
  option_.check(CLI::IsMember(std::vector<std::string>(words.begin(), words.end())));
  return *this;
}

Option& Option::excludes(const std::string& name) {
  option_.excludes(name);
  return *this;
}

Option& Option::no_default_shown() {
  option_.default_str("");
  return *this;
}

CommandLine::CommandLine(const std::string& about, const std::string& examples)
    : app_(std::make_unique<CLI::App>(about)) {
  app_->footer(examples);
  app_->option_defaults()->always_capture_default();
  app_->callback([this] {
    try {
      for (const auto& check : checks_) check();
    } catch (const Refused& refused) {
      throw CLI::ValidationError(refused.option(), refused.what());
    }
  });
}

CommandLine::~CommandLine() = default;

Option CommandLine::add(const std::string& name, int& value, const std::string& help) {
  return Option(*app_->add_option(name, value, help));
}

Option CommandLine::add(const std::string& name, std::uint64_t& value, const std::string& help) {
  return Option(*app_->add_option(name, value, help));
}

Option CommandLine::add(const std::string& name, double& value, const std::string& help) {
  return Option(*app_->add_option(name, value, help));
}

Option CommandLine::add(const std::string& name, std::string& value, const std::string& help) {
  return Option(*app_->add_option(name, value, help));
}

Option CommandLine::add_words(const std::string& name, std::vector<std::string>& words,
                              const std::string& help) {
  auto* option = app_->add_option(name, words, help);
  return Option(*option->allow_extra_args(false)->always_capture_default(false));
}

Option CommandLine::add_flag(const std::string& name, bool& value, const std::string& help) {
  return Option(*app_->add_flag(name, value, help));
}

Option CommandLine::add_bytes(const std::string& name, std::uint64_t& value,
                              const std::string& help) {
  constexpr bool kb_is_1000 = true;
  // CLI11 would list every unit in --help after the type.
  return Option(*app_->add_option(name, value, help)
                     ->transform(CLI::AsSizeValue(kb_is_1000).description(""))
                     ->type_name("BYTES"));
}

Option CommandLine::add_dimensions(const std::string& name, Dimensions& value, std::size_t count,
                                   const std::string& help) {
  auto* option = app_->add_option_function<std::string>(
      name, [&value, count](const std::string& text) { value = parse_dimensions(text, count); },
      help);
  option->type_name("SIZES");
  if (!value.empty()) option->default_str(to_string(value));
  return Option(*option);
}

void CommandLine::add_check(std::function<void()> check) { checks_.push_back(std::move(check)); }

std::optional<int> CommandLine::parse(int argc, char** argv, bool speaks) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream unheard;
    const int code = app_->exit(error, speaks ? std::cout : unheard, speaks ? std::cerr : unheard);
    return code == 0 ? 0 : 2;
  }
  return std::nullopt;
}

}  // namespace workload
