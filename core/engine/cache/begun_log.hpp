#pragma once

#include "core/engine/cache/log_store.hpp"

// docs/formats/write-behind-log.md, "Reading"

namespace forebay {

/// Whether a crash of the node left no more of a log than the first sectors of its first
/// superblock, with zeros behind them. Its writer then was never told that the log is durable: what
/// it made durable would have the whole superblock. False also where that cannot be told.
///
/// Only a log whose writer is gone may be asked about.
bool is_only_begun(LogStore& log);

}  // namespace forebay
