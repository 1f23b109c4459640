/* Goal: every datatype constructor means the same to Forebay as to the MPI, as a memory type and as
 * a file type. Method: MPI_Pack and MPI_Unpack, which Forebay does not touch, are the reference.
 * Memory: what lies in the file after writing N of a type is what MPI_Pack gives. File: the bytes
 * of the file after writing through the type as a view are what MPI_Unpack puts into zeroed memory;
 * and reading back both ways gives the data again. Independent and collective. */
#define _GNU_SOURCE
#include "tests/mpi/intercept_check.h"

enum { span = 1 << 16, copies = 3 };

static unsigned char source[span], target[span], packed[span], expected[span], found[span];
static MPI_File file;

static void read_file(unsigned char* bytes, long long offset, long long length) {
  memset(bytes, 0, (size_t)length);
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_read_at(file, offset, bytes, (int)length, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
}

/* The type's own bytes of `buffer`, at a place where a lower bound below 0 fits. */
static unsigned char* origin(unsigned char* buffer) { return buffer + span / 2; }

static int pack(MPI_Datatype type, unsigned char* from, unsigned char* to) {
  int size = 0;
  memset(to, 0, span);
  OK(MPI_Pack(origin(from), copies, type, to, span, &size, MPI_COMM_SELF));
  return size;
}

static void as_memory_type(MPI_Datatype type, int collective) {
  const int size = pack(type, source, packed);
  const long long mine = (long long)check_rank * span;
  MPI_Status status;
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  if (collective) {
    OK(MPI_File_write_at_all(file, mine, origin(source), copies, type, &status));
  } else {
    OK(MPI_File_write_at(file, mine, origin(source), copies, type, &status));
  }
  CHECK(check_count(&status, MPI_BYTE) == size);
  CHECK(size == 0 || check_count(&status, type) == copies);
  read_file(found, mine, size);
  CHECK(memcmp(found, packed, (size_t)size) == 0);

  memset(target, 0x5a, span);
  if (collective) {
    OK(MPI_File_read_at_all(file, mine, origin(target), copies, type, &status));
  } else {
    OK(MPI_File_read_at(file, mine, origin(target), copies, type, &status));
  }
  CHECK(check_count(&status, MPI_BYTE) == size);
  pack(type, target, found);
  CHECK(memcmp(found, packed, (size_t)size) == 0);
  /* Nothing was touched outside the type. */
  int position = 0;
  memset(expected, 0x5a, span);
  OK(MPI_Unpack(packed, size, &position, origin(expected), copies, type, MPI_COMM_SELF));
  CHECK(memcmp(target, expected, span) == 0);
}

static void as_file_type(MPI_Datatype type, int collective) {
  const int size = pack(type, source, packed);
  const long long mine = (long long)check_rank * span;
  MPI_Status status;
  MPI_Barrier(MPI_COMM_WORLD); /* Others may still be reading. */
  OK(MPI_File_set_size(file, 0));
  OK(MPI_File_set_view(file, mine, MPI_BYTE, type, "native", MPI_INFO_NULL));
  if (collective) {
    OK(MPI_File_write_at_all(file, 0, packed, size, MPI_BYTE, &status));
  } else {
    OK(MPI_File_write_at(file, 0, packed, size, MPI_BYTE, &status));
  }
  CHECK(check_count(&status, MPI_BYTE) == size);
  memset(found, 0, span);
  if (collective) {
    OK(MPI_File_read_at_all(file, 0, found, size, MPI_BYTE, &status));
  } else {
    OK(MPI_File_read_at(file, 0, found, size, MPI_BYTE, &status));
  }
  CHECK(check_count(&status, MPI_BYTE) == size);
  CHECK(memcmp(found, packed, (size_t)size) == 0);

  int position = 0;
  memset(expected, 0, span);
  OK(MPI_Unpack(packed, size, &position, expected, copies, type, MPI_COMM_SELF));
  read_file(found, mine, span);
  CHECK(memcmp(found, expected, span) == 0);
}

/* `in_files`: displacements ascend from 0 on and do not overlap, so it may be a file type. */
static void check_collective(MPI_Datatype type, int in_files) {
  OK(MPI_Type_commit(&type));
  as_memory_type(type, 1);
  if (in_files) as_file_type(type, 1);
  OK(MPI_Type_free(&type));
}

static void check(MPI_Datatype type, int in_files) {
  MPI_Datatype again;
  OK(MPI_Type_dup(type, &again));
  check_collective(again, in_files);
  OK(MPI_Type_commit(&type));
  as_memory_type(type, 0);
  if (in_files) as_file_type(type, 0);
  OK(MPI_Type_free(&type));
}

static void simple_constructors(void) {
  MPI_Datatype type, inner;
  const int lengths[] = {2, 0, 5, 1}, displacements[] = {1, 8, 12, 40};
  const int equal[] = {0, 3, 9, 30};
  const MPI_Aint bytes[] = {4, 100, 260, 500}, descending[] = {900, 400, 250, 0};
  const int back_lengths[] = {3, 2, 1, 4};

  OK(MPI_Type_contiguous(17, MPI_DOUBLE, &type));
  check(type, 1);
  OK(MPI_Type_vector(7, 2, 5, MPI_INT, &type));
  check(type, 1);
  OK(MPI_Type_vector(7, 2, -5, MPI_INT, &type));
  check(type, 0);
  OK(MPI_Type_create_hvector(5, 3, 50, MPI_SHORT, &type));
  check(type, 1);
  OK(MPI_Type_indexed(4, lengths, displacements, MPI_DOUBLE, &type));
  check(type, 1);
  OK(MPI_Type_create_hindexed(4, lengths, bytes, MPI_INT, &type));
  check(type, 1);
  OK(MPI_Type_create_hindexed(4, back_lengths, descending, MPI_INT, &type));
  check(type, 0);
  OK(MPI_Type_create_indexed_block(4, 2, equal, MPI_FLOAT, &type));
  check(type, 1);
  OK(MPI_Type_create_hindexed_block(4, 3, bytes, MPI_INT, &type));
  check(type, 1);
  OK(MPI_Type_create_resized(MPI_INT, 0, 24, &type));
  check(type, 1);
  OK(MPI_Type_create_resized(MPI_INT, -8, 24, &type));
  check(type, 0);
  OK(MPI_Type_create_resized(MPI_INT, 0, -12, &type));
  check(type, 0);
  OK(MPI_Type_vector(3, 1, 2, MPI_INT, &inner));
  OK(MPI_Type_dup(inner, &type));
  OK(MPI_Type_free(&inner));
  check(type, 1);
  OK(MPI_Type_contiguous(3, MPI_SHORT_INT, &type));
  check(type, 1);
  OK(MPI_Type_contiguous(0, MPI_INT, &type));
  check(type, 0);
}

static void structures(void) {
  MPI_Datatype type, strided, inner[3];
  OK(MPI_Type_vector(3, 1, 2, MPI_SHORT, &strided));
  const int lengths[] = {1, 3, 2};
  const MPI_Aint displacements[] = {8, 32, 100};
  inner[0] = MPI_CHAR;
  inner[1] = MPI_DOUBLE;
  inner[2] = strided;
  OK(MPI_Type_create_struct(3, lengths, displacements, inner, &type));
  check(type, 1);
  /* A structure inside an array inside a structure. */
  MPI_Datatype record, table;
  OK(MPI_Type_create_struct(3, lengths, displacements, inner, &record));
  OK(MPI_Type_create_resized(record, 0, 160, &table));
  const int again_lengths[] = {4, 1};
  const MPI_Aint again[] = {0, 1000};
  MPI_Datatype members[] = {table, record};
  OK(MPI_Type_create_struct(2, again_lengths, again, members, &type));
  check(type, 1);
  const MPI_Aint reversed[] = {900, 0};
  OK(MPI_Type_create_struct(2, again_lengths, reversed, members, &type));
  check(type, 0);
  OK(MPI_Type_free(&record));
  OK(MPI_Type_free(&table));
  OK(MPI_Type_free(&strided));
}

/* 7 x 11 ints on a grid of 2 x 3, which divides neither, so that last blocks are partial and some
 * places have nothing. Each place of the grid in turn, ranks at different ones. */
static void distributed_array(const int kinds[2], int block, int order) {
  const int sizes[] = {7, 11};
  int grid[] = {2, 3}, arguments[2];
  for (int d = 0; d < 2; ++d) {
    arguments[d] = MPI_DISTRIBUTE_DFLT_DARG;
    if (kinds[d] == MPI_DISTRIBUTE_NONE) grid[d] = 1;
    if (block > 0 && kinds[d] == MPI_DISTRIBUTE_CYCLIC) arguments[d] = block + 1;
    if (block > 0 && kinds[d] == MPI_DISTRIBUTE_BLOCK) arguments[d] = 5 + block;
  }
  const int places = grid[0] * grid[1];
  for (int turn = 0; turn < places; ++turn) {
    MPI_Datatype type;
    OK(MPI_Type_create_darray(places, (turn + check_rank) % places, 2, sizes, kinds, arguments,
                              grid, order, MPI_INT, &type));
    check_collective(type, 1);
  }
}

static void arrays(void) {
  const int sizes[] = {6, 7, 9}, subsizes[] = {3, 4, 5}, starts[] = {2, 1, 3};
  const int orders[] = {MPI_ORDER_C, MPI_ORDER_FORTRAN};
  const int kinds[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
  MPI_Datatype type;
  for (int o = 0; o < 2; ++o) {
    OK(MPI_Type_create_subarray(3, sizes, subsizes, starts, orders[o], MPI_INT, &type));
    check(type, 1);
    OK(MPI_Type_create_subarray(3, sizes, sizes, (int[]){0, 0, 0}, orders[o], MPI_INT, &type));
    check(type, 1);
    for (int first = 0; first < 3; ++first) {
      for (int second = 0; second < 3; ++second) {
        const int pair[] = {kinds[first], kinds[second]};
        for (int block = 0; block < 3; ++block) distributed_array(pair, block, orders[o]);
      }
    }
  }
}

static void fortran_kinds(void) {
  MPI_Datatype real, complex_type, integer, type;
  OK(MPI_Type_create_f90_real(12, 100, &real));
  OK(MPI_Type_create_f90_complex(6, 30, &complex_type));
  OK(MPI_Type_create_f90_integer(9, &integer));
  OK(MPI_Type_vector(3, 1, 2, real, &type));
  check(type, 1);
  OK(MPI_Type_vector(3, 1, 2, complex_type, &type));
  check(type, 1);
  OK(MPI_Type_vector(3, 1, 2, integer, &type));
  check(type, 1);
}

/* Absolute addresses from MPI_BOTTOM. */
static void from_bottom(void) {
  MPI_Aint addresses[2];
  const int lengths[] = {10, 20};
  MPI_Datatype type;
  MPI_Status status;
  OK(MPI_Get_address(source + 100, &addresses[0]));
  OK(MPI_Get_address(source + 5000, &addresses[1]));
  OK(MPI_Type_create_hindexed(2, lengths, addresses, MPI_BYTE, &type));
  OK(MPI_Type_commit(&type));
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  OK(MPI_File_write_at_all(file, check_rank * 30, MPI_BOTTOM, 1, type, &status));
  CHECK(check_count(&status, MPI_BYTE) == 30);
  read_file(found, check_rank * 30, 30);
  CHECK(memcmp(found, source + 100, 10) == 0 && memcmp(found + 10, source + 5000, 20) == 0);
  OK(MPI_Type_free(&type));
}

int main(int argc, char** argv) {
  check_start(argc, argv, "datatypes");
  for (int i = 0; i < span; ++i) source[i] = (unsigned char)(i * 31 + i / 251 + check_rank * 7 + 1);
  file = check_open(0);
  simple_constructors();
  structures();
  arrays();
  fortran_kinds();
  from_bottom();
  OK(MPI_File_close(&file));
  return check_finish();
}
