/* Goal: with MPI_THREAD_MULTIPLE, threads that use files of their own at the same time do not
 * disturb each other, and threads that share a file see its pointers move as if they took turns.
 * Method: each thread of a rank has a file, on which it goes through a life of collective calls,
 * with no order between threads; then all threads move data through one handle, by explicit
 * offsets, by the individual and by the shared pointer, and every block written must be in the file
 * once; so it is when a second handle of the file is opened meanwhile, and when threads use both.
 * What was closed early is whole for each of the threads that reach it at once, by MPI and past it.
 * Files are opened and closed by one thread: ROMIO's threads wait for each other for ever
 * where one is in an open and another in a close. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>

#include "tests/mpi/intercept_check.h"

enum { threads = 4, lives = 3, pieces = 2000, blocks = 100 };

struct thread {
  int number;
  int life;
  MPI_Comm comm;
  MPI_File file;
  pthread_t id;
};

static MPI_File shared;
static MPI_File other;     /* The second handle of the same file, or that one. */
static MPI_Info exchanged; /* Hints under which every collective call is an exchange. */

static int tag(int thread, int item) { return (thread * 64 + check_rank) * 10000 + item; }

static void verify_tags(const int* tags, int thread, int first, int count) {
  for (int i = 0; i < count; ++i) CHECK(tags[i] == tag(thread, first + i));
}

static void open_own(struct thread* self, int life) {
  char path[sizeof check_path + 16];
  snprintf(path, sizeof path, "%s.%d", check_path, self->number);
  self->life = life;
  OK(MPI_File_open(self->comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                   (self->number + life) % 2 == 0 ? exchanged : MPI_INFO_NULL, &self->file));
}

static void* live(void* argument) {
  const struct thread* self = argument;
  MPI_File file = self->file;
  int out[pieces], in[pieces];
  MPI_Datatype one_of_all;
  MPI_Status status;
  OK(MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)sizeof(int) * check_size, &one_of_all));
  OK(MPI_Type_commit(&one_of_all));
  OK(MPI_File_set_view(file, (MPI_Offset)sizeof(int) * check_rank, MPI_INT, one_of_all, "native",
                       MPI_INFO_NULL));
  OK(MPI_Type_free(&one_of_all));
  for (int i = 0; i < pieces; ++i) out[i] = tag(self->number, self->life + i);
  OK(MPI_File_write_all(file, out, pieces, MPI_INT, &status));
  CHECK(check_count(&status, MPI_INT) == pieces);
  OK(MPI_File_write_at_all_begin(file, pieces, out, pieces, MPI_INT));
  OK(MPI_File_write_at_all_end(file, out, &status));
  OK(MPI_File_sync(file));
  for (int part = 0; part < 2; ++part) {
    memset(in, 0, sizeof in);
    OK(MPI_File_read_at_all(file, pieces * part, in, pieces, MPI_INT, &status));
    CHECK(check_count(&status, MPI_INT) == pieces);
    verify_tags(in, self->number, self->life, pieces);
  }
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_set_size(file, 0));
  OK(MPI_File_write_ordered(file, out, 10, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at_all(file, 10 * check_rank, in, 10, MPI_INT, MPI_STATUS_IGNORE));
  verify_tags(in, self->number, self->life, 10);
  return NULL;
}

/* Three regions of the file: by offsets, by this rank's pointer, by the shared one. A block is four
 * ints with one tag; blocks of ranks do not mix in the first two. */
enum { block = 4, region = threads * blocks * block };

static void fill(int* data, int thread, int item) {
  for (int i = 0; i < block; ++i) data[i] = tag(thread, item);
}

static MPI_Offset offset_of(int thread, int item) {
  return (MPI_Offset)region * check_rank + (thread * blocks + item) * block;
}

