#pragma once

#include <optional>
#include <string>

#include "core/model/extent.hpp"

namespace forebay {

/// Bytes of memory that the control groups of this process, as a batch system makes them, let it
/// take beside what is taken. Files in memory (tmpfs) count for them; the page cache counts as
/// free, since it is given back first. No value: there is no limit, or none that can be told.
/// `root`: what stands for "/", for tests. [Linux: admin-guide/cgroup-v2.rst,
/// admin-guide/cgroup-v1/memory.rst]
std::optional<Bytes> memory_left(const std::string& root = {});

}  // namespace forebay
