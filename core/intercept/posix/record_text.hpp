#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace forebay::posix {

/// A JSON object, written value by value. A tree of nlohmann's wants memory when it is destroyed,
/// too, where a failure would end the program.
class RecordText {
 public:
  /// A number or a text. What is no UTF-8 in it is replaced.
  void add(std::string_view key, const nlohmann::json& value) { add_written(key, written(value)); }

  /// What is JSON already.
  void add_written(std::string_view key, std::string_view value) {
    text_ += text_.empty() ? "{\"" : ",\n \"";
    text_.append(key).append("\": ").append(value);
  }

  /// Ends it.
  std::string take() { return std::move(text_ += "}\n"); }

  static std::string written(const nlohmann::json& value) {
    return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

 private:
  std::string text_;
};

}  // namespace forebay::posix
