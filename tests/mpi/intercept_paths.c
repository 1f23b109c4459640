/* Goal: Forebay works on the same file as the MPI, whatever its path looks like and whatever
 * happens to the path while the file is open, and leaves no file of its own behind. Method: unusual
 * paths, each with a collective write and a shared pointer, which has a file of its own; afterwards
 * the right file holds the data. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/mpi/intercept_check.h"

static char directory[PATH_MAX];

/* "DIRECTORY/name", valid until the call after the next. */
static const char* within(const char* name) {
  static char paths[2][PATH_MAX + 300];
  static int last;
  last = 1 - last;
  snprintf(paths[last], sizeof paths[last], "%s/%s", directory, name);
  return paths[last];
}

static long size_of(const char* path) {
  struct stat status;
  return stat(path, &status) == 0 ? (long)status.st_size : -1;
}

/* Rank 0 alone, before the others go on. */
#define FIRST(call)                     \
  do {                                  \
    MPI_Barrier(MPI_COMM_WORLD);        \
    if (check_rank == 0) CHECK((call)); \
    MPI_Barrier(MPI_COMM_WORLD);        \
  } while (0)

/* There may be what an earlier run left. */
static int make_directory(const char* path) { return mkdir(path, 0755) == 0 || errno == EEXIST; }

static MPI_File open_file(const char* path) {
  MPI_File file;
  OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  return file;
}

