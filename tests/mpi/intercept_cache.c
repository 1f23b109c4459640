/* Goal: with the write-behind cache on, a program sees its file as if there were none, what it
 * writes waits in a log, and after the close all of it is in the file and no log is left. Method:
 * the file is looked at beside the MPI, by stat and read; the last argument is a directory in which
 * the test makes one for logs. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/mpi/intercept_check.h"

enum { block = 1000, blocks = 64 };

static char log_path[4096];
static MPI_File file;

static unsigned char byte_of(int rank, int turn, int i) {
  return (unsigned char)(1 + (rank * 31 + turn * 57 + i * 7) % 251);
}

/* Ranks interleave blocks; cache and exchange as asked. */
static void open_once_more(const char* flush, const char* exchange) {
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "e10_cache", "enable"));
  OK(MPI_Info_set(info, "e10_cache_path", log_path));
  OK(MPI_Info_set(info, "forebay_cache_flush", flush));
  OK(MPI_Info_set(info, "forebay_cache_capacity", "32MiB"));
  OK(MPI_Info_set(info, "romio_cb_write", exchange));
  OK(MPI_Info_set(info, "romio_cb_read", exchange));
  OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
  OK(MPI_Info_free(&info));
  check_interleave(file, 0, block);
}

static void open_interleaved(const char* flush, const char* exchange) {
  if (check_rank == 0) remove(check_path);
  MPI_Barrier(MPI_COMM_WORLD);
  open_once_more(flush, exchange);
}

static void write_turn(int turn) {
  static unsigned char bytes[block * blocks];
  for (int i = 0; i < block * blocks; ++i) bytes[i] = byte_of(check_rank, turn, i);
  OK(MPI_File_write_at_all(file, 0, bytes, block * blocks, MPI_BYTE, MPI_STATUS_IGNORE));
}

static long long size_beside(void) {
  struct stat status;
  CHECK(stat(check_path, &status) == 0);
  return status.st_size;
}

static int entries(const char* path) {
  DIR* directory = opendir(path);
  if (directory == NULL) return 0;
  int count = 0;
  for (const struct dirent* entry; (entry = readdir(directory)) != NULL;) {
    count += entry->d_name[0] != '.';
  }
  closedir(directory);
  return count;
}

static int logs(void) {
  char path[4200];
  snprintf(path, sizeof path, "%s/forebay-cache-%u", log_path, (unsigned)geteuid());
  return entries(path);
}

/* What the file holds, read without the MPI. */
static void expect_file(int turn) {
  const int descriptor = open(check_path, O_RDONLY);
  CHECK(descriptor >= 0);
  static unsigned char bytes[block];
  for (int i = 0; i < blocks; ++i) {
    for (int rank = 0; rank < check_size; ++rank) {
      const off_t at = (off_t)block * (i * check_size + rank);
      CHECK(pread(descriptor, bytes, block, at) == block);
      for (int j = 0; j < block; ++j) CHECK(bytes[j] == byte_of(rank, turn, i * block + j));
    }
  }
  close(descriptor);
}

static void expect_mine(int turn, int collective) {
  static unsigned char bytes[block * blocks];
  MPI_Status status;
  memset(bytes, 0, sizeof bytes);
  if (collective) {
    OK(MPI_File_read_at_all(file, 0, bytes, block * blocks, MPI_BYTE, &status));
  } else {
    OK(MPI_File_read_at(file, 0, bytes, block * blocks, MPI_BYTE, &status));
  }
  CHECK(check_count(&status, MPI_BYTE) == block * blocks);
  for (int i = 0; i < block * blocks; ++i) CHECK(bytes[i] == byte_of(check_rank, turn, i));
}

static void expect_no_trace(void) {
  char sidecar[4200];
  const char* name = strrchr(check_path, '/') + 1;
  snprintf(sidecar, sizeof sidecar, "%.*s.%s.forebay-dirty", (int)(name - check_path), check_path,
           name);
  CHECK(access(sidecar, F_OK) != 0);
  CHECK(logs() == 0);
}

