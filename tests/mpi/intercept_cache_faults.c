/* Goal: with the write-behind cache, a file system that refuses what the logs hold makes a later
 * write, sync or close fail on all ranks, with the class that fits; nobody hangs, nothing that was
 * taken is lost, and once the file system takes it, it is in the file. A log that cannot be written
 * is no error at all, and one that is damaged is one of who reads those bytes alone. Method: a
 * limit on the size of files that only the program's file exceeds; calls that stand in front of the
 * C library's and fail for logs; a bit flipped in a log; and for intercept_cache_faults_check.py,
 * file systems that are full. Arguments: one of the cases below, the directory for the file, the
 * one for logs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#include "tests/mpi/intercept_check.h"

enum { block = 4096, blocks = 32, mine = block * blocks };

static const MPI_Offset beyond_limit = 64 << 20;
static const char* logs;
static char ballast[4200];
static MPI_File file;

/* Writes of this rank to logs that succeed before all fail; negative: they all succeed. */
static atomic_int good_log_writes = -1;
static int log_errno;
static atomic_int logs_stay; /* They cannot be removed. */

static int is_log(int descriptor) {
  char link[64];
  char path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  return length >= 0 && strncmp(path, logs, strlen(logs)) == 0;
}

static int fails_now(int descriptor) {
  if (atomic_load(&good_log_writes) < 0 || !is_log(descriptor)) return 0;
  for (int left = atomic_load(&good_log_writes); left > 0;) {
    if (atomic_compare_exchange_weak(&good_log_writes, &left, left - 1)) return 0;
  }
  errno = log_errno;
  return 1;
}

__attribute__((visibility("default"))) ssize_t pwrite(int descriptor, const void* bytes,
                                                      size_t length, off_t offset) {
  return fails_now(descriptor) ? -1 : syscall(SYS_pwrite64, descriptor, bytes, length, offset);
}

__attribute__((visibility("default"))) ssize_t pwritev(int descriptor, const struct iovec* pieces,
                                                       int count, off_t offset) {
  return fails_now(descriptor) ? -1 : syscall(SYS_pwritev, descriptor, pieces, count, offset, 0L);
}

__attribute__((visibility("default"))) int unlinkat(int directory, const char* name, int flags) {
  if (atomic_load(&logs_stay) && is_log(directory)) {
    errno = EROFS;
    return -1;
  }
  return (int)syscall(SYS_unlinkat, directory, name, flags);
}

static unsigned char byte_of(int rank, int turn, int i) {
  return (unsigned char)(1 + (rank * 31 + turn * 57 + i * 7) % 251);
}

/* Ranks interleave blocks from `start` on, through aggregators. */
static void open_interleaved(const char* flush, const char* capacity, MPI_Offset start) {
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "e10_cache", "enable"));
  OK(MPI_Info_set(info, "e10_cache_path", logs));
  OK(MPI_Info_set(info, "forebay_cache_flush", flush));
  OK(MPI_Info_set(info, "forebay_cache_capacity", capacity));
  OK(MPI_Info_set(info, "forebay_cache_compress", "disable")); /* A bit is looked for in logs. */
  OK(MPI_Info_set(info, "romio_cb_write", "enable"));
  OK(MPI_Info_set(info, "cb_buffer_size", "65536"));
  char ranks[12];
  snprintf(ranks, sizeof ranks, "%d", check_size);
  OK(MPI_Info_set(info, "cb_nodes", ranks)); /* All have logs. */
  if (check_rank == 0) remove(check_path);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
  OK(MPI_Info_free(&info));
  check_interleave(file, start, block);
}

static int write_turn(int turn) {
  static unsigned char bytes[mine];
  for (int i = 0; i < mine; ++i) bytes[i] = byte_of(check_rank, turn, i);
  return MPI_File_write_at_all(file, (MPI_Offset)(turn - 1) * mine, bytes, mine, MPI_BYTE,
                               MPI_STATUS_IGNORE);
}

