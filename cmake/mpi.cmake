# Every MPI on the machine, each as an imported target: mpi::mpich, mpi::openmpi (C and C++), and the
# compiler wrappers for Fortran. FOREBAY_MPIS lists the ones found. Debian installs both side by
# side, so CMake's own FindMPI, which knows one, does not serve.

set(FOREBAY_MPIS "")
foreach(pair "mpich:mpich" "openmpi:ompi-c")
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 mpi)
  list(GET pair 1 module)
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
message(STATUS "MPIs found: ${FOREBAY_MPIS}")

# The command that runs COUNT ranks of a program under MPI, as a list.
function(forebay_mpiexec out mpi count)
  if(mpi STREQUAL "openmpi")
    set(${out} ${MPIEXEC_openmpi} --allow-run-as-root --oversubscribe --bind-to none -n ${count}
        PARENT_SCOPE)
  else()
    set(${out} ${MPIEXEC_mpich} -n ${count} PARENT_SCOPE)
  endif()
endfunction()
