#pragma once

#include <memory>

#include "core/model/counters.hpp"
#include "core/storage/file.hpp"

namespace forebay {

/// `file`, whose larger writes go straight to the device (O_DIRECT): nothing of it stays in memory,
/// and no page has to be found for it. Only where the file system says what such writes need (Linux
/// from 6.1 on: statx, STATX_DIOALIGN), which those of a network do not; else, and where the file
/// may not be written, `file` as it is. What does not fill a page, and writes of less than half a
/// megabyte, which a page cache brings together, take the usual way, and so does everything once
/// the device refuses (EINVAL). Storage calls and bytes are counted in `counters`, which must
/// outlive the file.
std::unique_ptr<StorageFile> past_page_cache(std::unique_ptr<StorageFile> file, Counters& counters);

}  // namespace forebay
