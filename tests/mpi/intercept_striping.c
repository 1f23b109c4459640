/* Goal: hints that only the environment declares reach the MPI when it creates a file, so that a
 * file system that stripes files can be told how; the same on all ranks, and the program's own
 * hints come first. Method: the file is left to the MPI, whose MPI_File_get_info then shows what it
 * was given. MPIs leave out what means nothing to them, so only those keys are looked at that the
 * MPI names when the program itself gives them. Only rank 0 has the environment, as where a
 * launcher does not hand it on. */
#define _GNU_SOURCE
#include "tests/mpi/intercept_check.h"

static const char* const declared[][2] = {
    {"striping_unit", "131072"}, {"striping_factor", "3"}, {"stripe_size", "131072"},
    {"stripe_width", "3"},       {"start_iodevice", "1"},  {"romio_lustre_co_ratio", "2"},
};
enum { keys = sizeof declared / sizeof declared[0] };

/* What MPI_File_get_info says of `key` once the file was opened so; empty if nothing. */
static void shown_after(int amode, MPI_Info info, const char* key, char* value) {
  MPI_File file;
  MPI_Info used;
  int present = 0;
  value[0] = '\0';
  OK(MPI_File_open(MPI_COMM_WORLD, check_path, amode, info, &file));
  OK(MPI_File_get_info(file, &used));
  OK(MPI_Info_get(used, key, MPI_MAX_INFO_VAL, value, &present));
  OK(MPI_Info_free(&used));
  OK(MPI_File_close(&file));
}

static void remove_file(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank == 0) remove(check_path);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  const char* rank = getenv("PMI_RANK");
  if (rank == NULL) rank = getenv("OMPI_COMM_WORLD_RANK");
  if (rank != NULL && strcmp(rank, "0") != 0) {
    unsetenv("FOREBAY_HINTS");
    unsetenv("FOREBAY_INTENT");
  }
  check_start(argc, argv, "striping");
  const int create = MPI_MODE_CREATE | MPI_MODE_RDWR;
  char value[MPI_MAX_INFO_VAL + 1];
  int shown = 0;
  for (int i = 0; i < keys; ++i) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, declared[i][0], "7"));
    shown_after(create, info, declared[i][0], value);
    OK(MPI_Info_free(&info));
    remove_file();
    if (value[0] == '\0') continue; /* It means nothing to this MPI. */
    ++shown;
    CHECK(strcmp(value, "7") == 0); /* The program's word comes first. */
    shown_after(create, MPI_INFO_NULL, declared[i][0], value);
    CHECK(strcmp(value, declared[i][1]) == 0);
    /* It is too late to say so of a file that is there. */
    shown_after(MPI_MODE_RDWR, MPI_INFO_NULL, declared[i][0], value);
    CHECK(strcmp(value, declared[i][1]) != 0);
    remove_file();
  }
  CHECK(shown > 0);

  /* A file that Forebay carries out names the striping that it has, not what was asked for: none,
   * where these tests are run. */
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "forebay", "enable"));
  OK(MPI_Info_set(info, "striping_unit", "65536"));
  shown_after(create, info, "striping_unit", value);
  CHECK(value[0] == '\0');
  OK(MPI_Info_free(&info));
  return check_finish();
}
