/* Goal: no value of a hint, however wrong or large, stops a program, makes it wait or changes its
 * data; and what is told of hints is so. Some of these values make a stock MPI divide by zero, or
 * end the job for want of memory. Method: each value at open and once more for the open file, with
 * collective and independent accesses that are read back. */
#define _GNU_SOURCE
#include "tests/mpi/intercept_check.h"

enum { count = 3000 };

static const char* const values[][2] = {
    {"cb_buffer_size", "banana"},
    {"cb_buffer_size", "-1"},
    {"cb_buffer_size", "0"},
    {"cb_buffer_size", "1"},
    {"cb_buffer_size", "2147483648"},
    {"cb_buffer_size", "9223372036854775807"},
    {"cb_buffer_size", "999999999999999999999999"},
    {"cb_nodes", "0"},
    {"cb_nodes", "-4"},
    {"cb_nodes", "1000000000"},
    {"cb_config_list", "((("},
    {"striping_unit", "1"},
    {"striping_unit", "9223372036854775807"},
    {"striping_factor", "1000000000"},
    {"ind_rd_buffer_size", "0"},
    {"ind_rd_buffer_size", "1"},
    {"ind_rd_buffer_size", "9223372036854775807"},
    {"ind_wr_buffer_size", "0"},
    {"ind_wr_buffer_size", "1"},
    {"ind_wr_buffer_size", "9223372036854775807"},
    {"forebay_io_depth", "1000000"},
    {"forebay_nonsense", "1"},
};

static void verify(MPI_File file, int first) {
  static int written[count], back[count];
  MPI_Datatype one_of_all;
  OK(MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)sizeof(int) * check_size, &one_of_all));
  OK(MPI_Type_commit(&one_of_all));
  OK(MPI_File_set_view(file, (MPI_Offset)sizeof(int) * check_rank, MPI_INT, one_of_all, "native",
                       MPI_INFO_NULL));
  OK(MPI_Type_free(&one_of_all));
  for (int i = 0; i < count; ++i) written[i] = first + i * check_size + check_rank;
  memset(back, 0, sizeof back);
  OK(MPI_File_write_all(file, written, count, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at_all(file, 0, back, count, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(memcmp(written, back, sizeof back) == 0);
  memset(back, 0, sizeof back);
  OK(MPI_File_write_at(file, count, written, count, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at(file, count, back, count, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(memcmp(written, back, sizeof back) == 0);
}

/* The value of `key` in what is in force; "" if it is not there. */
static const char* in_force(MPI_File file, const char* key) {
  static char value[MPI_MAX_INFO_VAL + 1];
  MPI_Info used;
  int present = 0;
  value[0] = '\0';
  OK(MPI_File_get_info(file, &used));
  OK(MPI_Info_get(used, key, MPI_MAX_INFO_VAL, value, &present));
  OK(MPI_Info_free(&used));
  return present ? value : "";
}

static void set_one(MPI_File file, const char* key, const char* value) {
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, key, value));
  OK(MPI_File_set_info(file, info));
  OK(MPI_Info_free(&info));
}

/* What is told to be in force is: aggregators and buffers may change until data has gone through
 * them, the cache is that of the opening. Nothing is told of those that the MPI would have used. */
static void after_opening(void) {
  MPI_File file = check_open(0);
  CHECK(atoi(in_force(file, "cb_nodes")) == check_size);
  CHECK(strcmp(in_force(file, "romio_aggregator_list"), "") == 0);
  CHECK(strcmp(in_force(file, "cb_config_list"), "") == 0);
  set_one(file, "romio_cb_write", "enable");
  set_one(file, "cb_nodes", "1");
  set_one(file, "cb_buffer_size", "65536");
  CHECK(strcmp(in_force(file, "cb_nodes"), "1") == 0);
  CHECK(strcmp(in_force(file, "cb_buffer_size"), "65536") == 0);
  verify(file, 2);
  set_one(file, "cb_nodes", "2");
  set_one(file, "cb_buffer_size", "131072");
  CHECK(strcmp(in_force(file, "cb_nodes"), "1") == 0);
  CHECK(strcmp(in_force(file, "cb_buffer_size"), "65536") == 0);
  set_one(file, "forebay_cache", "enable");
  CHECK(strcmp(in_force(file, "forebay_cache"), "") == 0);
  verify(file, 3);
  OK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
  check_start(argc, argv, "hints");
  for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
    MPI_Info info, used;
    MPI_File file;
    char found[MPI_MAX_INFO_VAL + 1] = "";
    int present = 0;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "romio_cb_write", "enable"));
    OK(MPI_Info_set(info, "romio_cb_read", "enable"));
    OK(MPI_Info_set(info, "romio_ds_write", "enable"));
    OK(MPI_Info_set(info, values[i][0], values[i][1]));
    OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    verify(file, 0);
    OK(MPI_File_get_info(file, &used));
    OK(MPI_Info_get(used, "cb_buffer_size", MPI_MAX_INFO_VAL, found, &present));
    CHECK(present && atoll(found) >= 4096);
    OK(MPI_Info_free(&used));
    OK(MPI_File_set_info(file, info));
    verify(file, 1);
    OK(MPI_File_close(&file));
    OK(MPI_Info_free(&info));
  }
  after_opening();
  return check_finish();
}
