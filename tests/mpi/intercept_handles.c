/* Goal: a program that has a file open by two handles at a time reads through each of them what it
 * wrote through the other one, without a sync, and finds in the file what it wrote last, whichever
 * handle is closed first: as on a file system without a cache. Method: handles with and without a
 * write-behind cache, on all ranks and on each by itself, under one name and under two; each rank
 * has a region of the file, and reads its neighbour's after a barrier. The last argument is a
 * directory in which the test makes one for logs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/mpi/intercept_check.h"

/* Regions are so far apart that ranks do not meet in what the cache has as one. */
enum { region = 20000, part = region / 2, apart = 1 << 20 };

/* How a handle is opened. */
struct way {
  const char* cache; /* When it is flushed; NULL: there is none. "disable": left to the MPI. */
  int alone;         /* By each rank by itself. */
  const char* name;  /* What stands behind the file's name: "" or that of a link. */
  int append;
};

static char log_path[4096];

static int is_left_to_mpi(const struct way* way) {
  return way->cache != NULL && strcmp(way->cache, "disable") == 0;
}

static MPI_File open_as(const struct way* way) {
  char path[sizeof check_path + 16];
  MPI_Info info;
  MPI_File file;
  OK(MPI_Info_create(&info));
  if (is_left_to_mpi(way)) {
    OK(MPI_Info_set(info, "forebay", "disable"));
  } else if (way->cache != NULL) {
    OK(MPI_Info_set(info, "e10_cache", "enable"));
    OK(MPI_Info_set(info, "e10_cache_path", log_path));
    OK(MPI_Info_set(info, "forebay_cache_flush", way->cache));
    OK(MPI_Info_set(info, "forebay_cache_capacity", "32MiB"));
    OK(MPI_Info_set(info, "romio_cb_write", "enable"));
  }
  snprintf(path, sizeof path, "%s%s", check_path, way->name);
  OK(MPI_File_open(way->alone ? MPI_COMM_SELF : MPI_COMM_WORLD, path,
                   MPI_MODE_RDWR | (way->append ? MPI_MODE_APPEND : 0), info, &file));
  OK(MPI_Info_free(&info));
  return file;
}

static MPI_Offset region_of(int rank) { return (MPI_Offset)apart * rank; }

/* Behind the last one's region. */
static MPI_Offset end_of_all(void) { return region_of(check_size - 1) + region; }

/* This rank's bytes of its region, from `at` on. */
static void write_mine(MPI_File file, int at, int length, int turn) {
  static unsigned char bytes[region];
  memset(bytes, 20 * turn + check_rank, sizeof bytes);
  OK(MPI_File_write_at(file, region_of(check_rank) + at, bytes, length, MPI_BYTE,
                       MPI_STATUS_IGNORE));
}

static void write_mine_together(MPI_File file, int turn) {
  static unsigned char bytes[region];
  memset(bytes, 20 * turn + check_rank, sizeof bytes);
  OK(MPI_File_write_at_all(file, region_of(check_rank), bytes, region, MPI_BYTE,
                           MPI_STATUS_IGNORE));
}

static void expect_bytes(const unsigned char* bytes, int length, int rank, int turn) {
  for (int i = 0; i < length; ++i) CHECK(bytes[i] == 20 * turn + rank);
}

/* The two parts of a rank's region. */
static void expect(MPI_File file, int rank, int first_turn, int second_turn) {
  static unsigned char bytes[region];
  MPI_Status status;
  memset(bytes, 0, sizeof bytes);
  OK(MPI_File_read_at(file, region_of(rank), bytes, region, MPI_BYTE, &status));
  CHECK(check_count(&status, MPI_BYTE) == region);
  expect_bytes(bytes, part, rank, first_turn);
  expect_bytes(bytes + part, region - part, rank, second_turn);
}

/* What the file holds, read without the MPI. */
static void expect_file(int first_turn, int second_turn) {
  static unsigned char bytes[region];
  const int descriptor = open(check_path, O_RDONLY);
  CHECK(descriptor >= 0);
  for (int rank = 0; rank < check_size; ++rank) {
    CHECK(pread(descriptor, bytes, region, region_of(rank)) == region);
    expect_bytes(bytes, part, rank, first_turn);
    expect_bytes(bytes + part, region - part, rank, second_turn);
  }
  close(descriptor);
}

