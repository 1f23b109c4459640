#pragma once

#include <sys/uio.h>

#include <span>

#include "core/engine/cache/dirty_extents.hpp"
#include "core/model/error.hpp"
#include "core/storage/file.hpp"

namespace forebay {

/// Reads a file as its writers see it: dirty bytes from the log, the rest from the file, in one
/// call to the file at most. Fewer bytes than asked only where both end; in between, zeros.
Result<Bytes> read_merged(StorageFile& file, const DirtyExtents& extents,
                          std::span<const iovec> pieces, Bytes offset);

}  // namespace forebay
