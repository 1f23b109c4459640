// Feeds arbitrary bytes to the parsers of layout attributes, which read what a file system says.

#include <cassert>
#include <cstdint>

#include "core/storage/layout.hpp"

namespace {

void check(const std::optional<forebay::StripeLayout>& layout) {
  if (!layout) return;
  assert(layout->stripe_size > 0);
  assert(layout->servers > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check(forebay::parse_lustre_layout({reinterpret_cast<const std::byte*>(data), size}));
  check(forebay::parse_stripe_attribute({reinterpret_cast<const char*>(data), size}));
  return 0;
}