static void make_file(void) {
  static const char* const links[] = {"", ".hard", ".soft"};
  char path[sizeof check_path + 16];
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank == 0) {
    for (int i = 0; i < 3; ++i) {
      snprintf(path, sizeof path, "%s%s", check_path, links[i]);
      unlink(path);
    }
    const int descriptor = open(check_path, O_CREAT | O_WRONLY, 0600);
    CHECK(descriptor >= 0);
    close(descriptor);
    snprintf(path, sizeof path, "%s%s", check_path, links[1]);
    CHECK(link(check_path, path) == 0);
    snprintf(path, sizeof path, "%s%s", check_path, links[2]);
    CHECK(symlink(check_path, path) == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void two_handles_are_of_one_file(const struct way* first, const struct way* second,
                                        int first_closes_first) {
  const int neighbour = (check_rank + 1) % check_size;
  const MPI_Offset all = end_of_all();
  MPI_Offset at = -1;
  make_file();
  MPI_File a = open_as(first);
  write_mine(a, 0, region, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File b = open_as(second);
  /* What was written before there was a second handle. */
  OK(MPI_File_get_position(b, &at));
  CHECK(at == (second->append ? all : 0));
  OK(MPI_File_get_size(b, &at));
  CHECK(at == all);
  expect(b, check_rank, 1, 1);
  expect(b, neighbour, 1, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  /* What is written while there are two, in both directions. OMPIO's own collective calls may
   * return before an aggregator has written. */
  if (first->alone || is_left_to_mpi(first)) {
    write_mine(a, 0, region, 2);
  } else {
    write_mine_together(a, 2);
  }
  expect(b, check_rank, 2, 2);
  write_mine(b, part, region - part, 3);
  expect(a, check_rank, 2, 3);
  MPI_Barrier(MPI_COMM_WORLD);
  expect(a, neighbour, 2, 3);
  expect(b, neighbour, 2, 3);
  MPI_Barrier(MPI_COMM_WORLD);
  /* The end, too. */
  if (check_rank == check_size - 1) {
    OK(MPI_File_write_at(a, all, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_seek(b, 0, MPI_SEEK_END));
    OK(MPI_File_get_position(b, &at));
    CHECK(at == all + 1);
    OK(MPI_File_write_at(b, all + 1, "yz", 2, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_get_size(a, &at));
    CHECK(at == all + 3);
  }
  /* Who wrote last is not overtaken when a handle is closed. */
  write_mine(a, 0, region, 4);
  write_mine(b, 0, part, 5);
  write_mine(a, part, region - part, 6);
  OK(MPI_File_close(first_closes_first ? &a : &b));
  expect(first_closes_first ? b : a, check_rank, 5, 6);
  write_mine(first_closes_first ? b : a, part, region - part, 7);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_close(first_closes_first ? &b : &a));
  MPI_Barrier(MPI_COMM_WORLD);
  expect_file(5, 7);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Other ranks, which have one handle, hear of it in no call. */
static void one_rank_has_a_second_handle(const char* cache) {
  const struct way together = {cache, 0, "", 0};
  const struct way by_itself = {cache, 1, "", 0};
  make_file();
  MPI_File a = open_as(&together);
  write_mine(a, 0, region, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File b = MPI_FILE_NULL;
  if (check_rank == 0) {
    b = open_as(&by_itself);
    for (int rank = 0; rank < check_size; ++rank) expect(b, rank, 1, 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  write_mine(a, part, region - part, 2);
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank == 0) {
    for (int rank = 0; rank < check_size; ++rank) expect(b, rank, 1, 2);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  write_mine(check_rank == 0 ? b : a, 0, part, 3);
  OK(MPI_File_close(&a));
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank == 0) {
    for (int rank = 0; rank < check_size; ++rank) expect(b, rank, 3, 2);
    OK(MPI_File_close(&b));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  expect_file(3, 2);
}

/* One handle after the other has a cache each. */
static void a_handle_that_is_closed_does_not_count(void) {
  const struct way cached = {"onclose", 0, "", 0};
  struct stat status;
  make_file();
  for (int i = 0; i < 2; ++i) {
    MPI_File file = open_as(&cached);
    CHECK(stat(check_path, &status) == 0);
    CHECK(status.st_size == end_of_all() * i);
    MPI_Barrier(MPI_COMM_WORLD);
    write_mine(file, 0, region, 1 + i);
    MPI_Barrier(MPI_COMM_WORLD);
    if (getenv("FOREBAY_TEST_PRELOADED") != NULL) {
      CHECK(stat(check_path, &status) == 0);
      CHECK(status.st_size == end_of_all() * i);
      if (i == 1) expect_file(1, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    expect_file(1 + i, 1 + i);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  check_start(argc, argv, "intercept_handles");
  snprintf(log_path, sizeof log_path, "%s/logs", argv[1]);
  if (check_rank == 0) mkdir(log_path, 0700);
  a_handle_that_is_closed_does_not_count();
  static const char* const flushes[] = {"immediate", "onsync", "onclose", "deferred"};
  for (int i = 0; i < 4; ++i) {
    const struct way cached = {flushes[i], 0, "", 0};
    const struct way others[] = {
        {flushes[i], 0, "", 1}, {NULL, 0, ".hard", 0},      {flushes[i], 1, ".soft", 0},
        {NULL, 1, "", 1},       {"disable", 0, ".soft", 1}, {"disable", 1, ".hard", 0},
    };
    for (int j = 0; j < 6; ++j) {
      two_handles_are_of_one_file(&cached, &others[j], (i + j) % 2);
      two_handles_are_of_one_file(&others[j], &cached, (i + j) % 2);
    }
    one_rank_has_a_second_handle(flushes[i]);
  }
  make_file();
  if (check_rank == 0) {
    remove(check_path);
    strcat(check_path, ".hard");
    remove(check_path);
    memcpy(strrchr(check_path, '.'), ".soft", 5);
    remove(check_path);
  }
  return check_finish();
}
