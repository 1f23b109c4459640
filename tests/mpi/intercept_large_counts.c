/* Goal: the large-count variants of MPI 4.0 do what their plain twins do, and types that were made
 * by large-count constructors are understood. Method: each `_c` data call writes and reads one
 * block; built for MPIs that have them. */
#define _GNU_SOURCE
#include "tests/mpi/intercept_check.h"

#if MPI_VERSION >= 4

enum { block = 100 };

static MPI_File file;
static int data[block], back[block];

static void fill(int call) {
  for (int i = 0; i < block; ++i) data[i] = call * 10000 + check_rank * 1000 + i;
  memset(back, 0, sizeof back);
}

static void verify(MPI_Status* status) {
  MPI_Count count = -1;
  OK(MPI_Get_count_c(status, MPI_INT, &count));
  CHECK(count == block);
  CHECK(memcmp(data, back, sizeof data) == 0);
}

static void rewind_all(void) {
  OK(MPI_File_seek(file, (MPI_Offset)check_rank * block, MPI_SEEK_SET));
  OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
}

static void data_calls(void) {
  MPI_Status status;
  MPI_Request request;
  const MPI_Offset mine = (MPI_Offset)check_rank * block;
  const MPI_Count count = block;

  fill(1);
  OK(MPI_File_write_at_c(file, mine, data, count, MPI_INT, &status));
  OK(MPI_File_read_at_c(file, mine, back, count, MPI_INT, &status));
  verify(&status);
  fill(2);
  OK(MPI_File_write_at_all_c(file, mine, data, count, MPI_INT, &status));
  OK(MPI_File_read_at_all_c(file, mine, back, count, MPI_INT, &status));
  verify(&status);
  fill(3);
  rewind_all();
  OK(MPI_File_write_c(file, data, count, MPI_INT, &status));
  rewind_all();
  OK(MPI_File_read_c(file, back, count, MPI_INT, &status));
  verify(&status);
  fill(4);
  rewind_all();
  OK(MPI_File_write_all_c(file, data, count, MPI_INT, &status));
  rewind_all();
  OK(MPI_File_read_all_c(file, back, count, MPI_INT, &status));
  verify(&status);
  fill(5);
  OK(MPI_File_iwrite_at_c(file, mine, data, count, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  OK(MPI_File_iread_at_c(file, mine, back, count, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  verify(&status);
  fill(6);
  OK(MPI_File_iwrite_at_all_c(file, mine, data, count, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  OK(MPI_File_iread_at_all_c(file, mine, back, count, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  verify(&status);
  fill(7);
  rewind_all();
  OK(MPI_File_iwrite_c(file, data, count, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  rewind_all();
  OK(MPI_File_iread_c(file, back, count, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  verify(&status);
  fill(8);
  rewind_all();
  OK(MPI_File_iwrite_all_c(file, data, count, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  rewind_all();
  OK(MPI_File_iread_all_c(file, back, count, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  verify(&status);
  fill(9);
  rewind_all();
  OK(MPI_File_write_ordered_c(file, data, count, MPI_INT, &status));
  rewind_all();
  OK(MPI_File_read_ordered_c(file, back, count, MPI_INT, &status));
  verify(&status);
  fill(10);
  OK(MPI_File_write_at_all_begin_c(file, mine, data, count, MPI_INT));
  OK(MPI_File_write_at_all_end(file, data, &status));
  OK(MPI_File_read_at_all_begin_c(file, mine, back, count, MPI_INT));
  OK(MPI_File_read_at_all_end(file, back, &status));
  verify(&status);
  fill(11);
  rewind_all();
  OK(MPI_File_write_all_begin_c(file, data, count, MPI_INT));
  OK(MPI_File_write_all_end(file, data, &status));
  rewind_all();
  OK(MPI_File_read_all_begin_c(file, back, count, MPI_INT));
  OK(MPI_File_read_all_end(file, back, &status));
  verify(&status);
  fill(12);
  rewind_all();
  OK(MPI_File_write_ordered_begin_c(file, data, count, MPI_INT));
  OK(MPI_File_write_ordered_end(file, data, &status));
  rewind_all();
  OK(MPI_File_read_ordered_begin_c(file, back, count, MPI_INT));
  OK(MPI_File_read_ordered_end(file, back, &status));
  verify(&status);

  /* By the shared pointer, one rank after the other knows where it is. */
  fill(13);
  rewind_all();
  for (int rank = 0; rank < check_size; ++rank) {
    if (rank == check_rank) OK(MPI_File_write_shared_c(file, data, count, MPI_INT, &status));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  rewind_all();
  for (int rank = 0; rank < check_size; ++rank) {
    if (rank == check_rank) OK(MPI_File_read_shared_c(file, back, count, MPI_INT, &status));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  verify(&status);
  fill(14);
  rewind_all();
  for (int rank = 0; rank < check_size; ++rank) {
    if (rank == check_rank) {
      OK(MPI_File_iwrite_shared_c(file, data, count, MPI_INT, &request));
      OK(MPI_Wait(&request, &status));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  rewind_all();
  for (int rank = 0; rank < check_size; ++rank) {
    if (rank == check_rank) {
      OK(MPI_File_iread_shared_c(file, back, count, MPI_INT, &request));
      OK(MPI_Wait(&request, &status));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  verify(&status);
  MPI_Count extent = -1;
  OK(MPI_File_get_type_extent_c(file, MPI_INT, &extent));
  CHECK(extent == 4);
}

/* Writes one of `type` and compares with what MPI_Pack makes of it. */
static void check_type(MPI_Datatype type) {
  static char memory[4096], packed[4096], found[4096];
  int size = 0;
  MPI_Status status;
  for (int i = 0; i < 4096; ++i) memory[i] = (char)(i * 7 + check_rank);
  OK(MPI_Type_commit(&type));
  OK(MPI_Pack(memory, 1, type, packed, sizeof packed, &size, MPI_COMM_SELF));
  OK(MPI_File_write_at_all_c(file, 1024 * check_rank, memory, 1, type, &status));
  OK(MPI_File_read_at_all(file, 1024 * check_rank, found, size, MPI_BYTE, &status));
  CHECK(memcmp(found, packed, (size_t)size) == 0);
  OK(MPI_Type_free(&type));
}

static void constructors(void) {
  const MPI_Count lengths[] = {2, 3}, places[] = {8, 64}, sizes[] = {8, 9}, subsizes[] = {3, 4},
                  starts[] = {1, 2};
  const MPI_Datatype members[] = {MPI_INT, MPI_CHAR};
  MPI_Datatype type;
  OK(MPI_Type_contiguous_c(5, MPI_INT, &type));
  check_type(type);
  OK(MPI_Type_vector_c(3, 2, 4, MPI_INT, &type));
  check_type(type);
  OK(MPI_Type_create_hvector_c(3, 2, 20, MPI_INT, &type));
  check_type(type);
  OK(MPI_Type_indexed_c(2, lengths, places, MPI_INT, &type));
  check_type(type);
  OK(MPI_Type_create_hindexed_c(2, lengths, places, MPI_INT, &type));
  check_type(type);
  OK(MPI_Type_create_indexed_block_c(2, 2, places, MPI_INT, &type));
  check_type(type);
  OK(MPI_Type_create_hindexed_block_c(2, 2, places, MPI_INT, &type));
  check_type(type);
  OK(MPI_Type_create_struct_c(2, lengths, places, members, &type));
  check_type(type);
  OK(MPI_Type_create_resized_c(MPI_INT, 0, 40, &type));
  check_type(type);
  OK(MPI_Type_create_subarray_c(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_INT, &type));
  check_type(type);
  const int kinds[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
  const int arguments[] = {2, MPI_DISTRIBUTE_DFLT_DARG}, grid[] = {2, 2};
  OK(MPI_Type_create_darray_c(4, 1, 2, sizes, kinds, arguments, grid, MPI_ORDER_C, MPI_INT, &type));
  check_type(type);
}

int main(int argc, char** argv) {
  check_start(argc, argv, "large_counts");
  file = check_open(0);
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  data_calls();
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  constructors();
  OK(MPI_File_close(&file));
  return check_finish();
}

#else

int main(int argc, char** argv) {
  check_start(argc, argv, "large_counts");
  return check_finish();
}

#endif
