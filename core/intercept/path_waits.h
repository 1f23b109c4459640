#ifndef FOREBAY_CORE_INTERCEPT_PATH_WAITS_H_
#define FOREBAY_CORE_INTERCEPT_PATH_WAITS_H_

/// Waits until the file of that name may be seen; where it `moves`, and is a directory, until all
/// that are below it may. Returns 0, or the errno that whoever asked for it is to get. On any
/// thread, never twice on one at a time.
typedef int forebay_path_waiter(const char* path, int moves);

/// What libforebay.so exports for the back end as `forebay_wait_at_paths`: from now on the calls of
/// path_names.inc ask `waiter` first, for each path they have; null: none does any more. Not those
/// of the code in [from, to), which is the waiter's own, nor children by fork.
typedef void forebay_wait_at_paths_function(forebay_path_waiter* waiter, const void* from,
                                            const void* to);

#endif  // FOREBAY_CORE_INTERCEPT_PATH_WAITS_H_
