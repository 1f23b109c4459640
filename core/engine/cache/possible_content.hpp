#pragma once

#include <bitset>
#include <cstddef>
#include <string>
#include <vector>

#include "core/model/extent.hpp"

namespace forebay {

/// For tests: which values every byte of a file may have after a crash.
class PossibleContent {
 public:
  using Values = std::bitset<256>;
  static Values only(std::byte value) { return Values().set(std::to_integer<std::size_t>(value)); }

  explicit PossibleContent(std::size_t size) : values_(size, only(std::byte{0})) {}

  std::size_t size() const { return values_.size(); }
  Values& at(std::size_t place) { return values_[place]; }

  /// It returned an error, or was not synced: any of it may be there.
  void may_be_written(Bytes offset, std::size_t length, std::byte value) {
    for (std::size_t i = 0; i < length; ++i) at(place(offset) + i) |= only(value);
  }
  /// It was acknowledged, and nothing that was acknowledged may be lost.
  void written(Bytes offset, std::size_t length, std::byte value) {
    for (std::size_t i = 0; i < length; ++i) at(place(offset) + i) = only(value);
  }
  /// One or the other, as it was acknowledged or not.
  void tried(bool acknowledged, Bytes offset, std::size_t length, std::byte value) {
    acknowledged ? written(offset, length, value) : may_be_written(offset, length, value);
  }
  /// What of `content`, which was found at `offset`, differs from all that may be there.
  std::string wrong_at(Bytes offset, const std::vector<std::byte>& content) const {
    for (std::size_t i = 0; i < content.size(); ++i) {
      const std::size_t at = place(offset) + i;
      if (at >= values_.size()) return "the file is too long";
      if (!values_[at][std::to_integer<std::size_t>(content[i])]) return wrong_byte(at, content[i]);
    }
    return "";
  }
  /// The same of all of the file, which may be shorter by zeros.
  std::string wrong(std::vector<std::byte> content) const {
    if (content.size() < values_.size()) content.resize(values_.size());
    return wrong_at(0, content);
  }

 private:
  static std::size_t place(Bytes offset) { return static_cast<std::size_t>(offset); }
  std::string wrong_byte(std::size_t at, std::byte found) const {
    std::string text = "byte " + std::to_string(at) + " is " +
                       std::to_string(std::to_integer<int>(found)) + " and may be";
    for (std::size_t value = 0; value < values_[at].size(); ++value) {
      if (values_[at][value]) text += " " + std::to_string(value);
    }
    return text;
  }

  std::vector<Values> values_;
};

}  // namespace forebay
