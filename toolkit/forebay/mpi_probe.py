"""The smallest real MPI-IO program, without a compiler: every rank writes its part of a shared file
by one collective call and reads its neighbour's back.

Run as a script under a launcher: SONAME PATH. Exit status 0: all bytes right. It calls the
functions that the dynamic linker finds first, as a compiled program does, so a preload is in its
way. SONAME may be a path. Constants are those of the three ABIs. [mpi.h of MPICH 4.0 and Open MPI
4.1; MPI 5.0, chapter 20]
"""

import ctypes
import sys
from pathlib import Path

PART = 64 * 1024  # bytes a rank


class Mpi:
    """MPI's constants in one of the ABIs, and its functions as the linker resolves them."""

    def __init__(self, soname: str) -> None:
        library = ctypes.CDLL(soname, mode=ctypes.RTLD_GLOBAL)
        self.functions = ctypes.CDLL(None)
        self.world: object
        self.info_null: object
        self.byte: object
        self.handle: type[ctypes.c_int] | type[ctypes.c_void_p] = ctypes.c_void_p  # but of files
        create, read_write = 1, 8
        if Path(soname).name.startswith("libmpi_abi.so"):
            self.world = ctypes.c_void_p(0x101)
            self.info_null = ctypes.c_void_p(0x130)
            self.byte = ctypes.c_void_p(0x247)
            self.status_ignore = ctypes.c_void_p(0)
            create, read_write = 2, 32
        elif hasattr(library, "ompi_mpi_comm_world"):
            self.world, self.info_null, self.byte = (
                ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(library, name)))
                for name in ("ompi_mpi_comm_world", "ompi_mpi_info_null", "ompi_mpi_byte")
            )
            self.status_ignore = ctypes.c_void_p(0)
        else:
            self.handle = ctypes.c_int
            self.world = ctypes.c_int(0x44000000)
            self.info_null = ctypes.c_int(0x1C000000)
            self.byte = ctypes.c_int(0x4C00010D)
            self.status_ignore = ctypes.c_void_p(1)
        self.mode_create_rdwr = ctypes.c_int(create | read_write)

    def call(self, name: str, *arguments: object) -> None:
        code = getattr(self.functions, name)(*arguments)
        if code != 0:
            sys.exit(f"{name} returned error {code}")


def _content(rank: int) -> bytes:
    return bytes((rank * 31 + i * 7 + i // 251) % 256 for i in range(PART))


def main(soname: str, path: str) -> None:
    mpi = Mpi(soname)
    mpi.call("MPI_Init", None, None)
    rank, size = ctypes.c_int(), ctypes.c_int()
    mpi.call("MPI_Comm_rank", mpi.world, ctypes.byref(rank))
    mpi.call("MPI_Comm_size", mpi.world, ctypes.byref(size))
    file = ctypes.c_void_p()
    mode = mpi.mode_create_rdwr
    mpi.call("MPI_File_open", mpi.world, path.encode(), mode, mpi.info_null, ctypes.byref(file))
    count = ctypes.c_int(PART)
    own = ctypes.create_string_buffer(_content(rank.value), PART)
    offset = ctypes.c_int64(rank.value * PART)
    mpi.call("MPI_File_write_at_all", file, offset, own, count, mpi.byte, mpi.status_ignore)
    mpi.call("MPI_File_sync", file)
    mpi.call("MPI_Barrier", mpi.world)
    mpi.call("MPI_File_sync", file)
    neighbour = (rank.value + 1) % size.value
    seen = ctypes.create_string_buffer(PART)
    offset = ctypes.c_int64(neighbour * PART)
    mpi.call("MPI_File_read_at_all", file, offset, seen, count, mpi.byte, mpi.status_ignore)
    mpi.call("MPI_File_close", ctypes.byref(file))
    mpi.call("MPI_Finalize")
    if seen.raw != _content(neighbour):
        sys.exit(f"rank {rank.value} read other bytes than rank {neighbour} wrote")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
