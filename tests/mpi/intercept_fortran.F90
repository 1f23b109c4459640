! Goal: each of Fortran's three bindings reaches Forebay, in the forms that a program uses: collective
! and independent calls, a view, pointers, a nonblocking call, statuses.
! Method: ranks write interleaved blocks and read back each other's; MPI_File_get_info must tell the
! hints of Forebay when FOREBAY_TEST_PRELOADED is set. Prints nothing but errors. Compiled once for
! each binding, by BINDING_MPIF, BINDING_MPI or BINDING_F08.
program fortran
  use, intrinsic :: iso_fortran_env, only: error_unit
#if defined(BINDING_F08)
  use mpi_f08
#elif defined(BINDING_MPI)
  use mpi
#endif
  implicit none
#if defined(BINDING_MPIF)
  include 'mpif.h'
#endif
  integer, parameter :: blocks = 5, length = 37
#if defined(BINDING_F08)
  type(MPI_File) :: file
  type(MPI_Datatype) :: filetype
  type(MPI_Request) :: request
  type(MPI_Info) :: info
  type(MPI_Status) :: status
#else
  integer :: file, filetype, request, info, status(MPI_STATUS_SIZE)
#endif
  integer :: rank, ranks, ierror, i, other, moved
  integer :: data(blocks * length), back(blocks * length)
  integer(kind=MPI_OFFSET_KIND) :: displacement, offset
  character(len=1024) :: directory, path
  character(len=64) :: value
  character(len=8) :: preloaded
  logical :: present

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call get_command_argument(1, directory)
  path = trim(directory) // '/fortran.dat'
  if (rank == 0) call MPI_File_delete(path, MPI_INFO_NULL, ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, &
                     ierror)
  call check(ierror == MPI_SUCCESS, 'open')

  ! Block k of rank r is block k * ranks + r of the file.
  call MPI_Type_vector(blocks, length, length * ranks, MPI_INTEGER, filetype, ierror)
  call MPI_Type_commit(filetype, ierror)
  displacement = 4_MPI_OFFSET_KIND * length * rank
  call MPI_File_set_view(file, displacement, MPI_INTEGER, filetype, 'native', MPI_INFO_NULL, ierror)
  call check(ierror == MPI_SUCCESS, 'set_view')
  do i = 1, blocks * length
    data(i) = 100000 * rank + i
  end do
  call MPI_File_write_all(file, data, blocks * length, MPI_INTEGER, status, ierror)
  call check(ierror == MPI_SUCCESS, 'write_all')
  call MPI_Get_count(status, MPI_INTEGER, moved, ierror)
  call check(moved == blocks * length, 'count of write_all')
  call MPI_File_get_position(file, offset, ierror)
  call check(offset == blocks * length, 'position')
  call MPI_File_sync(file, ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)

  displacement = 0
  call MPI_File_set_view(file, displacement, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, &
                         ierror)
  do other = 0, ranks - 1
    offset = length * (ranks * (blocks - 1) + other)
    call MPI_File_read_at(file, offset, back, length, MPI_INTEGER, MPI_STATUS_IGNORE, ierror)
    do i = 1, length
      call check(back(i) == 100000 * other + (blocks - 1) * length + i, 'read_at')
    end do
  end do
  call MPI_Barrier(MPI_COMM_WORLD, ierror)

  offset = length * rank
  call MPI_File_iwrite_at(file, offset, data, length, MPI_INTEGER, request, ierror)
  call MPI_Wait(request, status, ierror)
  call MPI_Get_count(status, MPI_INTEGER, moved, ierror)
  call check(moved == length, 'count of iwrite_at')
  call MPI_File_seek(file, offset, MPI_SEEK_SET, ierror)
  call MPI_File_read_all_begin(file, back, length, MPI_INTEGER, ierror)
  call MPI_File_read_all_end(file, back, status, ierror)
  do i = 1, length
    call check(back(i) == data(i), 'read_all_end')
  end do
  call MPI_File_seek_shared(file, 0_MPI_OFFSET_KIND, MPI_SEEK_SET, ierror)
  call MPI_File_read_ordered(file, back, length, MPI_INTEGER, MPI_STATUS_IGNORE, ierror)
  do i = 1, length
    call check(back(i) == data(i), 'read_ordered')
  end do

  call get_environment_variable('FOREBAY_TEST_PRELOADED', preloaded)
  if (preloaded == '1') then
    call MPI_File_get_info(file, info, ierror)
    call MPI_Info_get(info, 'forebay', len(value), value, present, ierror)
    call check(present, 'forebay is not there')
    call MPI_Info_free(info, ierror)
  end if
  call MPI_File_close(file, ierror)
  call check(ierror == MPI_SUCCESS, 'close')
  call MPI_Type_free(filetype, ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  if (rank == 0) call MPI_File_delete(path, MPI_INFO_NULL, ierror)
  call MPI_Finalize(ierror)

contains

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: what
    integer :: code
    if (condition) return
    write (error_unit, *) 'fortran: rank', rank, 'of', ranks, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, code)
  end subroutine check

end program fortran
