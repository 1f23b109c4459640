! A 2-D array of doubles with a halo, distributed over a 2-D process grid, through the Fortran 2008
! bindings. Each rank also writes a record of 64 bytes about itself in front of the array, by
! explicit offset.
module halo_f08_workload
  use, intrinsic :: iso_fortran_env, only: error_unit, int64, real64
  use mpi_f08
  implicit none
  private
  public :: options_t, block_t, parse_options, make_block, fill, first_mismatch, describe, require
  public :: record_words, poison

  ! Words of the record that a rank writes about itself.
  integer, parameter :: record_words = 8
  integer, parameter :: word_bytes = 8
  ! What memory holds before a read.
  integer(int64), parameter :: poison = int(z'A5A5A5A5A5A5A5A5', int64)

  type :: options_t
    integer :: rows = 1024     ! Of each rank; the first dimension is the fastest.
    integer :: columns = 1024
    integer :: halo = 1
    integer(int64) :: seed = 1
    logical :: read = .true.
    logical :: verify = .true.
    logical :: verify_only = .false.
    character(:), allocatable :: path
  end type

  type :: block_t
    integer :: global(2), local(2), start(2)  ! Elements; start counts from 0.
    integer :: halo
    integer(MPI_OFFSET_KIND) :: base          ! Byte at which the array begins in the file.
    type(MPI_Datatype) :: file_type, memory_type
  end type