/* Eight bytes of each rank, in two calls of different kinds. */
static void write_into(MPI_File file) {
  const int value = check_rank;
  OK(MPI_File_write_at_all(file, 4 * check_rank, &value, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_seek_shared(file, 4 * check_size, MPI_SEEK_SET));
  OK(MPI_File_write_shared(file, &value, 4, MPI_BYTE, MPI_STATUS_IGNORE));
}

static void write_and_close(MPI_File file) {
  write_into(file);
  OK(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Data of this test, and nothing else, is at `path`, which is then removed. */
static void verify(const char* path) {
  CHECK(size_of(path) == 8 * check_size);
  FIRST(unlink(path) == 0);
}

/* ".." goes back from where a link leads, not from where it stands. */
static void back_from_a_link(void) {
  char link[PATH_MAX + 300];
  FIRST(make_directory(within("elsewhere")) && make_directory(within("elsewhere/below")));
  snprintf(link, sizeof link, "%s", within("link"));
  FIRST(symlink(within("elsewhere/below"), link) == 0 || errno == EEXIST);
  FIRST(close(open(within("data"), O_CREAT | O_RDWR, 0600)) == 0);
  write_and_close(open_file(within("link/../data")));
  CHECK(size_of(within("data")) == 0);
  verify(within("elsewhere/data"));
  FIRST(unlink(link) == 0 && unlink(within("data")) == 0);
  FIRST(rmdir(within("elsewhere/below")) == 0 && rmdir(within("elsewhere")) == 0);
}

/* The program changes its directory while a file with a relative path is open. */
static void relative(void) {
  CHECK(chdir(directory) == 0);
  MPI_File file = open_file("relative");
  CHECK(chdir("/") == 0);
  write_and_close(file);
  verify(within("relative"));
}

static void odd_bytes(void) {
  const char* path = within("\xff\xfe \"odd\"\n\\name");
  write_and_close(open_file(path));
  verify(path);
}

/* A name with no room for anything that is put before or behind it. */
static void long_name(void) {
#if !defined(OPEN_MPI) /* OMPIO 4.1 overflows a buffer of its own. */
  char name[NAME_MAX + 1];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  write_and_close(open_file(within(name)));
  verify(within(name));
#endif
}

static void renamed(void) {
  MPI_File file = open_file(within("renamed"));
  FIRST(rename(within("renamed"), within("new name")) == 0);
  write_and_close(file);
  CHECK(size_of(within("renamed")) < 0);
  verify(within("new name"));
}

static void removed(void) {
  MPI_Offset size = -1;
  MPI_File file = open_file(within("removed"));
  FIRST(unlink(within("removed")) == 0);
  write_into(file);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_get_size(file, &size));
  CHECK(size == 8 * check_size);
  OK(MPI_File_close(&file));
  CHECK(size_of(within("removed")) < 0);
}

/* A directory that takes no new file still has shared pointers. */
static void read_only_directory(void) {
  MPI_File file;
  int value = -1;
  FIRST(make_directory(within("closed")));
  write_and_close(open_file(within("closed/data")));
  FIRST(chmod(within("closed"), 0555) == 0);
  FIRST(chmod(within("closed/data"), 0644) == 0);
  /* The superuser could still write. */
  const uid_t user = geteuid();
  char nobody_enters = 0;
  if (user == 0) {
    CHECK(seteuid(65534) == 0);
    /* Not access(), which asks for the real user. */
    const int descriptor = open(within("closed/data"), O_RDONLY);
    nobody_enters = descriptor < 0;
    if (descriptor >= 0) close(descriptor);
  }
  if (!nobody_enters) {
    OK(MPI_File_open(MPI_COMM_WORLD, within("closed/data"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_read_ordered(file, &value, 4, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(value == check_rank);
    OK(MPI_File_close(&file));
  }
  if (user == 0) CHECK(seteuid(0) == 0);
  FIRST(chmod(within("closed"), 0755) == 0);
  verify(within("closed/data"));
  FIRST(rmdir(within("closed")) == 0);
}

static const char precious[] = "precious-precious-precious";

static void put(const char* path, const char* text) {
  FILE* file = fopen(path, "w");
  CHECK(file != NULL);
  CHECK(fputs(text, file) >= 0);
  CHECK(fclose(file) == 0);
}

static int is_precious(const char* path) {
  char found[sizeof precious + 1] = "";
  FILE* file = fopen(path, "r");
  if (file == NULL) return 0;
  const size_t got = fread(found, 1, sizeof found, file);
  fclose(file);
  return got == strlen(precious) && memcmp(found, precious, got) == 0;
}

/* ROMIO takes "ufs:" off a name and OMPIO does not. Whatever the MPI means, a file of the other
 * name stays as it is, whether or not the one that is meant is there already. */
static void prefixed(void) {
  static const char name[] = "ufs:prefixed";
  const char* wanted = "prefixed";
  const char* other = name;
#if defined(OPEN_MPI)
  const char* io = getenv("OMPI_MCA_io");
  if (io == NULL || strncmp(io, "romio", 5) != 0) {
    wanted = name;
    other = "prefixed";
  }
#endif
  CHECK(chdir(directory) == 0);
  for (int there = 0; there < 4; ++there) {
    const int wanted_is_there = there & 1, other_is_there = there & 2;
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
      if (wanted_is_there) put(wanted, "");
      if (other_is_there) put(other, precious);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    write_and_close(open_file(name));
    CHECK(other_is_there ? is_precious(other) : size_of(other) < 0);
    verify(wanted);
    if (other_is_there) FIRST(unlink(other) == 0);
  }
  CHECK(chdir("/") == 0);
}

/* A device has no end and keeps nothing; whatever the MPI says of it is right. */
static void device(void) {
  MPI_File file;
  int value = 0;
  if (MPI_File_open(MPI_COMM_WORLD, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file) !=
      MPI_SUCCESS) {
    return;
  }
  OK(MPI_File_write_at_all(file, 4 * check_rank, &value, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
}

static void verify_nothing_left(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  DIR* entries = opendir(directory);
  CHECK(entries != NULL);
  for (struct dirent* entry; (entry = readdir(entries)) != NULL;) {
    CHECK(strstr(entry->d_name, "forebay-pointer") == NULL);
  }
  closedir(entries);
}

int main(int argc, char** argv) {
  check_start(argc, argv, "paths");
  CHECK(realpath(argv[1], directory) != NULL);
  back_from_a_link();
  relative();
  odd_bytes();
  long_name();
  renamed();
  removed();
  read_only_directory();
  prefixed();
  device();
  verify_nothing_left();
  return check_finish();
}
