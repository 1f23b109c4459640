# Every MPI on the machine, each as an imported target: mpi::mpich, mpi::openmpi, mpi::abi (C and C++),
# and the compiler wrappers for Fortran. FOREBAY_MPIS lists the ones found: a back end is built for
# each. FOREBAY_RUNNABLE_MPIS lists those with a launcher: tests are built for each. Debian installs
# MPICH and Open MPI side by side, so CMake's own FindMPI, which knows one, does not serve.

set(FOREBAY_MPI_NAMES "mpich;openmpi;abi" CACHE STRING "The MPIs that are looked for")
set(FOREBAY_MPIS "")
foreach(pair "mpich:mpich" "openmpi:ompi-c")
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 mpi)
  list(GET pair 1 module)
  if(NOT mpi IN_LIST FOREBAY_MPI_NAMES)
    continue()
  endif()
  pkg_check_modules(MPI_${mpi} QUIET ${module})
  find_program(MPICC_${mpi} mpicc.${mpi})
  find_program(MPIFORT_${mpi} NAMES mpifort.${mpi} mpif90.${mpi})
  find_program(MPIEXEC_${mpi} NAMES mpiexec.${mpi} mpirun.${mpi})
  if(MPI_${mpi}_FOUND AND MPIEXEC_${mpi})
    add_library(mpi::${mpi} INTERFACE IMPORTED)
    target_include_directories(mpi::${mpi} INTERFACE ${MPI_${mpi}_INCLUDE_DIRS})
    # Only the MPI library itself: what else the .pc file names is its private business.
    if(mpi STREQUAL "mpich")
      target_link_libraries(mpi::${mpi} INTERFACE mpich)
    else()
      target_link_options(mpi::${mpi} INTERFACE -L${MPI_${mpi}_LIBDIR})
      target_link_libraries(mpi::${mpi} INTERFACE ${MPI_${mpi}_LINK_LIBRARIES})
    endif()
    # The C++ bindings of MPI-2 are gone from the standard; nobody here wants their headers.
    target_compile_definitions(mpi::${mpi} INTERFACE MPICH_SKIP_MPICXX OMPI_SKIP_MPICXX)
    list(APPEND FOREBAY_MPIS ${mpi})
  endif()
endforeach()
# Both are wanted to have a launcher above.
set(FOREBAY_RUNNABLE_MPIS ${FOREBAY_MPIS})

# The standard ABI of MPI 5: some MPI's mpicc_abi, whose -show tells where its mpi.h and libmpi_abi.so
# are. PyPI's `mpich`, which the project's .venv has, is one.
set(FOREBAY_MPI_ABI_ROOT "" CACHE PATH "An MPI with the standard ABI: the directory of bin/mpicc_abi")
unset(MPICC_abi CACHE)  # Cheap to find, and another one when the root or .venv changes.
if(NOT abi IN_LIST FOREBAY_MPI_NAMES)
  set(MPICC_abi MPICC_abi-NOTFOUND)
elseif(FOREBAY_MPI_ABI_ROOT)
  find_program(MPICC_abi mpicc_abi PATHS ${FOREBAY_MPI_ABI_ROOT}/bin NO_DEFAULT_PATH REQUIRED)
else()
  find_program(MPICC_abi mpicc_abi PATHS ${CMAKE_SOURCE_DIR}/.venv/bin)
endif()
if(MPICC_abi)
  execute_process(COMMAND ${MPICC_abi} -show OUTPUT_VARIABLE words ERROR_QUIET)
  separate_arguments(words UNIX_COMMAND "${words}")
  set(includes ${words})
  list(FILTER includes INCLUDE REGEX "^-I")
  list(TRANSFORM includes REPLACE "^-I" "")
  set(definitions ${words})
  list(FILTER definitions INCLUDE REGEX "^-D")
  list(TRANSFORM definitions REPLACE "^-D" "")
  set(directories ${words})
  list(FILTER directories INCLUDE REGEX "^-L")
  list(TRANSFORM directories REPLACE "^-L" "")
  unset(MPI_ABI_LIBRARY CACHE)
  find_library(MPI_ABI_LIBRARY mpi_abi PATHS ${directories} NO_DEFAULT_PATH)
  if(MPI_ABI_LIBRARY AND includes)
    add_library(mpi::abi INTERFACE IMPORTED)
    target_include_directories(mpi::abi INTERFACE ${includes})
    target_compile_definitions(mpi::abi INTERFACE ${definitions})
    target_link_libraries(mpi::abi INTERFACE ${MPI_ABI_LIBRARY})
    list(APPEND FOREBAY_MPIS abi)
    # The launcher of the same MPI, not the one that PATH names.
    cmake_path(GET MPICC_abi PARENT_PATH beside)
    unset(MPIEXEC_abi CACHE)
    find_program(MPIEXEC_abi NAMES mpiexec mpirun PATHS ${beside} NO_DEFAULT_PATH)
    if(MPIEXEC_abi)
      list(APPEND FOREBAY_RUNNABLE_MPIS abi)
    endif()
  else()
    message(STATUS "${MPICC_abi} tells of no mpi.h and libmpi_abi: no back end for the standard ABI")
  endif()
endif()
message(STATUS "MPIs found: ${FOREBAY_MPIS}")

# The command that runs COUNT ranks of a program under MPI, as a list.
function(forebay_mpiexec out mpi count)
  if(mpi STREQUAL "openmpi")
    # Tests run beside each other: a rank that waits leaves the core to one that does not.
    set(${out} ${MPIEXEC_openmpi} --allow-run-as-root --oversubscribe --bind-to none
        --mca mpi_yield_when_idle 1 -n ${count} PARENT_SCOPE)
  else()
    set(${out} ${MPIEXEC_${mpi}} -n ${count} PARENT_SCOPE)
  endif()
endfunction()

# forebay_mpi_test_properties(TEST MPI RANKS PROPERTIES...): what ctest has to know of a test, and how
# many of its places it takes: `make mpi-test` gives two for each core. Open MPI's ranks yield the core
# while they wait, and starting them is mostly waiting. MPICH's poll: where they share cores, a message
# costs a turn of the scheduler's, and tests beside each other take longer than one after the other.
function(forebay_mpi_test_properties test mpi ranks)
  set(places 1)
  if(NOT mpi STREQUAL "openmpi" AND ranks GREATER 1)
    math(EXPR places "2 * ${ranks}")
  endif()
  set_tests_properties(${test} PROPERTIES PROCESSORS ${places} ${ARGN})
  if(mpi STREQUAL "openmpi")
    # Jobs of a user share a directory, which one that ends removes while another begins: orte_init
    # fails then. The name is short, since there may be sockets below.
    string(SHA1 own "${test}")
    string(SUBSTRING ${own} 0 8 own)
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT
        OMPI_MCA_orte_tmpdir_base=${CMAKE_BINARY_DIR}/ompi/${own})
  endif()
endfunction()
