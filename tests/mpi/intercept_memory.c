/* Goal: a rank that runs out of memory in a collective call makes it fail on all ranks, or gets by
 * without; none is left waiting, and the next call works. Method: on rank 1 the nth large
 * allocation of each kind of call finds no memory, for n from 1 until there is none left to fail.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "tests/mpi/intercept_check.h"

enum { piece = 4096, pieces = 2048, large = 1 << 20 };

static long large_allocations;
static long failing; /* Which of them; 0: none. */

extern void* __libc_malloc(size_t);

__attribute__((visibility("default"))) void* malloc(size_t bytes) {
  if (bytes >= large && ++large_allocations == failing) {
    errno = ENOMEM;
    return NULL;
  }
  return __libc_malloc(bytes);
}

static unsigned char mine[piece * pieces];
static unsigned char got[piece * pieces];

static int move(MPI_File file, int reading) {
  return reading ? MPI_File_read_all(file, got, sizeof got, MPI_BYTE, MPI_STATUS_IGNORE)
                 : MPI_File_write_all(file, mine, sizeof mine, MPI_BYTE, MPI_STATUS_IGNORE);
}

/* One file, written and read, with the nth large allocation failing while it is written (or read).
 * Whether there was one to fail, which is rank 1's word. */
static int fails_once(MPI_Info info, MPI_Datatype interleaved, int reading, long nth) {
  MPI_File file;
  remove(check_path);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
  OK(MPI_File_set_view(file, (MPI_Offset)piece * check_rank, MPI_BYTE, interleaved, "native",
                       MPI_INFO_NULL));
  if (reading) {
    OK(move(file, 0));
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  }
  large_allocations = 0;
  failing = check_rank == 1 ? nth : 0;
  const int code = move(file, reading);
  int fired = large_allocations >= failing && failing > 0;
  failing = 0;
  MPI_Bcast(&fired, 1, MPI_INT, 1, MPI_COMM_WORLD);
  int failed = code != MPI_SUCCESS, all_failed = 0, some_failed = 0;
  MPI_Allreduce(&failed, &all_failed, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  MPI_Allreduce(&failed, &some_failed, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
  CHECK(all_failed == some_failed);
  CHECK(fired || !failed);
  if (failed) FAILS(MPI_ERR_NO_MEM, code);

  OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  OK(move(file, 0));
  OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  memset(got, 0, sizeof got);
  OK(move(file, 1));
  CHECK(memcmp(got, mine, sizeof got) == 0);
  OK(MPI_File_close(&file));
  return fired;
}

int main(int argc, char** argv) {
  check_start(argc, argv, "memory");
  for (size_t i = 0; i < sizeof mine; ++i) mine[i] = (unsigned char)(i * 31 + i / 251 + check_rank);
  MPI_Datatype interleaved;
  OK(MPI_Type_vector(pieces, piece, piece * check_size, MPI_BYTE, &interleaved));
  OK(MPI_Type_commit(&interleaved));
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "cb_buffer_size", "4194304"));
  OK(MPI_Info_set(info, "romio_cb_write", "enable"));
  OK(MPI_Info_set(info, "romio_cb_read", "enable"));
  for (int reading = 0; reading <= 1; ++reading) {
    long nth = 1;
    while (fails_once(info, interleaved, reading, nth)) ++nth;
    CHECK(check_size == 1 || nth > 1);
  }
  OK(MPI_Info_free(&info));
  OK(MPI_Type_free(&interleaved));
  return check_finish();
}