static void* share_file(void* argument) {
  const struct thread* self = argument;
  int out[block], in[block];
  MPI_Datatype pair;
  MPI_Request request;
  OK(MPI_Type_contiguous(2, MPI_INT, &pair));
  OK(MPI_Type_commit(&pair));
  for (int item = 0; item < blocks; ++item) {
    fill(out, self->number, item);
    const MPI_Offset offset = offset_of(self->number, item);
    if (item % 3 == 0) {
      OK(MPI_File_iwrite_at(other, offset, out, block, MPI_INT, &request));
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
      OK(MPI_File_write_at(shared, offset, out, block / 2, pair, MPI_STATUS_IGNORE));
    }
    memset(in, 0, sizeof in);
    OK(MPI_File_read_at(item % 3 == 0 ? shared : other, offset, in, block, MPI_INT,
                        MPI_STATUS_IGNORE));
    CHECK(memcmp(in, out, sizeof in) == 0);
    OK(MPI_File_write(shared, out, block, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_write_shared(shared, out, block, MPI_INT, MPI_STATUS_IGNORE));
  }
  OK(MPI_Type_free(&pair));
  return NULL;
}

/* Every block of this rank is once, and whole, in `data`. */
static void verify_blocks(const int* data, int count) {
  static unsigned char seen[threads][blocks];
  memset(seen, 0, sizeof seen);
  for (int at = 0; at < count; at += block) {
    const int rank = data[at] / 10000 % 64, thread = data[at] / 10000 / 64;
    for (int i = 1; i < block; ++i) CHECK(data[at + i] == data[at]);
    if (rank == check_rank) ++seen[thread][data[at] % 10000];
  }
  for (int t = 0; t < threads; ++t) {
    for (int i = 0; i < blocks; ++i) CHECK(seen[t][i] == 1);
  }
}

static void start(struct thread* all, void* (*body)(void*)) {
  for (int t = 0; t < threads; ++t) CHECK(pthread_create(&all[t].id, NULL, body, &all[t]) == 0);
}

static void await(struct thread* all) {
  for (int t = 0; t < threads; ++t) CHECK(pthread_join(all[t].id, NULL) == 0);
}

static void run(struct thread* all, void* (*body)(void*)) {
  start(all, body);
  await(all);
}

static void verify_sharing(void) {
  int* data = malloc(sizeof(int) * region * check_size);
  MPI_Offset position = -1;
  const MPI_Offset own = (MPI_Offset)region * (check_size + check_rank);
  const MPI_Offset common = (MPI_Offset)region * 2 * check_size;
  OK(MPI_File_sync(shared));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_get_position(shared, &position));
  CHECK(position == own + region);
  OK(MPI_File_read_at(shared, own, data, region, MPI_INT, MPI_STATUS_IGNORE));
  verify_blocks(data, region);
  OK(MPI_File_get_position_shared(shared, &position));
  CHECK(position == common + (MPI_Offset)region * check_size);
  OK(MPI_File_read_at(shared, common, data, region * check_size, MPI_INT, MPI_STATUS_IGNORE));
  verify_blocks(data, region * check_size);
  free(data);
}

/* Where the parts begin that pointers go through. */
static void seek_parts(void) {
  OK(MPI_File_seek(shared, (MPI_Offset)region * (check_size + check_rank), MPI_SEEK_SET));
  OK(MPI_File_seek_shared(shared, (MPI_Offset)region * 2 * check_size, MPI_SEEK_SET));
}

static void open_shared(int atomic) {
  shared = other = check_open(0);
  OK(MPI_File_set_atomicity(shared, atomic));
  OK(MPI_File_set_view(shared, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  seek_parts();
}

static void share_by_two_handles(struct thread* all) {
  MPI_File second;
  open_shared(0);
  start(all, share_file);
  OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_RDWR, MPI_INFO_NULL, &second));
  OK(MPI_File_set_view(second, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  await(all);
  verify_sharing();
  other = second;
  seek_parts();
  run(all, share_file);
  verify_sharing();
  OK(MPI_File_close(&second));
  OK(MPI_File_close(&shared));
}

enum { early_bytes = 32 << 20 };

static char early_path[sizeof check_path + 16];

static unsigned char early_byte(int turn, int i) { return (unsigned char)(1 + (turn + i) % 251); }

static void verify_early(const unsigned char* bytes, int turn) {
  for (int i = 0; i < early_bytes; ++i) CHECK(bytes[i] == early_byte(turn, i));
}

static atomic_int reader_comes;

static void* read_past_mpi(void* turn) {
  unsigned char* bytes = malloc(early_bytes);
  atomic_store(&reader_comes, 1);
  FILE* stream = fopen(early_path, "rb");
  CHECK(bytes != NULL && stream != NULL);
  CHECK(fread(bytes, 1, early_bytes, stream) == early_bytes);
  verify_early(bytes, *(const int*)turn);
  CHECK(fclose(stream) == 0);
  free(bytes);
  return NULL;
}

static MPI_File open_early(const char* path) {
  MPI_Info info;
  MPI_File file;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "e10_cache", "enable"));
  OK(MPI_Info_set(info, "e10_cache_path", "/dev/shm"));
  OK(MPI_Info_set(info, "forebay_cache_flush", "deferred"));
  OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
  OK(MPI_Info_free(&info));
  if (getenv("FOREBAY_TEST_PRELOADED") == NULL) return file;
  char value[MPI_MAX_INFO_VAL + 1];
  int is_told = 0;
  OK(MPI_File_get_info(file, &info));
  OK(MPI_Info_get(info, "forebay_cache", MPI_MAX_INFO_VAL, value, &is_told));
  CHECK(is_told && strcmp(value, "enable") == 0);
  OK(MPI_Info_free(&info));
  return file;
}

