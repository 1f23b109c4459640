// What the trampolines ask on their first call: which function stands behind an MPI_File_* name in
// this process. The answer is found once for all names: the MPI that is in the process is
// recognised by its soname, the back end for it is loaded, and fills the table; every name it does
// not know, or every name where there is no back end, goes to the MPI's own function. A process
// without MPI never comes here.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/intercept/backend.h"

#define FOREBAY_NAME(name) "MPI_File_" #name,
static const char* const names[] = {
#include "core/intercept/preload/names.inc"
};
enum { name_count = sizeof names / sizeof names[0] };

/// The table that the trampolines jump through (trampolines_*.S), one slot a name.
extern void* forebay_slots[name_count];

/// Where the names lead, filled by bind_all; a null entry is in no library.
static void* targets[name_count];
static pthread_once_t bound = PTHREAD_ONCE_INIT;

/// The MPI libraries we know, by soname, and the back end that is compiled for their ABI. The
/// standard ABI comes first: a library that gives it over another MPI has both in the process.
static const struct {
  const char* soname;
  const char* backend;
} known_mpis[] = {
    {"libmpi_abi.so.1", "abi"}, {"libmpi_abi.so.0", "abi"},  {"libmpich.so.12", "mpich"},
    {"libmpi.so.12", "mpich"},  {"libmpi.so.40", "openmpi"},
};

/// The MPI library in this process, and the name of its back end; null if it is none we know.
static void* find_mpi(const char** backend) {
  for (size_t i = 0; i < sizeof known_mpis / sizeof known_mpis[0]; ++i) {
    void* handle = dlopen(known_mpis[i].soname, RTLD_NOLOAD | RTLD_LAZY);
    if (handle != NULL) {
      *backend = known_mpis[i].backend;
      return handle;
    }
  }
  return NULL;
}

/// True in the process that speaks for its job, so that a warning appears once and not once a rank.
static int is_first_rank(void) {
  static const char* const rank_variables[] = {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK",
                                               "SLURM_PROCID"};
  for (size_t i = 0; i < sizeof rank_variables / sizeof rank_variables[0]; ++i) {
    const char* rank = getenv(rank_variables[i]);
    if (rank != NULL) return strcmp(rank, "0") == 0;
  }
  return 1;
}

/// The directory of the back ends, without a slash at the end; 0 if it cannot be told.
static int library_directory(char* directory, size_t capacity) {
  const char* chosen = getenv("FOREBAY_LIBRARY_DIR");
  if (chosen != NULL && chosen[0] != '\0') {
    return (size_t)snprintf(directory, capacity, "%s", chosen) < capacity;
  }
  Dl_info self;
  if (dladdr(&known_mpis, &self) == 0 || self.dli_fname == NULL) return 0;
  const char* slash = strrchr(self.dli_fname, '/');
  if (slash == NULL) return (size_t)snprintf(directory, capacity, ".") < capacity;
  return (size_t)snprintf(directory, capacity, "%.*s", (int)(slash - self.dli_fname),
                          self.dli_fname) < capacity;
}

/// Lets the back end fill the table. Without one the job runs on the MPI alone and is told so.
static void bind_backend(const char* backend, void* mpi) {
  char directory[PATH_MAX];
  char path[PATH_MAX + 64];
  if (!library_directory(directory, sizeof directory)) return;
  snprintf(path, sizeof path, "%s/libforebay-%s.so", directory, backend);
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  forebay_backend_bind_function* bind = NULL;
  if (handle != NULL) {
    bind = (forebay_backend_bind_function*)dlsym(handle, "forebay_backend_bind");
  }
  if (bind != NULL && bind(names, targets, name_count, mpi) == 0) return;
  memset(targets, 0, sizeof targets);
  if (is_first_rank()) {
    const char* reason = handle == NULL ? dlerror() : "it does not fit this MPI library";
    fprintf(stderr, "forebay: file access is left to the MPI library: cannot use %s: %s\n", path,
            reason);
  }
}

/// FOREBAY_MODE says that Forebay is to stay out. A word it does not know is told, not guessed at.
static int is_switched_off(void) {
  const char* mode = getenv("FOREBAY_MODE");
  if (mode == NULL || mode[0] == '\0' || strcmp(mode, "engine") == 0) return 0;
  if (strcmp(mode, "observe") == 0) return 0;
  if (strcmp(mode, "off") == 0) return 1;
  if (is_first_rank()) {
    fprintf(stderr, "forebay: FOREBAY_MODE=%s has no effect; accepted: engine, observe or off\n",
            mode);
  }
  return 0;
}

/// Who traces needs the back end's wrappers, also where the engine stays out.
static int is_traced(void) {
  const char* directory = getenv("FOREBAY_TRACE_DIR");
  return directory != NULL && directory[0] != '\0';
}

static void bind_all(void) {
  const char* backend = NULL;
  void* mpi = find_mpi(&backend);
  if (mpi != NULL && (!is_switched_off() || is_traced())) bind_backend(backend, mpi);
  // Past us, in the order of loading: reaches an MPI of an unknown soname.
  void* const where = mpi != NULL ? mpi : RTLD_NEXT;
  for (int i = 0; i < name_count; ++i) {
    if (targets[i] == NULL) {
      char symbol[64];
      snprintf(symbol, sizeof symbol, "P%s", names[i]);
      targets[i] = dlsym(where, symbol);
    }
    // A trampoline that reads the old value only comes here once more.
    if (targets[i] != NULL) __atomic_store_n(&forebay_slots[i], targets[i], __ATOMIC_RELEASE);
  }
}

/// Called by the trampolines. Never returns null.
__attribute__((visibility("hidden"))) void* forebay_resolve(int index) {
  pthread_once(&bound, bind_all);
  if (targets[index] == NULL) {
    fprintf(stderr, "forebay: the program calls %s, which the MPI library in this process lacks\n",
            names[index]);
    abort();
  }
  return targets[index];
}