static void writes_wait_until_the_close(void) {
  const MPI_Offset all = (MPI_Offset)block * blocks * check_size;
  MPI_Offset size = -1;
  open_interleaved("onclose", "enable");
  write_turn(1);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(size_beside() == 0);
  CHECK(logs() > 0);
  OK(MPI_File_get_size(file, &size));
  CHECK(size == all);
  MPI_Barrier(MPI_COMM_WORLD);
  write_turn(2);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(size_beside() == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_close(&file));
  expect_file(2);
  expect_no_trace();
  MPI_Barrier(MPI_COMM_WORLD);
}

static void everybody_sees_what_was_written(const char* flush, const char* exchange) {
  open_interleaved(flush, exchange);
  write_turn(1);
  expect_mine(1, 0);
  write_turn(2);
  expect_mine(2, 1);
  /* Over what an aggregator's log may hold, and the other way round. */
  static unsigned char bytes[block * blocks];
  for (int i = 0; i < block * blocks; ++i) bytes[i] = byte_of(check_rank, 3, i);
  OK(MPI_File_write_at(file, 0, bytes, block * blocks, MPI_BYTE, MPI_STATUS_IGNORE));
  expect_mine(3, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  expect_mine(3, 1);
  write_turn(4);
  expect_mine(4, 0);
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  expect_file(4);
  MPI_Barrier(MPI_COMM_WORLD);
  write_turn(5);
  OK(MPI_File_set_atomicity(file, 1));
  MPI_Barrier(MPI_COMM_WORLD);
  expect_file(5);
  MPI_Barrier(MPI_COMM_WORLD);
  write_turn(6);
  MPI_Barrier(MPI_COMM_WORLD);
  expect_file(6);
  OK(MPI_File_set_atomicity(file, 0));
  write_turn(7);
  OK(MPI_File_close(&file));
  expect_file(7);
  expect_no_trace();
  MPI_Barrier(MPI_COMM_WORLD);
}

/* What was written through `from` is there for `to`. */
static void sync_between(MPI_File from, MPI_File to) {
  OK(MPI_File_sync(from));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(to));
}

static void two_handles_are_of_one_file(void) {
  open_interleaved("onclose", "enable");
  MPI_File first = file;
  open_once_more("onclose", "disable");
  MPI_File second = file;
  file = first;
  write_turn(1);
  sync_between(first, second);
  file = second;
  expect_mine(1, 1);
  write_turn(2);
  expect_mine(2, 0);
  sync_between(second, first);
  file = first;
  expect_mine(2, 1);
  write_turn(3);
  OK(MPI_File_close(&first));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(second));
  file = second;
  expect_mine(3, 0);
  write_turn(4);
  OK(MPI_File_close(&file));
  expect_file(4);
  expect_no_trace();
  MPI_Barrier(MPI_COMM_WORLD);
}

