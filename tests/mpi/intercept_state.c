/* Goal: everything that a file handle knows of itself -- view, pointers, size, hints, modes -- is
 * told and changed as MPI 4.0 chapter 14 says, whoever keeps it. Method: each call of that kind,
 * with its result checked against what the standard's formulas give. */
#define _GNU_SOURCE
#include <unistd.h>

#include "tests/mpi/intercept_check.h"

static MPI_File file;

static MPI_Offset position(void) {
  MPI_Offset offset = -1;
  OK(MPI_File_get_position(file, &offset));
  return offset;
}

static MPI_Offset byte_offset(MPI_Offset offset) {
  MPI_Offset bytes = -1;
  OK(MPI_File_get_byte_offset(file, offset, &bytes));
  return bytes;
}

/* Two of every five ints from byte 100 on are visible. */
static MPI_Datatype two_of_five(void) {
  MPI_Datatype pair, type;
  OK(MPI_Type_contiguous(2, MPI_INT, &pair));
  OK(MPI_Type_create_resized(pair, 0, 20, &type));
  OK(MPI_Type_free(&pair));
  OK(MPI_Type_commit(&type));
  return type;
}

static void views_and_pointers(void) {
  MPI_Datatype type = two_of_five(), etype, filetype;
  MPI_Offset displacement = -1;
  char representation[MPI_MAX_DATAREP_STRING];
  int ints[20] = {0};

  file = check_open(0);
  OK(MPI_File_get_view(file, &displacement, &etype, &filetype, representation));
  CHECK(displacement == 0 && etype == MPI_BYTE && filetype == MPI_BYTE);
  CHECK(strcmp(representation, "native") == 0);
  OK(MPI_File_set_size(file, 1000));

  OK(MPI_File_set_view(file, 100, MPI_INT, type, "native", MPI_INFO_NULL));
  OK(MPI_Type_free(&type)); /* The view keeps what it needs. */
  OK(MPI_File_get_view(file, &displacement, &etype, &filetype, representation));
  CHECK(displacement == 100 && etype == MPI_INT);
  int size = 0;
  MPI_Aint lower = -1, extent = -1;
  OK(MPI_Type_size(filetype, &size));
  OK(MPI_Type_get_extent(filetype, &lower, &extent));
  CHECK(size == 8 && lower == 0 && extent == 20);
  /* What is told can be used. */
  OK(MPI_File_set_view(file, displacement, etype, filetype, representation, MPI_INFO_NULL));
  OK(MPI_Type_free(&filetype));

  CHECK(byte_offset(0) == 100 && byte_offset(1) == 104 && byte_offset(2) == 120);
  CHECK(byte_offset(7) == 164);
  CHECK(position() == 0);
  OK(MPI_File_seek(file, 5, MPI_SEEK_SET));
  OK(MPI_File_seek(file, -2, MPI_SEEK_CUR));
  CHECK(position() == 3);
  /* 900 bytes beyond 100 hold 45 tiles: 90 ints. */
  OK(MPI_File_seek(file, 0, MPI_SEEK_END));
  CHECK(position() == 90);
  OK(MPI_File_seek(file, -90, MPI_SEEK_END));
  CHECK(position() == 0);
  OK(MPI_File_write(file, ints, 3, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(position() == 3);
  FAILS(MPI_ERR_ARG, MPI_File_seek(file, -4, MPI_SEEK_CUR));
  FAILS(MPI_ERR_ARG, MPI_File_seek(file, 0, 4711));
  CHECK(position() == 3);
  OK(MPI_File_seek_shared(file, -1, MPI_SEEK_END));
  MPI_Offset shared = -1;
  OK(MPI_File_get_position_shared(file, &shared));
  CHECK(shared == 89);
  FAILS(MPI_ERR_ARG, MPI_File_seek_shared(file, -1, MPI_SEEK_SET));

  /* A new view starts from the beginning. */
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  CHECK(position() == 0);
  OK(MPI_File_get_position_shared(file, &shared));
  CHECK(shared == 0);
  MPI_Aint type_extent = -1;
  OK(MPI_File_get_type_extent(file, MPI_DOUBLE, &type_extent));
  CHECK(type_extent == 8);
  OK(MPI_File_close(&file));
}

/* Ranks without a part set views without bytes; nothing moves, and positions stay at 0. */
static void empty_views(void) {
  MPI_Datatype none;
  MPI_Offset offset = -1;
  int value = 0;
  MPI_Status status;
  OK(MPI_Type_contiguous(0, MPI_INT, &none));
  OK(MPI_Type_commit(&none));
  file = check_open(0);
  OK(MPI_File_set_view(file, 0, none, none, "native", MPI_INFO_NULL));
  OK(MPI_File_write_all(file, &value, 1, MPI_INT, &status));
  CHECK(check_count(&status, MPI_INT) == 0);
  CHECK(position() == 0);
  OK(MPI_File_get_position_shared(file, &offset));
  CHECK(offset == 0);
  OK(MPI_File_seek(file, 0, MPI_SEEK_END));
  CHECK(position() == 0);
  OK(MPI_File_set_view(file, 0, MPI_INT, none, "native", MPI_INFO_NULL));
  CHECK(position() == 0 && byte_offset(3) == 0);
  OK(MPI_Type_free(&none));
  OK(MPI_File_close(&file));
}

static void sizes(void) {
  MPI_Offset size = -1;
  char bytes[10] = {0};
  file = check_open(0);
  OK(MPI_File_get_size(file, &size));
  CHECK(size == 0);
  OK(MPI_File_write_at_all(file, 50 * check_rank, bytes, 10, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_get_size(file, &size));
  CHECK(size == 50 * (check_size - 1) + 10);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_preallocate(file, 5000));
  OK(MPI_File_get_size(file, &size));
  CHECK(size == 5000);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_set_size(file, 7));
  OK(MPI_File_get_size(file, &size));
  CHECK(size == 7);
  OK(MPI_File_close(&file));
}

static void modes_and_group(void) {
  int amode = 0, group_size = 0, flag = -1;
  MPI_Group group;
  file = check_open(0);
  OK(MPI_File_get_amode(file, &amode));
  CHECK(amode == (MPI_MODE_CREATE | MPI_MODE_RDWR));
  OK(MPI_File_get_group(file, &group));
  OK(MPI_Group_size(group, &group_size));
  CHECK(group_size == check_size);
  OK(MPI_Group_free(&group));
  OK(MPI_File_get_atomicity(file, &flag));
  CHECK(flag == 0);
  OK(MPI_File_set_atomicity(file, 1));
  OK(MPI_File_get_atomicity(file, &flag));
  CHECK(flag != 0);
  /* In atomic mode ranks read what another wrote before, without sync. */
  int value = 42, seen = 0;
  if (check_rank == 0) OK(MPI_File_write_at(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_read_at_all(file, 0, &seen, 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(seen == 42);
  OK(MPI_File_set_atomicity(file, 0));
#ifdef MPI_ABI_VERSION /* It has no conversions for Fortran's integers but these. */
  CHECK(MPI_File_fromint(MPI_File_toint(file)) == file);
#else
  CHECK(MPI_File_f2c(MPI_File_c2f(file)) == file);
#endif
  OK(MPI_File_close(&file));
}

/* Handlers are the program's, are told of errors that Forebay finds, and may be asked for. */
static int handler_calls, handler_code;

static void handler(MPI_File* handle, int* code, ...) {
  handler_calls += *handle == file;
  handler_code = *code;
}

static void error_handlers(void) {
  MPI_Errhandler mine, found;
  char byte = 0;
  file = check_open(0);
  OK(MPI_File_get_errhandler(file, &found));
  CHECK(found == MPI_ERRORS_RETURN);
  OK(MPI_File_create_errhandler(handler, &mine));
  OK(MPI_File_set_errhandler(file, mine));
  OK(MPI_File_call_errhandler(file, MPI_ERR_OTHER));
  CHECK(handler_calls == 1);
  FAILS(MPI_ERR_COUNT, MPI_File_write_at(file, 0, &byte, -1, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(handler_calls == 2);
  int error_class = 0;
  MPI_Error_class(handler_code, &error_class);
  CHECK(error_class == MPI_ERR_COUNT);
  OK(MPI_Errhandler_free(&mine));
  OK(MPI_File_close(&file));
}

static void hints(void) {
  MPI_Info info, used;
  char value[MPI_MAX_INFO_VAL + 1];
  int present = 0;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "cb_buffer_size", "2097152"));
  if (check_rank == 0) remove(check_path);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
  OK(MPI_File_get_info(file, &used));
  OK(MPI_Info_get(used, "cb_buffer_size", MPI_MAX_INFO_VAL, value, &present));
  CHECK(present && strcmp(value, "2097152") == 0);
  OK(MPI_Info_free(&used));
  OK(MPI_File_set_info(file, info));
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info));
  OK(MPI_Info_free(&info));
  OK(MPI_File_close(&file));
}

static void opening_modes(void) {
  char bytes[4] = "abc", back[8] = {0};
  MPI_Offset offset = -1;
  MPI_Status status;

  file = check_open(0);
  OK(MPI_File_set_size(file, 0));
  OK(MPI_File_write_at_all(file, 4 * check_rank, bytes, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));

  /* Appending starts at the end, by both pointers. */
  OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_RDWR | MPI_MODE_APPEND, MPI_INFO_NULL,
                   &file));
  CHECK(position() == 4 * check_size);
  OK(MPI_File_get_position_shared(file, &offset));
  CHECK(offset == 4 * check_size);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_write_ordered(file, bytes, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_read_at(file, 4 * (check_size + check_rank), back, 8, MPI_BYTE, &status));
  CHECK(memcmp(back, "abc", 4) == 0);
  CHECK(check_count(&status, MPI_BYTE) == (check_rank == check_size - 1 ? 4 : 8));
  OK(MPI_File_close(&file));

  FAILS(MPI_ERR_FILE_EXISTS,
        MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL,
                      MPI_INFO_NULL, &file));

  OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_RDONLY | MPI_MODE_UNIQUE_OPEN,
                   MPI_INFO_NULL, &file));
  OK(MPI_File_read_at_all(file, 0, back, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(memcmp(back, "abc", 4) == 0);
  FAILS(MPI_ERR_READ_ONLY, MPI_File_write_at_all(file, 0, bytes, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));

  OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
  OK(MPI_File_write_at_all(file, 0, "xyz", check_rank == 0 ? 3 : 0, MPI_BYTE, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_ACCESS, MPI_File_read_at(file, 0, back, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));

  /* One process alone, beside the others. */
  MPI_File own;
  char own_path[sizeof check_path + 16];
  snprintf(own_path, sizeof own_path, "%s.%d", check_path, check_rank);
  OK(MPI_File_open(MPI_COMM_SELF, own_path,
                   MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                   &own));
  OK(MPI_File_write_all(own, bytes, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_write_shared(own, bytes, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at(own, 0, back, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(memcmp(back, "abc", 4) == 0);
  OK(MPI_File_close(&own));
  CHECK(access(own_path, F_OK) != 0);

  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank == 0) OK(MPI_File_delete(check_path, MPI_INFO_NULL));
  MPI_Barrier(MPI_COMM_WORLD);
  FAILS(MPI_ERR_NO_SUCH_FILE,
        MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
}

/* A file whose view or mode is left to the MPI, and comes back. */
static void passing_through(void) {
  int value = 7 + check_rank, seen = 0;
  file = check_open(0);
  OK(MPI_File_write_at_all(file, 4 * check_rank, &value, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  /* The standard lets a view that is only read repeat bytes; this one has an int twice. Open MPI
   * refuses it, and then the view before it stays. */
  MPI_Datatype twice;
  const int there[] = {0, 0};
  int pair[2] = {0, 0};
  OK(MPI_Type_create_indexed_block(2, 1, there, MPI_INT, &twice));
  OK(MPI_Type_commit(&twice));
  OK(MPI_File_close(&file));
  OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  if (MPI_File_set_view(file, 4 * check_rank, MPI_INT, twice, "native", MPI_INFO_NULL) ==
      MPI_SUCCESS) {
    OK(MPI_File_read(file, pair, 2, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(pair[0] == value && pair[1] == value);
  } else {
    CHECK(byte_offset(9) == 9);
  }
  OK(MPI_Type_free(&twice));
  OK(MPI_File_set_view(file, 4 * check_rank, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_read_all(file, &seen, 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(seen == value);
  OK(MPI_File_close(&file));

  MPI_Offset size = -1;
  OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL,
                   &file));
  OK(MPI_File_write_shared(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  OK(MPI_File_get_size(file, &size));
  CHECK(size == 4 * check_size);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_write_at_all(file, 4 * check_rank, &value, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));

  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "forebay", "disable"));
  OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_RDWR, info, &file));
  OK(MPI_Info_free(&info));
  seen = 0;
  OK(MPI_File_read_at_all(file, 4 * check_rank, &seen, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(seen == value);
  OK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
  check_start(argc, argv, "state");
  views_and_pointers();
  empty_views();
  sizes();
  modes_and_group();
  error_handlers();
  hints();
  opening_modes();
  passing_through();
  return check_finish();
}
