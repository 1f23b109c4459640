#pragma once

namespace forebay {

/// Whether anybody has a record lock on the file behind `descriptor` (fcntl(2), F_SETLK): this
/// process, which loses all of its own when it closes any descriptor of the file, or another one.
/// Not those that were set by `descriptor` itself as F_OFD_SETLK. Yes where it cannot be told of a
/// descriptor that is open.
bool has_record_locks(int descriptor);

/// Whether this process has any, of whatever file: they outlive an `exec`. Yes where it cannot be
/// told.
bool process_has_record_locks();

}  // namespace forebay
