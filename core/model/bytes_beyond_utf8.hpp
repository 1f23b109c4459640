#pragma once

#include <string>

namespace forebay {

/// All bytes of a path in hexadecimal, for JSON that cannot hold it. Empty for UTF-8, which JSON
/// holds as it is.
std::string bytes_beyond_utf8(const std::string& path);

}  // namespace forebay
