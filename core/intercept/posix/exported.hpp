#pragma once

/// A symbol of the C library that programs find here first. The library is compiled with hidden
/// visibility; exports.map lets these names out.
#define FOREBAY_EXPORTED __attribute__((visibility("default")))

/// Behind the declaration of such a symbol: it is `name` of this library, by another name. A call
/// would go to whoever comes first in the order of loading, which may be what called this one.
#define FOREBAY_SAME_AS(name) __attribute__((alias(#name)))
