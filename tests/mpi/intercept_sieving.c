/* Goal: ranks that write their pieces of a few bytes independently and at the same time, so that
 * Forebay reads and writes back whole spans, lose nothing of what anybody writes into the gaps:
 * other such ranks, ranks that write piece by piece, collective calls before and after, and other
 * handles of the same file. Method: pieces are dealt out to the ranks in turn, and written again
 * and again with other values; whatever the order, the outcome is known. That spans are written
 * shows in the system calls. */
#define _GNU_SOURCE

#include "tests/mpi/intercept_check.h"

enum { piece = 8, tiles = 3000, rounds = 6, calls = 10, tiles_a_call = tiles / calls };

static MPI_Datatype spaced; /* A piece in every tile. */
static char own[tiles * piece];

static MPI_Offset offset_of(int tile, int rank) {
  return ((MPI_Offset)tile * check_size + rank) * piece;
}

static void fill_piece(char* to, MPI_Offset offset, int round) {
  for (int i = 0; i < piece; ++i) to[i] = (char)((offset + i) * 31 % 127 + 1 + round * 16);
}

/* This rank's pieces of all tiles, with the values of `round`. */
static void fill_own(int round) {
  for (int t = 0; t < tiles; ++t) fill_piece(own + t * piece, offset_of(t, check_rank), round);
}

/* The whole file has the values of `round`. */
static void verify(MPI_File file, int round) {
  const int length = tiles * check_size * piece;
  char* data = malloc(length);
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  OK(MPI_File_read_at(file, 0, data, length, MPI_BYTE, MPI_STATUS_IGNORE));
  for (int at = 0; at < length; at += piece) {
    char expected[piece];
    fill_piece(expected, at, round);
    CHECK(memcmp(data + at, expected, piece) == 0);
  }
  free(data);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void set_strided_view(MPI_File file) {
  OK(MPI_File_set_view(file, offset_of(0, check_rank), MPI_BYTE, spaced, "native", MPI_INFO_NULL));
}

/* How often this process has asked the kernel to write; -1 where it does not tell. */
static long write_calls(void) {
  char line[256];
  long found = -1;
  FILE* io = fopen("/proc/self/io", "r");
  if (io == NULL) return -1;
  while (fgets(line, sizeof line, io) != NULL) {
    if (sscanf(line, "syscw: %ld", &found) == 1) break;
  }
  fclose(io);
  return found;
}

/* The tiles of one call, by the call of this number's kind. */
static void write_some(MPI_File file, int call) {
  const int first = call * tiles_a_call * piece, length = tiles_a_call * piece;
  MPI_Request request;
  if (call % 3 == 0) {
    OK(MPI_File_write_at(file, first, own + first, length, MPI_BYTE, MPI_STATUS_IGNORE));
  } else if (call % 3 == 1) {
    OK(MPI_File_iwrite_at(file, first, own + first, length, MPI_BYTE, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else {
    OK(MPI_File_seek(file, first, MPI_SEEK_SET));
    OK(MPI_File_write(file, own + first, length, MPI_BYTE, MPI_STATUS_IGNORE));
  }
}

static void write_own(MPI_File file) {
  for (int call = 0; call < calls; ++call) write_some(file, call);
}

/* Each piece by a call of its own, at its place in the file. */
static void write_pieces(MPI_File file) {
  for (int t = 0; t < tiles; ++t) {
    OK(MPI_File_write_at(file, offset_of(t, check_rank), own + t * piece, piece, MPI_BYTE,
                         MPI_STATUS_IGNORE));
  }
}

static void all_in_spans(void) {
  MPI_File file = check_open(0);
  for (int round = 0; round < rounds; ++round) {
    set_strided_view(file);
    fill_own(round);
    const long before = write_calls();
    write_own(file);
    const long after = write_calls();
    CHECK(before < 0 || after - before < tiles / 2);
    verify(file, round);
  }
  OK(MPI_File_close(&file));
}

static void beside_single_pieces(void) {
  MPI_File file = check_open(0);
  for (int round = 0; round < rounds; ++round) {
    fill_own(round);
    if (check_rank == round % check_size) {
      OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
      write_pieces(file);
    } else {
      set_strided_view(file);
      write_own(file);
    }
    verify(file, round);
  }
  OK(MPI_File_close(&file));
}

/* Every second call is collective, and the others come at once after it. */
static void between_collective_calls(void) {
  MPI_File file = check_open(0);
  for (int round = 0; round < rounds; ++round) {
    set_strided_view(file);
    fill_own(round);
    for (int call = 0; call < calls; call += 2) {
      const int first = call * tiles_a_call * piece, length = tiles_a_call * piece;
      if (check_rank % 2 == 0) write_some(file, call + 1);
      OK(MPI_File_write_at_all(file, first, own + first, length, MPI_BYTE, MPI_STATUS_IGNORE));
      if (check_rank % 2 != 0) write_some(file, call + 1);
    }
    verify(file, round);
  }
  OK(MPI_File_close(&file));
}

/* The last rank works in spans, while the others write through a handle that each has alone
 * (`alone`), or that they have together and use for collective calls. */
static void beside_other_handles(int alone) {
  const int last = check_rank == check_size - 1;
  MPI_Comm others = MPI_COMM_NULL;
  MPI_File file = check_open(0), second = MPI_FILE_NULL;
  OK(MPI_Comm_split(MPI_COMM_WORLD,
                    last    ? MPI_UNDEFINED
                    : alone ? check_rank
                            : 0,
                    check_rank, &others));
  if (!last) OK(MPI_File_open(others, check_path, MPI_MODE_RDWR, MPI_INFO_NULL, &second));
  for (int round = 0; round < rounds; ++round) {
    set_strided_view(file);
    fill_own(round);
    if (last) {
      write_own(file);
    } else {
      set_strided_view(second);
      for (int call = 0; call < calls; ++call) {
        const int first = call * tiles_a_call * piece, length = tiles_a_call * piece;
        OK(MPI_File_write_at_all(second, first, own + first, length, MPI_BYTE, MPI_STATUS_IGNORE));
      }
      OK(MPI_File_sync(second));
    }
    verify(file, round);
  }
  if (!last) {
    OK(MPI_File_close(&second));
    OK(MPI_Comm_free(&others));
  }
  OK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
  check_start(argc, argv, "sieving");
  MPI_Datatype bytes;
  OK(MPI_Type_contiguous(piece, MPI_BYTE, &bytes));
  OK(MPI_Type_create_resized(bytes, 0, (MPI_Aint)piece * check_size, &spaced));
  OK(MPI_Type_commit(&spaced));
  OK(MPI_Type_free(&bytes));
  all_in_spans();
  beside_single_pieces();
  between_collective_calls();
  beside_other_handles(1);
  beside_other_handles(0);
  OK(MPI_Type_free(&spaced));
  return check_finish();
}
