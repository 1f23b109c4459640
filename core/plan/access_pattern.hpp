#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/model/extent.hpp"

namespace forebay {

/// Where a program's reads lead when nobody said so: it watches reads, and knows the next ones when
/// they follow each other without a gap (sequential) or by the same step (strided, also backwards).
class AccessPattern {
 public:
  /// Steps of one kind before a pattern counts as one.
  static constexpr int fewest_steps = 3;

  void observe(Extent read);

  /// The reads expected after the last one, up to `limit` of them; none while there is no pattern.
  /// Sequential: one extent to the end of the file.
  std::vector<Extent> expected(Bytes file_size, std::size_t limit) const;

  /// What was expected did not come: more steps are asked for from now on, twice as many each time,
  /// so that a program without a pattern is soon left alone.
  void disappoint();

 private:
  enum class Kind { none, sequential, strided };

  std::optional<Extent> last_;
  Kind kind_ = Kind::none;
  Bytes stride_ = 0;
  int steps_ = 0;
  int needed_ = fewest_steps;
};

}  // namespace forebay
