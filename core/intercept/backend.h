#ifndef FOREBAY_CORE_INTERCEPT_BACKEND_H_
#define FOREBAY_CORE_INTERCEPT_BACKEND_H_

/// The one function that a back end exports, as `forebay_backend_bind`. It stores its function for
/// `names[i]` ("MPI_File_open", ...) in `slots[i]` and leaves the slots of names it does not know.
/// `mpi` is the dlopen handle of the MPI library in this process. Returns 0, or -1 if that library
/// is not the one the back end was made for; the slots' values are then meaningless.
typedef int forebay_backend_bind_function(const char* const* names, void** slots, int count,
                                          void* mpi);

#endif  // FOREBAY_CORE_INTERCEPT_BACKEND_H_
