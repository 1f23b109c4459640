#include "core/plan/declared_parts.hpp"

#include <algorithm>
#include <cstddef>

#include "core/plan/fetch_plan.hpp"

namespace forebay {
namespace {

/// From the extent at `index` on, of which the first `cut` bytes are left out.
std::vector<Extent> rest_from(const std::vector<Extent>& willneed, std::size_t index, Bytes cut,
                              Bytes size) {
  std::vector<Extent> rest(willneed.begin() + static_cast<std::ptrdiff_t>(index), willneed.end());
  const Extent first = in_file(rest[0], size);
  rest[0] = {first.offset + cut, first.length - cut};
  return rest;
}

}  // namespace

bool is_declared(const std::vector<Extent>& willneed, Bytes offset, Bytes size) {
  return std::ranges::any_of(willneed, [=](const Extent& written) {
    return !intersect(in_file(written, size), {offset, 1}).empty();
  });
}

std::vector<Extent> declared_from(const std::vector<Extent>& willneed, Bytes offset, Bytes size) {
  return declared_around(willneed, offset, size, 1);
}

std::vector<Extent> declared_around(const std::vector<Extent>& willneed, Bytes offset, Bytes size,
                                    Bytes unit) {
  // Where the last multiple of the unit is, until now.
  std::size_t last = 0;
  Bytes cut = 0;
  Bytes before = 0;
  for (std::size_t index = 0; index < willneed.size(); ++index) {
    const Extent inside = in_file(willneed[index], size);
    const bool is_here = !intersect(inside, {offset, 1}).empty();
    const Bytes length = is_here ? offset - inside.offset + 1 : inside.length;
    const Bytes multiple = (before + length - 1) / unit * unit;
    if (length > 0 && multiple >= before) {
      last = index;
      cut = multiple - before;
    }
    if (is_here) return rest_from(willneed, last, cut, size);
    before += length;
  }
  return {};
}

Extent first_declared(const std::vector<Extent>& willneed, Bytes size) {
  for (const Extent& written : willneed) {
    const Extent inside = in_file(written, size);
    if (!inside.empty()) return inside;
  }
  return {};
}

}  // namespace forebay