/* Each rank has files of its own. While a thread waits for one, another one comes and is whole. */
static void reach_at_once_what_was_closed_early(void) {
  unsigned char* bytes = malloc(early_bytes);
  char small[sizeof early_path];
  struct stat status;
  pthread_t reader;
  CHECK(bytes != NULL);
  snprintf(early_path, sizeof early_path, "%s.early.%d", check_path, check_rank);
  snprintf(small, sizeof small, "%s.small.%d", check_path, check_rank);
  for (int turn = 0; turn < 6; ++turn) {
    for (int i = 0; i < early_bytes; ++i) bytes[i] = early_byte(turn, i);
    MPI_File file = open_early(early_path);
    OK(MPI_File_write_at(file, 0, bytes, early_bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    atomic_store(&reader_comes, 0);
    CHECK(pthread_create(&reader, NULL, read_past_mpi, &turn) == 0);
    while (atomic_load(&reader_comes) == 0) sched_yield();
    for (int i = 0; i < 100; ++i) sched_yield(); /* It waits by now, most probably. */
    if (turn % 2 == 0) {
      file = open_early(small);
      OK(MPI_File_write_at(file, 0, bytes, 1, MPI_BYTE, MPI_STATUS_IGNORE));
      OK(MPI_File_close(&file));
      CHECK(stat(small, &status) == 0 && status.st_size == 1);
      read_past_mpi(&turn);
    } else {
      OK(MPI_File_open(MPI_COMM_SELF, early_path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
      OK(MPI_File_read_at(file, 0, bytes, early_bytes, MPI_BYTE, MPI_STATUS_IGNORE));
      verify_early(bytes, turn);
      OK(MPI_File_close(&file));
    }
    CHECK(pthread_join(reader, NULL) == 0);
    CHECK(remove(early_path) == 0);
  }
  CHECK(remove(small) == 0);
  free(bytes);
}

int main(int argc, char** argv) {
  struct thread all[threads];
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
  check_arguments(argc, argv, "threads");
  CHECK(provided == MPI_THREAD_MULTIPLE);
  OK(MPI_Info_create(&exchanged));
  OK(MPI_Info_set(exchanged, "romio_cb_write", "enable"));
  OK(MPI_Info_set(exchanged, "romio_cb_read", "enable"));
  OK(MPI_Info_set(exchanged, "cb_buffer_size", "4096"));
  for (int t = 0; t < threads; ++t) {
    all[t].number = t;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &all[t].comm));
  }
  for (int life = 0; life < lives; ++life) {
    for (int t = 0; t < threads; ++t) open_own(&all[t], life);
    run(all, live);
    for (int t = 0; t < threads; ++t) OK(MPI_File_close(&all[t].file));
  }

  for (int atomic = 0; atomic < 2; ++atomic) {
    open_shared(atomic);
    run(all, share_file);
    verify_sharing();
    OK(MPI_File_close(&shared));
  }
  share_by_two_handles(all);
  reach_at_once_what_was_closed_early();
  for (int t = 0; t < threads; ++t) OK(MPI_Comm_free(&all[t].comm));
  OK(MPI_Info_free(&exchanged));
  return check_finish();
}
