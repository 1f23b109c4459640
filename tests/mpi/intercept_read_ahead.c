/* Reads what tests/posix/mpi_check.py declares, in that order and in step: every rank all of it, in
 * independent calls of three kinds. Each 8 bytes of the file are their offset. */
#define _GNU_SOURCE
#include <stdint.h>

#include "tests/mpi/intercept_check.h"

enum { piece = 40000, step = 100000, pieces = 120, in_step = 4 };

static void read_piece(MPI_File file, int n, void* found, MPI_Status* status) {
  const MPI_Offset offset = (MPI_Offset)n * step;
  MPI_Request request;
  switch (n % 3) {
    case 0:
      OK(MPI_File_read_at(file, offset, found, piece, MPI_BYTE, status));
      break;
    case 1:
      OK(MPI_File_seek(file, offset, MPI_SEEK_SET));
      OK(MPI_File_read(file, found, piece, MPI_BYTE, status));
      break;
    default:
      OK(MPI_File_iread_at(file, offset, found, piece, MPI_BYTE, &request));
      OK(MPI_Wait(&request, status));
  }
}

int main(int argc, char** argv) {
  static uint64_t found[piece / sizeof(uint64_t)];
  check_start(argc, argv, "read_ahead");
  MPI_File file;
  OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  for (int n = 0; n < pieces; ++n) {
    const MPI_Offset offset = (MPI_Offset)n * step;
    MPI_Status status;
    if (n % in_step == 0) OK(MPI_Barrier(MPI_COMM_WORLD));
    read_piece(file, n, found, &status);
    CHECK(check_count(&status, MPI_BYTE) == piece);
    for (int i = 0; i < piece / (int)sizeof *found; ++i) {
      CHECK(found[i] == (uint64_t)offset + (uint64_t)i * sizeof *found);
    }
  }
  OK(MPI_File_close(&file));
  return check_finish();
}