contains

  ! Ends the job unless the call went well.
  subroutine require(code, call_name, path)
    integer, intent(in) :: code
    character(*), intent(in) :: call_name, path
    character(MPI_MAX_ERROR_STRING) :: reason
    integer :: length, rank
    if (code == MPI_SUCCESS) return
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Error_string(code, reason, length)
    write (error_unit, '(a,i0,6a)') 'rank ', rank, ': ', call_name, ' on ', path, ': ', &
      reason(:length)
    flush (error_unit)
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine

  ! Status is -1 to go on, 0 after --help, 2 after an error. All ranks parse; `speaks` tells which
  ! one explains.
  subroutine parse_options(options, speaks, status)
    type(options_t), intent(out) :: options
    logical, intent(in) :: speaks
    integer, intent(out) :: status
    character(:), allocatable :: word
    integer :: at, number

    status = -1
    at = 1
    do while (at <= command_argument_count() .and. status < 0)
      word = argument(at)
      at = at + 1
      select case (word)
      case ('-h', '--help')
        if (speaks) call print_help()
        status = 0
      case ('--no-read')
        options%read = .false.
      case ('--no-verify')
        options%verify = .false.
      case ('--verify-only')
        options%verify_only = .true.
      case ('--rows', '--columns', '--halo', '--seed')
        number = number_at(at)
        at = at + 1
        if (number < merge(0, 1, word == '--halo' .or. word == '--seed')) then
          call refuse(word // ' needs a number, which must not be too small')
        else if (word == '--rows') then
          options%rows = number
        else if (word == '--columns') then
          options%columns = number
        else if (word == '--halo') then
          options%halo = number
        else
          options%seed = number
        end if
      case default
        if (index(word, '-') == 1) then
          call refuse('unknown option ' // word)
        else if (allocated(options%path)) then
          call refuse('more than one PATH: ' // word)
        else
          options%path = word
        end if
      end select
    end do
    if (status >= 0) return
    if (.not. allocated(options%path)) then
      call refuse('PATH is required')
    else if (options%verify_only .and. .not. (options%read .and. options%verify)) then
      call refuse('--verify-only excludes --no-read and --no-verify')
    end if

  contains

    subroutine refuse(message)
      character(*), intent(in) :: message
      if (speaks) write (error_unit, '(a)') message, 'Run with --help for more information.'
      status = 2
    end subroutine
  end subroutine

  function argument(at) result(word)
    integer, intent(in) :: at
    character(:), allocatable :: word
    integer :: length
    call get_command_argument(at, length=length)
    allocate (character(length) :: word)
    if (length > 0) call get_command_argument(at, word)
  end function

  ! The number that an argument holds; -1 if it holds none.
  integer function number_at(at)
    integer, intent(in) :: at
    character(:), allocatable :: word
    integer :: error
    number_at = -1
    if (at > command_argument_count()) return
    word = argument(at)
    if (len(word) == 0 .or. verify(word, '0123456789') /= 0) return
    read (word, *, iostat=error) number_at
    if (error /= 0) number_at = -1
  end function

  subroutine print_help()
    character(*), parameter :: lines(*) = [character(84) :: &
      'Writes and reads a 2-D array of doubles with a halo, by the Fortran 2008 bindings.', &
      'Usage: halo_f08 [OPTIONS] PATH', &
      '', &
      '  --rows N=1024      Doubles of each rank in the fast dimension', &
      '  --columns N=1024   Doubles of each rank in the slow dimension', &
      '  --halo N=1         Doubles around each block in memory', &
      '  --seed N=1         Seed of the data', &
      '  --no-read          Do not read the file back', &
      '  --no-verify        Do not check what was read', &
      '  --verify-only      Write nothing: read and check an earlier run''s file', &
      '', &
      'Examples:', &
      '  mpiexec -n 2 halo_f08 /scratch/field', &
      '  mpiexec -n 4 halo_f08 --rows 100 --columns 300 --halo 3 /scratch/field']
    integer :: i
    do i = 1, size(lines)
      write (*, '(a)') trim(lines(i))
    end do
  end subroutine

  ! The block of this rank, and its types in memory and file.
  function make_block(options, rank, ranks) result(block)
    type(options_t), intent(in) :: options
    integer, intent(in) :: rank, ranks
    type(block_t) :: block
    integer :: grid(2)

    grid = 0
    call MPI_Dims_create(ranks, 2, grid)
    block%local = [options%rows, options%columns]
    block%global = block%local * grid
    block%start = block%local * [mod(rank, grid(1)), rank / grid(1)]
    block%halo = options%halo
    block%base = int(ranks, MPI_OFFSET_KIND) * record_words * word_bytes
    call MPI_Type_create_subarray(2, block%global, block%local, block%start, MPI_ORDER_FORTRAN, &
                                  MPI_REAL8, block%file_type)
    call MPI_Type_commit(block%file_type)
    call MPI_Type_create_subarray(2, block%local + 2 * block%halo, block%local, &
                                  [block%halo, block%halo], MPI_ORDER_FORTRAN, MPI_REAL8, &
                                  block%memory_type)
    call MPI_Type_commit(block%memory_type)
  end function

  ! What a rank writes about itself.
  function describe(block, rank) result(record)
    type(block_t), intent(in) :: block
    integer, intent(in) :: rank
    integer(int64) :: record(record_words)
    record = [int(z'666F7265626179', int64), int(rank, int64), int(block%global, int64), &
              int(block%local, int64), int(block%start, int64)]
  end function

  ! splitmix64's output function (Steele, Lea, Flood, OOPSLA 2014): the word of the file at `index`.
  ! Products wrap modulo 2**64, which the compiler is told by -fwrapv.
  pure integer(int64) function pattern_word(seed, index)
    integer(int64), intent(in) :: seed, index
    pattern_word = mix(mix(seed) + (index + 1) * int(z'9E3779B97F4A7C15', int64))
  end function

  pure integer(int64) function mix(value)
    integer(int64), intent(in) :: value
    mix = ieor(value, shiftr(value, 30)) * int(z'BF58476D1CE4E5B9', int64)
    mix = ieor(mix, shiftr(mix, 27)) * int(z'94D049BB133111EB', int64)
    mix = ieor(mix, shiftr(mix, 31))
  end function

  ! Word of the file at which element (i, j) of the block stands; both count from 0.
  pure integer(int64) function word_index(block, i, j)
    type(block_t), intent(in) :: block
    integer, intent(in) :: i, j
    word_index = block%base / word_bytes + block%start(1) + i &
                 + int(block%start(2) + j, int64) * block%global(1)
  end function

  ! Fills the block in memory and leaves poison in its halo.
  subroutine fill(block, seed, field)
    type(block_t), intent(in) :: block
    integer(int64), intent(in) :: seed
    real(real64), intent(out) :: field(:, :)
    integer :: i, j
    field = transfer(poison, 0.0_real64)
    do j = 0, block%local(2) - 1
      do i = 0, block%local(1) - 1
        field(1 + block%halo + i, 1 + block%halo + j) = &
          transfer(pattern_word(seed, word_index(block, i, j)), 0.0_real64)
      end do
    end do
  end subroutine

  ! Finds the first word that is wrong, in the block or in its halo. `offset` is in bytes: of the
  ! file, or -1 for the halo.
  subroutine first_mismatch(block, seed, field, wrong, offset, expected, found)
    type(block_t), intent(in) :: block
    integer(int64), intent(in) :: seed
    real(real64), intent(in) :: field(:, :)
    logical, intent(out) :: wrong
    integer(int64), intent(out) :: offset, expected, found
    integer :: i, j
    logical :: inside

    wrong = .true.
    do j = -block%halo, block%local(2) + block%halo - 1
      do i = -block%halo, block%local(1) + block%halo - 1
        inside = i >= 0 .and. i < block%local(1) .and. j >= 0 .and. j < block%local(2)
        offset = -1
        expected = poison
        if (inside) then
          offset = word_index(block, i, j) * word_bytes
          expected = pattern_word(seed, offset / word_bytes)
        end if
        found = transfer(field(1 + block%halo + i, 1 + block%halo + j), found)
        if (found /= expected) return
      end do
    end do
    wrong = .false.
  end subroutine
end module

program halo_f08
  use, intrinsic :: iso_fortran_env, only: error_unit, int64, real64
  use mpi_f08
  use halo_f08_workload
  implicit none

  type(options_t) :: options
  type(block_t) :: block
  real(real64), allocatable :: field(:, :)
  integer :: rank, ranks, status
  logical :: right

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call parse_options(options, rank == 0, status)
  if (status < 0) then
    block = make_block(options, rank, ranks)
    allocate (field(block%local(1) + 2 * block%halo, block%local(2) + 2 * block%halo))
    if (rank == 0) then
      write (*, '(a,i0,a,i0,a,i0,a)') 'halo_f08: ', block%global(1), 'x', block%global(2), &
        ' doubles, halo ', block%halo, ', collective'
    end if
    right = .true.
    if (.not. options%verify_only) call write_file()
    if (options%read) call read_file(right)
    call MPI_Type_free(block%file_type)
    call MPI_Type_free(block%memory_type)
    status = merge(0, 1, right)
  end if
  call MPI_Finalize()
  if (status == 1) stop 1, quiet=.true.
  if (status == 2) stop 2, quiet=.true.

contains

  subroutine write_file()
    type(MPI_File) :: file
    integer(int64) :: record(record_words)
    real(real64) :: start, data_start
    integer :: error
    logical :: exists

    if (rank == 0) then
      inquire (file=options%path, exist=exists)
      if (exists) then
        call MPI_File_delete(options%path, MPI_INFO_NULL, error)
        call require(error, 'MPI_File_delete', options%path)
      end if
    end if
    call fill(block, options%seed, field)
    record = describe(block, rank)
    call MPI_Barrier(MPI_COMM_WORLD)
    start = MPI_Wtime()
    call MPI_File_open(MPI_COMM_WORLD, options%path, ior(MPI_MODE_CREATE, MPI_MODE_RDWR), &
                       MPI_INFO_NULL, file, error)
    call require(error, 'MPI_File_open', options%path)
    data_start = MPI_Wtime()
    call MPI_File_write_at_all(file, record_offset(), record, record_words, MPI_INTEGER8, &
                               MPI_STATUS_IGNORE, error)
    call require(error, 'MPI_File_write_at_all', options%path)
    call MPI_File_set_view(file, block%base, MPI_REAL8, block%file_type, 'native', &
                           MPI_INFO_NULL, error)
    call require(error, 'MPI_File_set_view', options%path)
    call MPI_File_write_all(file, field, 1, block%memory_type, MPI_STATUS_IGNORE, error)
    call require(error, 'MPI_File_write_all', options%path)
    data_start = MPI_Wtime() - data_start
    call MPI_File_close(file, error)
    call require(error, 'MPI_File_close', options%path)
    call report('write', MPI_Wtime() - start, data_start)
  end subroutine

  subroutine read_file(right)
    logical, intent(out) :: right
    type(MPI_File) :: file
    integer(int64) :: record(record_words)
    real(real64) :: start, data_start
    integer :: error

    field = transfer(poison, 0.0_real64)
    record = poison
    call MPI_Barrier(MPI_COMM_WORLD)
    start = MPI_Wtime()
    call MPI_File_open(MPI_COMM_WORLD, options%path, MPI_MODE_RDONLY, MPI_INFO_NULL, file, error)
    call require(error, 'MPI_File_open', options%path)
    data_start = MPI_Wtime()
    call MPI_File_read_at_all(file, record_offset(), record, record_words, MPI_INTEGER8, &
                              MPI_STATUS_IGNORE, error)
    call require(error, 'MPI_File_read_at_all', options%path)
    call MPI_File_set_view(file, block%base, MPI_REAL8, block%file_type, 'native', &
                           MPI_INFO_NULL, error)
    call require(error, 'MPI_File_set_view', options%path)
    call MPI_File_read_all(file, field, 1, block%memory_type, MPI_STATUS_IGNORE, error)
    call require(error, 'MPI_File_read_all', options%path)
    data_start = MPI_Wtime() - data_start
    call MPI_File_close(file, error)
    call require(error, 'MPI_File_close', options%path)
    call report('read', MPI_Wtime() - start, data_start)
    right = .true.
    if (options%verify) call judge(record, right)
  end subroutine

  function record_offset() result(offset)
    integer(MPI_OFFSET_KIND) :: offset
    offset = int(rank, MPI_OFFSET_KIND) * (block%base / ranks)
  end function

  function all_bytes() result(bytes)
    integer(int64) :: bytes
    bytes = block%base + 8 * product(int(block%global, int64))
  end function

  ! One line for a phase; the slowest rank counts.
  subroutine report(phase, seconds, data_seconds)
    character(*), intent(in) :: phase
    real(real64), intent(in) :: seconds, data_seconds
    real(real64) :: slowest(2), mib
    call MPI_Reduce([seconds, data_seconds], slowest, 2, MPI_REAL8, MPI_MAX, 0, MPI_COMM_WORLD)
    if (rank /= 0) return
    mib = real(all_bytes(), real64) / 2**20
    write (*, '(a7,1x,f10.1,a,f9.4,a,f9.1,a,f9.4,a,f9.1,2a)') phase // repeat(' ', 7), mib, &
      ' MiB  open-close ', slowest(1), ' s ', mib / slowest(1), ' MiB/s  data ', slowest(2), &
      ' s ', mib / slowest(2), ' MiB/s  ', options%path
    flush (6)
  end subroutine

  ! All ranks learn whether all were right; the lowest that was not says where.
  subroutine judge(record, right)
    integer(int64), intent(in) :: record(record_words)
    logical, intent(out) :: right
    integer(int64) :: offset, expected, found, wanted(record_words)
    integer :: i, lowest
    logical :: wrong

    call first_mismatch(block, options%seed, field, wrong, offset, expected, found)
    wanted = describe(block, rank)
    do i = 1, record_words
      if (wrong .or. record(i) == wanted(i)) cycle
      wrong = .true.
      offset = record_offset() + 8 * (i - 1)
      expected = wanted(i)
      found = record(i)
    end do
    call MPI_Allreduce(merge(rank, ranks, wrong), lowest, 1, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD)
    right = lowest == ranks
    if (right .and. rank == 0) then
      write (*, '(a,i0,2a)') 'verify  ', all_bytes(), ' bytes are right  ', options%path
    else if (rank == lowest .and. offset < 0) then
      write (error_unit, '(a,i0,3a,z16.16)') 'rank ', rank, ': ', options%path, &
        ' was read into the halo: found 0x', found
    else if (rank == lowest) then
      write (error_unit, '(a,i0,3a,i0,a,z16.16,a,z16.16)') 'rank ', rank, ': ', options%path, &
        ' is wrong at offset ', offset, ': expected 0x', expected, ', found 0x', found
    end if
  end subroutine
end program
