#pragma once

/// A symbol of the C library that programs find here first. The library is compiled with hidden
/// visibility; exports.map lets these names out.
#define FOREBAY_EXPORTED __attribute__((visibility("default")))
