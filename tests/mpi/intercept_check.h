/* What the intercept_* programs share: they verify themselves, print nothing but errors, and return
 * 0 or abort. They are plain MPI programs; ctest runs them under LD_PRELOAD (CMakeLists.txt), and
 * FOREBAY_TEST_PRELOADED=1 makes them verify that the preload is really there. */
#ifndef FOREBAY_TESTS_MPI_INTERCEPT_CHECK_H_
#define FOREBAY_TESTS_MPI_INTERCEPT_CHECK_H_

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_rank;
static int check_size;
static char check_path[4096];

#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      fprintf(stderr, "%s:%d: rank %d of %d: %s\n", __FILE__, __LINE__, check_rank, check_size, \
              #condition);                                                                      \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                             \
    }                                                                                           \
  } while (0)

/* The call succeeds. */
#define OK(call)                                                                        \
  do {                                                                                  \
    const int check_code = (call);                                                      \
    if (check_code != MPI_SUCCESS) {                                                    \
      char check_text[MPI_MAX_ERROR_STRING];                                            \
      int check_length;                                                                 \
      MPI_Error_string(check_code, check_text, &check_length);                          \
      fprintf(stderr, "%s:%d: rank %d of %d: %s: %s\n", __FILE__, __LINE__, check_rank, \
              check_size, #call, check_text);                                           \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                     \
    }                                                                                   \
  } while (0)

/* The call fails with an error of this class. */
#define FAILS(error_class, call)                                                                \
  do {                                                                                          \
    int check_found = MPI_SUCCESS;                                                              \
    MPI_Error_class((call), &check_found);                                                      \
    if (check_found != (error_class)) {                                                         \
      fprintf(stderr, "%s:%d: rank %d of %d: %s: error class %d, not %s\n", __FILE__, __LINE__, \
              check_rank, check_size, #call, check_found, #error_class);                        \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                             \
    }                                                                                           \
  } while (0)

/* With MPI started; the last argument of the program is the directory for its files. */
static void check_arguments(int argc, char** argv, const char* name) {
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &check_size);
  CHECK(argc == 2);
  snprintf(check_path, sizeof check_path, "%s/%s.dat", argv[1], name);
  const char* preloaded = getenv("FOREBAY_TEST_PRELOADED");
  if (preloaded != NULL && strcmp(preloaded, "1") == 0) {
    Dl_info where;
    CHECK(dladdr(dlsym(RTLD_DEFAULT, "MPI_File_open"), &where) != 0);
    CHECK(strstr(where.dli_fname, "libforebay.so") != NULL);
  }
}

static inline void check_start(int argc, char** argv, const char* name) {
  MPI_Init(NULL, NULL);
  check_arguments(argc, argv, name);
}

/* A new, empty file that all ranks have open for reading and writing. */
static inline MPI_File check_open(int more_amode) {
  if (check_rank == 0) remove(check_path);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File file;
  OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_CREATE | MPI_MODE_RDWR | more_amode,
                   MPI_INFO_NULL, &file));
  return file;
}

/* From byte `start` on, the file's blocks of `block` bytes are the ranks' in turn. */
static inline void check_interleave(MPI_File file, MPI_Offset start, int block) {
  MPI_Datatype one, type;
  OK(MPI_Type_contiguous(block, MPI_BYTE, &one));
  OK(MPI_Type_create_resized(one, 0, (MPI_Aint)block * check_size, &type));
  OK(MPI_Type_commit(&type));
  OK(MPI_File_set_view(file, start + (MPI_Offset)block * check_rank, MPI_BYTE, type, "native",
                       MPI_INFO_NULL));
  OK(MPI_Type_free(&type));
  OK(MPI_Type_free(&one));
}

static inline int check_finish(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank == 0) remove(check_path);
  MPI_Finalize();
  return 0;
}

static inline int check_count(MPI_Status* status, MPI_Datatype datatype) {
  int count = -1;
  MPI_Get_count(status, datatype, &count);
  return count;
}

#endif
