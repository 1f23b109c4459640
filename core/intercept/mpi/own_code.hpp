#pragma once

// The linker's: where this library and its code begin and end.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
extern const char __ehdr_start __attribute__((visibility("hidden")));
extern const char etext __attribute__((visibility("hidden")));
}
// NOLINTEND(bugprone-reserved-identifier)
