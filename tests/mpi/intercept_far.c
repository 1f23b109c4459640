/* Goal: offsets and datatypes that reach further than any file are told by an error, at once, and
 * leave the file and the other ranks of a collective call alone.
 * Method: far offsets by every kind of pointer, far displacements, and filetypes with far bytes;
 * some on one rank only, with the data of the others verified. */
#define _GNU_SOURCE
#include <stdint.h>

#include "tests/mpi/intercept_check.h"

static const MPI_Offset last_offset = INT64_MAX;
static MPI_File file;

static void expect_far(MPI_Offset displacement, MPI_Datatype filetype, MPI_Offset offset) {
  int value[4] = {0};
  MPI_Offset bytes = -1;
  OK(MPI_File_set_view(file, displacement, MPI_INT, filetype, "native", MPI_INFO_NULL));
  FAILS(MPI_ERR_ARG, MPI_File_get_byte_offset(file, offset, &bytes));
  FAILS(MPI_ERR_ARG, MPI_File_write_at(file, offset, value, 4, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_ARG, MPI_File_read_at(file, offset, value, 4, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_ARG, MPI_File_write_at_all(file, offset, value, 4, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_ARG, MPI_File_read_at_all(file, offset, value, 4, MPI_INT, MPI_STATUS_IGNORE));
}

static MPI_Datatype far_pair(MPI_Aint distance) {
  MPI_Aint displacements[2] = {0, distance};
  MPI_Datatype type;
  OK(MPI_Type_create_hindexed_block(2, 1, displacements, MPI_INT, &type));
  OK(MPI_Type_commit(&type));
  return type;
}

static void far_views(void) {
  MPI_Datatype vector, pair = far_pair((MPI_Aint)1 << 61), too_far = far_pair((MPI_Aint)3 << 61);
  MPI_Datatype resized;
  OK(MPI_Type_vector(2, 1, 100, MPI_INT, &vector));
  OK(MPI_Type_commit(&vector));
  OK(MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)3 << 61, &resized));
  OK(MPI_Type_commit(&resized));
  expect_far(0, MPI_INT, (MPI_Offset)1 << 60);
  expect_far(last_offset, MPI_INT, 0);
  expect_far((MPI_Offset)1 << 62, MPI_INT, (MPI_Offset)1 << 58);
  expect_far(0, vector, (MPI_Offset)1 << 60);
  expect_far(0, vector, (MPI_Offset)1 << 57);
  expect_far(0, pair, 8);
  expect_far(0, resized, 4);
  FAILS(MPI_ERR_ARG, MPI_File_set_view(file, 0, MPI_INT, too_far, "native", MPI_INFO_NULL));
  OK(MPI_Type_free(&vector));
  OK(MPI_Type_free(&pair));
  OK(MPI_Type_free(&too_far));
  OK(MPI_Type_free(&resized));
}

/* The pointers go as far as numbers do and stay there. */
static void far_pointers(void) {
  int value = 1;
  MPI_Offset position = -1;
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  OK(MPI_File_seek(file, last_offset, MPI_SEEK_SET));
  for (int i = 0; i < 2; ++i) {
    FAILS(MPI_ERR_ARG, MPI_File_write(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_ARG, MPI_File_read_all(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  }
  OK(MPI_File_get_position(file, &position));
  CHECK(position == last_offset);
  OK(MPI_File_seek_shared(file, last_offset, MPI_SEEK_SET));
  for (int i = 0; i < 2; ++i) {
    FAILS(MPI_ERR_ARG, MPI_File_write_shared(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_ARG, MPI_File_write_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  }
  OK(MPI_File_get_position_shared(file, &position));
  CHECK(position == last_offset);
}

static void one_far_rank(void) {
  const int far = check_rank == check_size - 1;
  int value = 100 + check_rank, seen = 0;
  const MPI_Offset offset = far ? (MPI_Offset)1 << 61 : check_rank;
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  for (int i = 0; i < 2; ++i) {
    if (far) {
      FAILS(MPI_ERR_ARG,
            MPI_File_write_at_all(file, offset, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    } else {
      OK(MPI_File_write_at_all(file, offset, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
      OK(MPI_File_read_at(file, offset, &seen, 1, MPI_INT, MPI_STATUS_IGNORE));
      CHECK(seen == value);
    }
  }
}

int main(int argc, char** argv) {
  check_start(argc, argv, "far");
  for (int exchanged = 0; exchanged < 2; ++exchanged) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "romio_cb_write", exchanged ? "enable" : "automatic"));
    OK(MPI_Info_set(info, "romio_cb_read", exchanged ? "enable" : "automatic"));
    OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    far_views();
    far_pointers();
    one_far_rank();
    OK(MPI_File_close(&file));
    OK(MPI_Info_free(&info));
  }
  return check_finish();
}
