#pragma once

namespace forebay::posix {

/// What libforebay-posix.so is to the back ends of MPI, which are in the process beside it: they
/// find this function by its name. What the thread opens while it is on is fetched from when it is
/// read, and not at once: perhaps it never is.
constexpr const char* later_fetch_name = "forebay_fetch_later";
using FetchLater = void(int is_on);

}  // namespace forebay::posix