/* After a close that waits for nothing, whoever opens the file, or one of its series, waits. */
static void an_early_close_is_made_up_for(void) {
  char first[sizeof check_path];
  open_interleaved("deferred", "enable");
  write_turn(1);
  OK(MPI_File_close(&file));
  expect_file(1); /* Opened past MPI, by any rank, it is whole. */
  MPI_Barrier(MPI_COMM_WORLD);
  open_interleaved("deferred", "enable");
  write_turn(1);
  OK(MPI_File_close(&file));
  open_once_more("deferred", "enable");
  expect_file(1);
  expect_mine(1, 0);
  OK(MPI_File_close(&file));

  memcpy(first, check_path, sizeof first);
  char* number = strrchr(check_path, '.');
  for (int i = 0; i < 3; ++i) {
    snprintf(number, 8, "%d.dat", 9 + i);
    open_interleaved("deferred", "enable");
    if (i > 0) {
      snprintf(number, 8, "%d.dat", 8 + i);
      expect_file(i);
      MPI_Barrier(MPI_COMM_WORLD);
      if (check_rank == 0) remove(check_path);
      snprintf(number, 8, "%d.dat", 9 + i);
    }
    write_turn(1 + i);
    OK(MPI_File_close(&file));
  }
  /* One rank alone. */
  if (check_rank == 0) {
    OK(MPI_File_open(MPI_COMM_SELF, check_path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    expect_file(3);
    OK(MPI_File_close(&file));
    remove(check_path);
  }
  memcpy(check_path, first, sizeof first);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void sizes_are_as_without(void) {
  const MPI_Offset all = (MPI_Offset)block * blocks * check_size;
  MPI_Offset size = -1;
  open_interleaved("onclose", "enable");
  write_turn(1);
  OK(MPI_File_seek(file, 0, MPI_SEEK_END));
  OK(MPI_File_get_position(file, &size));
  CHECK(size == block * blocks);
  OK(MPI_File_set_size(file, all / 2));
  OK(MPI_File_get_size(file, &size));
  CHECK(size == all / 2);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_preallocate(file, all));
  OK(MPI_File_get_size(file, &size));
  CHECK(size == all);
  MPI_Barrier(MPI_COMM_WORLD);
  write_turn(2);
  OK(MPI_File_close(&file));
  expect_file(2);
  CHECK(size_beside() == all);
  expect_no_trace();
  MPI_Barrier(MPI_COMM_WORLD);
}

static void deleted_files_leave_no_trace(void) {
  if (check_rank == 0) remove(check_path);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "e10_cache", "enable"));
  OK(MPI_Info_set(info, "e10_cache_path", log_path));
  OK(MPI_Info_set(info, "e10_cache_flush_flag", "flush_onclose"));
  OK(MPI_File_open(MPI_COMM_WORLD, check_path,
                   MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file));
  OK(MPI_Info_free(&info));
  check_interleave(file, 0, block);
  write_turn(1);
  /* What rank 0 holds is there for the others, who may read although it closes the file. */
  if (check_rank != 0) expect_mine(1, 0);
  OK(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(access(check_path, F_OK) != 0);
  expect_no_trace();
  MPI_Barrier(MPI_COMM_WORLD);
}

/* As HDF5 does: an attribute that was set before the first file was opened is taken away after
 * Forebay's, and the library writes to its file once more, and closes it. */
static int close_at_last(MPI_Comm self, int keyval, void* value, void* extra) {
  (void)self, (void)keyval, (void)value, (void)extra;
  write_turn(9);
  MPI_Barrier(MPI_COMM_WORLD);
  expect_file(9); /* At once. */
  expect_mine(9, 1);
  OK(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  expect_file(9);
  expect_no_trace(); /* Of the file that was closed early neither. */
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank == 0) remove(check_path);
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  check_start(argc, argv, "intercept_cache");
  int keyval = MPI_KEYVAL_INVALID;
  OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, close_at_last, &keyval, NULL));
  OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL));
  snprintf(log_path, sizeof log_path, "%s/logs", argv[1]);
  if (check_rank == 0) mkdir(log_path, 0700);
  MPI_Barrier(MPI_COMM_WORLD);
  writes_wait_until_the_close();
  everybody_sees_what_was_written("onclose", "enable");
  everybody_sees_what_was_written("immediate", "enable");
  everybody_sees_what_was_written("onsync", "disable");
  two_handles_are_of_one_file();
  an_early_close_is_made_up_for();
  sizes_are_as_without();
  deleted_files_leave_no_trace();
  /* A file that is closed early, and one that is not closed: MPI_Finalize finishes both. */
  char early[sizeof check_path];
  memcpy(early, check_path, sizeof early);
  open_interleaved("deferred", "enable");
  write_turn(8);
  OK(MPI_File_close(&file));
  strcat(check_path, ".open");
  open_interleaved("deferred", "enable");
  /* One log, not of all ranks. */
  if (check_rank == 0) OK(MPI_File_write_at(file, 0, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI_Finalize();
  memcpy(check_path, early, sizeof early);
  if (check_size == 1) {
    expect_file(8);
    expect_no_trace();
  }
  if (check_rank == 0) remove(check_path);
  return 0;
}
