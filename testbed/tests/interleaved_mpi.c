/* Goal: MPI-IO works on the testbed. Method: ranks write interleaved pieces of a shared file with a
 * collective call, rewrite some in atomic mode (fcntl locks), read all back, and rank 0 compares
 * the whole file through POSIX. Usage: interleaved_mpi PATH; ends with 1 if a byte is wrong. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { piece_bytes = 1000, pieces = 200 };

/* The byte at `offset` of the file; different from its neighbours and between pieces. */
static char expected_byte(long offset) { return (char)(offset * 31 + offset / piece_bytes * 7); }

static void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char message[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, message, &length);
  fprintf(stderr, "%s: %s\n", what, message);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static long offset_of(int rank, int ranks, int piece) {
  return ((long)piece * ranks + rank) * piece_bytes;
}

static long wrong_bytes_of_file(const char* path, long size) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return size;
  long wrong = 0;
  for (long offset = 0; offset < size; ++offset) {
    const int byte = getc(file);
    if (byte == EOF || (char)byte != expected_byte(offset)) ++wrong;
  }
  if (getc(file) != EOF) ++wrong;
  fclose(file);
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 2) MPI_Abort(MPI_COMM_WORLD, 2);

  char* mine = malloc((size_t)piece_bytes * pieces);
  char* read_back = calloc(pieces, piece_bytes);
  for (int piece = 0; piece < pieces; ++piece) {
    for (int i = 0; i < piece_bytes; ++i) {
      mine[piece * piece_bytes + i] = expected_byte(offset_of(rank, ranks, piece) + i);
    }
  }

  MPI_File file;
  check(
      MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
      "MPI_File_open");
  MPI_Datatype block, cards;
  MPI_Type_contiguous(piece_bytes, MPI_BYTE, &block);
  MPI_Type_create_resized(block, 0, (MPI_Aint)ranks * piece_bytes, &cards);
  MPI_Type_commit(&cards);
  check(MPI_File_set_view(file, (MPI_Offset)rank * piece_bytes, MPI_BYTE, cards, "native",
                          MPI_INFO_NULL),
        "MPI_File_set_view");
  check(MPI_File_write_all(file, mine, piece_bytes * pieces, MPI_BYTE, MPI_STATUS_IGNORE),
        "MPI_File_write_all");
  check(MPI_File_set_atomicity(file, 1), "MPI_File_set_atomicity");
  check(MPI_File_write_at(file, 0, mine, 5 * piece_bytes, MPI_BYTE, MPI_STATUS_IGNORE),
        "MPI_File_write_at");
  check(MPI_File_sync(file), "MPI_File_sync");
  MPI_Barrier(MPI_COMM_WORLD);
  check(MPI_File_set_atomicity(file, 0), "MPI_File_set_atomicity");
  check(MPI_File_read_at_all(file, 0, read_back, piece_bytes * pieces, MPI_BYTE, MPI_STATUS_IGNORE),
        "MPI_File_read_at_all");
  check(MPI_File_close(&file), "MPI_File_close");

  long wrong = 0;
  for (int i = 0; i < piece_bytes * pieces; ++i) wrong += read_back[i] != mine[i];
  if (rank == 0) wrong += wrong_bytes_of_file(argv[1], (long)piece_bytes * pieces * ranks);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks, %ld wrong bytes\n", ranks, wrong);
  free(mine);
  free(read_back);
  MPI_Type_free(&block);
  MPI_Type_free(&cards);
  MPI_Finalize();
  return wrong != 0;
}