/* What the file holds, read without the MPI. */
static void expect_file(int turns, MPI_Offset start) {
  MPI_Barrier(MPI_COMM_WORLD);
  const int descriptor = open(check_path, O_RDONLY);
  CHECK(descriptor >= 0);
  static unsigned char bytes[block];
  for (int i = 0; i < turns * blocks; ++i) {
    for (int rank = 0; rank < check_size; ++rank) {
      CHECK(pread(descriptor, bytes, block, start + (off_t)block * (i * check_size + rank)) ==
            block);
      for (int j = 0; j < block; ++j) {
        CHECK(bytes[j] == byte_of(rank, i / blocks + 1, i % blocks * block + j));
      }
    }
  }
  close(descriptor);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void limit_files(int limited) {
  static struct rlimit before;
  if (limited) {
    getrlimit(RLIMIT_FSIZE, &before);
    const struct rlimit limit = {(rlim_t)beyond_limit, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  } else {
    setrlimit(RLIMIT_FSIZE, &before);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* The file system lacks the space that it took; or it has it again. */
static void fill_file_system(int full) {
  if (check_rank == 0 && full) {
    const int descriptor = open(ballast, O_CREAT | O_WRONLY, 0600);
    CHECK(descriptor >= 0);
    static char bytes[65536];
    while (write(descriptor, bytes, sizeof bytes) > 0) continue;
    close(descriptor);
  } else if (check_rank == 0) {
    CHECK(remove(ballast) == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void a_sync_fails_until_the_file_system_takes_it(const char* flush) {
  open_interleaved(flush, "32MiB", beyond_limit);
  limit_files(1);
  OK(write_turn(1));
  FAILS(MPI_ERR_IO, MPI_File_sync(file));
  FAILS(MPI_ERR_IO, MPI_File_sync(file));
  limit_files(0);
  OK(MPI_File_sync(file));
  expect_file(1, beyond_limit);
  OK(write_turn(2));
  OK(MPI_File_close(&file));
  expect_file(2, beyond_limit);
}

static void a_write_meets_what_failed_in_the_background(void) {
  open_interleaved("immediate", "32MiB", beyond_limit);
  limit_files(1);
  /* The same bytes again: sooner or later the flush of earlier ones has failed. */
  int code;
  while ((code = write_turn(1)) == MPI_SUCCESS) continue;
  FAILS(MPI_ERR_IO, code);
  limit_files(0);
  OK(MPI_File_sync(file)); /* Else another rank's flush may be still to be told of. */
  OK(write_turn(1));
  OK(write_turn(2));
  OK(MPI_File_close(&file));
  expect_file(2, beyond_limit);
}

static void a_change_of_size_fails(void) {
  open_interleaved("onclose", "32MiB", beyond_limit);
  limit_files(1);
  OK(write_turn(1));
  FAILS(MPI_ERR_IO, MPI_File_set_size(file, 1000));
  limit_files(0);
  OK(MPI_File_sync(file));
  expect_file(1, beyond_limit);
  OK(MPI_File_set_size(file, 1000));
  OK(MPI_File_close(&file));
}

static void the_next_open_fails_after_an_early_close(void) {
  open_interleaved("deferred", "32MiB", beyond_limit);
  limit_files(1);
  OK(write_turn(1));
  OK(MPI_File_close(&file));
  FAILS(MPI_ERR_IO, MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  limit_files(0);
  OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  expect_file(1, beyond_limit);
  OK(MPI_File_close(&file));
}

/* As long as it is open, it is the opening of another handle that brings bytes to the file. */
static void a_second_handle_is_opened_once_the_file_system_takes_it(void) {
  MPI_File second;
  open_interleaved("onclose", "32MiB", beyond_limit);
  limit_files(1);
  OK(write_turn(1));
  FAILS(MPI_ERR_IO,
        MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_RDWR, MPI_INFO_NULL, &second));
  FAILS(MPI_ERR_IO, write_turn(2));
  limit_files(0);
  OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_RDWR, MPI_INFO_NULL, &second));
  expect_file(1, beyond_limit);
  OK(write_turn(2));
  expect_file(2, beyond_limit);
  OK(MPI_File_close(&second));
  OK(MPI_File_close(&file));
}

/* By whatever name: the file is the same. */
static void so_does_the_next_open_by_another_name(void) {
  char before[sizeof check_path];
  memcpy(before, check_path, sizeof before);
  open_interleaved("deferred", "32MiB", beyond_limit);
  limit_files(1);
  OK(write_turn(1));
  OK(MPI_File_close(&file));
  memcpy(strrchr(check_path, '/') + 1, "moved", sizeof "moved");
  if (check_rank == 0) CHECK(link(before, check_path) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  FAILS(MPI_ERR_IO, MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  limit_files(0);
  OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  expect_file(1, beyond_limit);
  OK(MPI_File_close(&file));
  if (check_rank == 0) CHECK(remove(check_path) == 0);
  memcpy(check_path, before, sizeof before);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* The call does not get to the file. Not for unlinkat(), which is our own here. */
#define IS_TOLD(call, failure) CHECK((call) == (failure) && errno == EFBIG)

static void no_call_by_name_gets_to_it(int here) {
  struct stat status;
  struct statx extended;
  FILE* stream = fopen("/dev/null", "r");
  IS_TOLD(open(check_path, O_RDONLY), -1);
  IS_TOLD(openat(here, check_path, O_RDONLY), -1);
  IS_TOLD(creat(check_path, 0600), -1);
  IS_TOLD(fopen(check_path, "r"), NULL);
  IS_TOLD(freopen(check_path, "r", stream), NULL);
  fclose(stream);
  IS_TOLD(stat(check_path, &status), -1);
  IS_TOLD(lstat(check_path, &status), -1);
  IS_TOLD(fstatat(here, check_path, &status, 0), -1);
  IS_TOLD(statx(here, check_path, 0, STATX_SIZE, &extended), -1);
  IS_TOLD(truncate(check_path, 0), -1);
  IS_TOLD(unlink(check_path), -1);
  IS_TOLD(remove(check_path), -1);
  IS_TOLD(rename(check_path, "elsewhere"), -1);
  IS_TOLD(rename("elsewhere", check_path), -1);
  IS_TOLD(renameat(here, check_path, here, "elsewhere"), -1);
  IS_TOLD(renameat2(here, "elsewhere", here, check_path, 0), -1);
  /* A flush would change the time that was set. */
  IS_TOLD(utime(check_path, NULL), -1);
  IS_TOLD(utimes(check_path, NULL), -1);
  IS_TOLD(lutimes(check_path, NULL), -1);
  IS_TOLD(futimesat(here, check_path, NULL), -1);
  IS_TOLD(utimensat(here, check_path, NULL, 0), -1);
  /* The file's own directory is where the descriptor says. */
  char above[sizeof check_path];
  memcpy(above, check_path, sizeof above);
  char* const name = strrchr(above, '/');
  *name = '\0';
  const int directory = open(above, O_RDONLY | O_DIRECTORY);
  CHECK(directory >= 0);
  IS_TOLD(fstatat(directory, name + 1, &status, 0), -1);
  IS_TOLD(utimensat(directory, name + 1, NULL, 0), -1);
  close(directory);
}

/* The same past MPI: no call by name sees the file as long as its bytes are not in it. */
static void so_does_every_other_way_to_it_after_an_early_close(void) {
  open_interleaved("deferred", "32MiB", beyond_limit);
  limit_files(1);
  OK(write_turn(1));
  OK(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  struct stat status;
  const int here = open(".", O_RDONLY | O_DIRECTORY);
  CHECK(here >= 0);
  no_call_by_name_gets_to_it(here);
  /* Its notice would move along. */
  char above[sizeof check_path];
  memcpy(above, check_path, sizeof above);
  *strrchr(above, '/') = '\0';
  IS_TOLD(rename(above, "elsewhere"), -1);
  CHECK(stat(above, &status) == 0);
  CHECK(open("/nowhere", O_RDONLY) == -1 && errno == ENOENT);
  close(here);
  /* A child has nobody to wait for. */
  const pid_t child = fork();
  if (child == 0) _exit(stat(check_path, &status) == 0 ? 0 : 1);
  int code = -1;
  CHECK(waitpid(child, &code, 0) == child && code == 0);
  limit_files(0);
  expect_file(1, beyond_limit);
  if (check_rank == 0) CHECK(unlink(check_path) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* What is left is for the check to recover. */
static void a_close_fails_and_leaves_the_log(void) {
  open_interleaved("onclose", "32MiB", beyond_limit);
  limit_files(1);
  OK(write_turn(1));
  OK(write_turn(2));
  FAILS(MPI_ERR_IO, MPI_File_close(&file));
  CHECK(file == MPI_FILE_NULL);
  limit_files(0);
}

/* The file's file system has a few MiB. */
static void a_full_file_system_is_no_space(void) {
  open_interleaved("onclose", "32MiB", 0);
  OK(write_turn(1)); /* The notice beside the file needs space, too. */
  fill_file_system(1);
  OK(write_turn(2));
  FAILS(MPI_ERR_NO_SPACE, MPI_File_sync(file));
  fill_file_system(0);
  OK(MPI_File_sync(file));
  expect_file(2, 0);
  OK(write_turn(3));
  OK(MPI_File_close(&file));
  expect_file(3, 0);
}

/* The logs' file system has less than they may take. */
static void a_full_log_is_no_error(void) {
  enum { turns = 160 };
  open_interleaved("onclose", "128MiB", 0);
  for (int turn = 1; turn <= turns; ++turn) OK(write_turn(turn));
  OK(MPI_File_sync(file));
  expect_file(turns, 0);
  OK(MPI_File_close(&file));
}

/* On one rank, or on all: they agree to do without. */
static void a_failing_log_is_no_error(int good_writes, int os_errno, int everywhere) {
  open_interleaved("onclose", "32MiB", 0);
  log_errno = os_errno;
  if (everywhere || check_rank == check_size - 1) atomic_store(&good_log_writes, good_writes);
  OK(write_turn(1));
  OK(write_turn(2));
  OK(MPI_File_sync(file));
  CHECK(atomic_load(&good_log_writes) <= 0);
  expect_file(2, 0);
  OK(write_turn(3));
  OK(MPI_File_close(&file));
  atomic_store(&good_log_writes, -1);
  expect_file(3, 0);
}

/* Whatever comes next on whichever rank, not only a write. */
static void a_failing_log_is_no_error_of_other_calls(void) {
  open_interleaved("onclose", "32MiB", 0);
  OK(write_turn(1));
  log_errno = EIO;
  if (check_rank == check_size - 1) atomic_store(&good_log_writes, 0);
  OK(MPI_File_set_size(file, (MPI_Offset)mine * check_size));
  OK(MPI_File_preallocate(file, (MPI_Offset)mine * check_size));
  OK(MPI_File_set_atomicity(file, 1));
  OK(MPI_File_set_atomicity(file, 0));
  OK(write_turn(2));
  OK(MPI_File_sync(file));
  expect_file(2, 0);
  OK(MPI_File_close(&file));
  atomic_store(&good_log_writes, -1);
  expect_file(2, 0);
}

/* A file system that became read-only: all is in the file, and what is left of logs is for the
 * check to look at. */
static void a_log_that_cannot_be_removed_is_no_error(int good_writes) {
  open_interleaved("onclose", "32MiB", 0);
  OK(write_turn(1));
  log_errno = EROFS;
  atomic_store(&good_log_writes, good_writes);
  atomic_store(&logs_stay, 1);
  OK(write_turn(2));
  OK(MPI_File_sync(file));
  expect_file(2, 0);
  OK(MPI_File_close(&file));
  atomic_store(&logs_stay, 0);
  atomic_store(&good_log_writes, -1);
  expect_file(2, 0);
}

/* One bit in the first place where any log holds these bytes. */
static void flip_in_logs(const unsigned char* bytes, size_t length) {
  char pattern[4200];
  snprintf(pattern, sizeof pattern, "%s/*/*/segment-*", logs);
  glob_t found;
  CHECK(glob(pattern, 0, NULL, &found) == 0);
  int flipped = 0;
  for (size_t i = 0; i < found.gl_pathc && !flipped; ++i) {
    const int segment = open(found.gl_pathv[i], O_RDWR);
    static unsigned char content[4 << 20];
    const ssize_t got = pread(segment, content, sizeof content, 0);
    const unsigned char* at = got > 0 ? memmem(content, (size_t)got, bytes, length) : NULL;
    if (at != NULL) {
      const unsigned char other = *at ^ 16;
      CHECK(pwrite(segment, &other, 1, at - content) == 1);
      flipped = 1;
    }
    close(segment);
  }
  CHECK(flipped);
  globfree(&found);
}

static void a_flipped_bit_is_an_error_of_who_reads_it(void) {
  enum { records = 3 };
  static unsigned char bytes[records * block];
  static unsigned char back[records * block];
  unsigned state = 1 + (unsigned)check_rank;
  for (int i = 0; i < records * block; ++i) {
    state = state * 1103515245 + 12345;
    bytes[i] = (unsigned char)(state >> 16);
  }
  open_interleaved("onclose", "32MiB", 0);
  /* Each in granules of its own, or the others would have its bytes flushed. */
  OK(MPI_File_set_view(file, (MPI_Offset)check_rank << 20, MPI_BYTE, MPI_BYTE, "native",
                       MPI_INFO_NULL));
  for (int i = 0; i < records; ++i) {
    OK(MPI_File_write_at(file, (MPI_Offset)i * block, bytes + i * block, block, MPI_BYTE,
                         MPI_STATUS_IGNORE));
  }
  flip_in_logs(bytes + block, block);
  FAILS(MPI_ERR_IO, MPI_File_read_at(file, 0, back, records * block, MPI_BYTE, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_IO, MPI_File_read_at(file, block + 7, back, 1, MPI_BYTE, MPI_STATUS_IGNORE));
  for (int i = 0; i < records; i += 2) {
    OK(MPI_File_read_at(file, (MPI_Offset)i * block, back, block, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(memcmp(back, bytes + i * block, block) == 0);
  }
  OK(MPI_File_write_at(file, block, bytes + block, block, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at(file, 0, back, records * block, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(memcmp(back, bytes, sizeof back) == 0);
  OK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
  signal(SIGXFSZ, SIG_IGN); /* Writing beyond the limit then fails with EFBIG. */
  MPI_Init(NULL, NULL);
  CHECK(argc == 4);
  const char* name = argv[1];
  logs = realpath(argv[3], NULL);
  CHECK(logs != NULL);
  snprintf(ballast, sizeof ballast, "%s/ballast", argv[2]);
  char* rest[] = {argv[0], argv[2]};
  check_arguments(2, rest, "data");
  if (strcmp(name, "refused") == 0) {
    a_sync_fails_until_the_file_system_takes_it("onclose");
    a_sync_fails_until_the_file_system_takes_it("immediate");
    a_write_meets_what_failed_in_the_background();
    a_change_of_size_fails();
    a_second_handle_is_opened_once_the_file_system_takes_it();
    the_next_open_fails_after_an_early_close();
    so_does_the_next_open_by_another_name();
    so_does_every_other_way_to_it_after_an_early_close();
    a_failing_log_is_no_error(0, EIO, 1);
    a_failing_log_is_no_error(1, EIO, 0);
    a_failing_log_is_no_error(2, ENOSPC, 0);
    a_failing_log_is_no_error(3, EIO, 0);
    a_failing_log_is_no_error(5, EIO, 1);
    a_failing_log_is_no_error_of_other_calls();
    a_flipped_bit_is_an_error_of_who_reads_it();
  } else if (strcmp(name, "left") == 0) {
    a_close_fails_and_leaves_the_log();
  } else if (strcmp(name, "stays") == 0) {
    a_log_that_cannot_be_removed_is_no_error(-1);
  } else if (strcmp(name, "read-only") == 0) {
    a_log_that_cannot_be_removed_is_no_error(0);
  } else if (strcmp(name, "full-file") == 0) {
    a_full_file_system_is_no_space();
  } else {
    CHECK(strcmp(name, "full-log") == 0);
    a_full_log_is_no_error();
  }
  MPI_Finalize();
  return 0;
}
