#pragma once

#include <vector>

#include "core/model/extent.hpp"

namespace forebay {

// Parts of what is declared of a file of `size` bytes: extents in the order of reading, as a person
// wrote them (in_file()).

/// Whether the byte at `offset` is in one of them.
bool is_declared(const std::vector<Extent>& willneed, Bytes offset, Bytes size);

/// What will be read from the byte at `offset` on; empty: nothing is declared there.
std::vector<Extent> declared_from(const std::vector<Extent>& willneed, Bytes offset, Bytes size);

/// The same from somewhat before: from a multiple of `unit` bytes on, counted from the beginning of
/// all, so that readers who begin a little apart mostly have the same.
///
/// Worked example, with a unit of 100: of {1000, 60}, {0, 60} and {500, 60} the byte at 520 is read
/// after 140 others; the 100th is at 40.
std::vector<Extent> declared_around(const std::vector<Extent>& willneed, Bytes offset, Bytes size,
                                    Bytes unit);

/// The first; empty: nothing is in the file.
Extent first_declared(const std::vector<Extent>& willneed, Bytes size);

}  // namespace forebay
