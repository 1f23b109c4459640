// Ends with 0 where FUSE can be mounted; else says why not and ends with 77, which ctest takes for
// "skipped". For test drivers that are scripts.

#include <fmt/format.h>

#include "testbed/tests/fuse_probe.hpp"

int main() {
  constexpr int skipped = 77;
  const auto reason = forebay::testbed::why_fuse_is_unusable();
  if (!reason) return 0;
  fmt::print("skipped: {}\n", *reason);
  return skipped;
}
