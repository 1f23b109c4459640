#pragma once

#include <optional>
#include <string>

namespace forebay::testbed {

/// Why this process cannot mount a FUSE file system; nothing if it can. Found out without the
/// testbed itself, so that a testbed that fails to mount is not mistaken for a machine that cannot.
std::optional<std::string> why_fuse_is_unusable();

}  // namespace forebay::testbed
