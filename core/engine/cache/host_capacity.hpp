#pragma once

#include <memory>

#include "core/engine/cache/log_directory.hpp"
#include "core/engine/cache/resource.hpp"

namespace forebay {

/// What all logs below one node-local path may take together, whichever files and programs of the
/// user they are of: a Resource in a file of the cache directory, which every process maps. The
/// file is there as long as anybody uses it; each does by a lock on it, which the kernel drops when
/// the process dies, so what an earlier program left in it counts for nothing. Where the path's
/// file system maps no files, it is in /dev/shm.
///
/// `amount`: bytes, if nobody uses it yet; else that of the first one holds. Errors: no_space, io,
/// access, unsupported (the file system has no locks).
Result<std::shared_ptr<Resource>> share_host_capacity(
    const std::shared_ptr<CacheDirectory>& directory, Bytes amount);

}  // namespace forebay
