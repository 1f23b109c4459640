#pragma once

#include <sys/uio.h>

#include <span>

#include "core/engine/cache/dirty_extents.hpp"
#include "core/engine/cache/kept_payload.hpp"
#include "core/model/error.hpp"
#include "core/storage/file.hpp"

namespace forebay {

/// Reads a file as its writers see it: dirty bytes from the log, the rest from the file, in one
/// call to the file at most. Fewer bytes than asked only where both end; in between, zeros. What
/// comes from the log is verified, with what `kept` holds of it. Error: io, where that fails, ...
Result<Bytes> read_merged(StorageFile& file, const DirtyExtents& extents, KeptPayload& kept,
                          std::span<const iovec> pieces, Bytes offset);

}  // namespace forebay
