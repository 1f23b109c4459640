"""What an MPI library reaches: messages between two processes, and its collective and independent
I/O on a shared file.

Run as a module under a launcher: `network SONAME SECONDS`, or
`files SONAME SECONDS NAME BYTES PIECE SEED`. Rank 0 prints a JSON object: `hosts`, on how many the
ranks are, and `rates`, a list of objects with bytes per second. As the probe, it calls the
functions that the dynamic linker finds first, so a preload is in its way.
"""

import ctypes
import json
import os
import random
import struct
import sys
import time
from pathlib import Path

from forebay.mpi_probe import Mpi

MESSAGE_BYTES = (8, 64 * 1024, 1024 * 1024, 4 * 1024 * 1024)
WINDOW = 8  # messages on the way
_HOST_BYTES = 64
_TAG = 7


class Job:
    """The ranks that were started."""

    def __init__(self, mpi: Mpi) -> None:
        self.mpi = mpi
        rank, size = ctypes.c_int(), ctypes.c_int()
        mpi.call("MPI_Comm_rank", mpi.world, ctypes.byref(rank))
        mpi.call("MPI_Comm_size", mpi.world, ctypes.byref(size))
        self.rank, self.size = rank.value, size.value

    def barrier(self) -> None:
        self.mpi.call("MPI_Barrier", self.mpi.world)

    def gathered(self, own: bytes) -> list[bytes]:
        """What each rank gave, all of one length, on rank 0; elsewhere blanks."""
        length = ctypes.c_int(len(own))
        everything = ctypes.create_string_buffer(len(own) * self.size)
        byte = self.mpi.byte
        self.mpi.call(
            "MPI_Gather", own, length, byte, everything, length, byte, ctypes.c_int(0),
            self.mpi.world,
        )  # fmt: skip
        return [everything.raw[i * len(own) : (i + 1) * len(own)] for i in range(self.size)]

    def slowest(self, seconds: float) -> float:
        """The longest of all ranks' times, known to all."""
        times = self.gathered(struct.pack("d", seconds))
        longest = max(struct.unpack("d", each)[0] for each in times)
        said = ctypes.create_string_buffer(struct.pack("d", longest), 8)
        self.mpi.call(
            "MPI_Bcast", said, ctypes.c_int(8), self.mpi.byte, ctypes.c_int(0), self.mpi.world
        )
        return float(struct.unpack("d", said.raw)[0])

    def hosts(self) -> int:
        names = self.gathered(os.uname().nodename.encode()[:_HOST_BYTES].ljust(_HOST_BYTES))
        return len(set(names))


class _Messages:
    """Between the first and the last rank; the others wait."""

    def __init__(self, job: Job, size: int, in_flight: int) -> None:
        self._job = job
        self._mpi = job.mpi
        self._size = ctypes.c_int(size)
        self._in_flight = in_flight
        self._peer = ctypes.c_int(job.size - 1 if job.rank == 0 else 0)
        self._data = [ctypes.create_string_buffer(size) for _ in range(in_flight)]
        self._requests = (self._mpi.handle * in_flight)()

    def turn(self) -> None:
        """A window of messages there, and one word back."""
        if self._job.rank == 0:
            self._pass_on("MPI_Isend", self._data)
            self._pass_on("MPI_Irecv", self._data[:1])
        elif self._job.rank == self._job.size - 1:
            self._pass_on("MPI_Irecv", self._data)
            self._pass_on("MPI_Isend", self._data[:1])

    def _pass_on(self, name: str, data: "list[ctypes.Array[ctypes.c_char]]") -> None:
        mpi = self._mpi
        # The answer to a window is one byte; that to a single message is as long.
        length = self._size if len(data) == self._in_flight else ctypes.c_int(1)
        for buffer, place in zip(data, range(len(data)), strict=True):
            request = ctypes.byref(self._requests, place * ctypes.sizeof(mpi.handle))
            mpi.call(
                name, buffer, length, mpi.byte, self._peer, ctypes.c_int(_TAG), mpi.world, request
            )
        mpi.call("MPI_Waitall", ctypes.c_int(len(data)), self._requests, mpi.status_ignore)


def network(job: Job, seconds: float) -> list[dict[str, object]]:
    """Bytes per second of messages of each size, one at a time (there and back: its time is half of
    the turn's) and a window of them."""
    if job.size < 2:
        sys.exit("two processes are needed to send messages")
    found: list[dict[str, object]] = []
    for size in MESSAGE_BYTES:
        for in_flight in (1, WINDOW):
            if in_flight > 1 and size == MESSAGE_BYTES[0]:
                continue
            messages = _Messages(job, size, in_flight)
            for _ in range(3):
                messages.turn()
            turns, spent = 1, 0.0
            while spent < seconds:
                job.barrier()
                start = time.perf_counter()
                for _ in range(turns):
                    messages.turn()
                spent = job.slowest(time.perf_counter() - start)
                again = turns
                turns = max(turns + 1, min(10 * turns, round(turns * 1.1 * seconds / spent)))
            moved = size * in_flight * again * (2 if in_flight == 1 else 1)
            found.append({"size_bytes": size, "in_flight": in_flight, "rate": moved / spent})
    return found


class _SharedFile:
    """One file, whose pieces are dealt out to the ranks in turn by the file view."""

    def __init__(self, job: Job, name: str, total: int, piece: int, seed: int) -> None:
        self._job, self._mpi = job, job.mpi
        self._name = name
        self._piece = piece
        self._pieces = max(1, total // (piece * job.size))
        self._data = ctypes.create_string_buffer(random.Random(seed + job.rank).randbytes(self.own))
        self.bytes = self.own * job.size

    @property
    def own(self) -> int:
        """Bytes of each rank."""
        return self._piece * self._pieces

    def remove(self) -> None:
        if self._job.rank == 0:
            Path(self._name).unlink(missing_ok=True)
        self._job.barrier()

    def seconds(self, call: str) -> float:
        """Of the slowest rank, from before the opening until after the close."""
        job, mpi = self._job, self._mpi
        job.barrier()
        start = time.perf_counter()
        file, view = ctypes.c_void_p(), mpi.handle()
        mpi.call(
            "MPI_File_open", mpi.world, self._name.encode(), mpi.mode_create_rdwr, mpi.info_null,
            ctypes.byref(file),
        )  # fmt: skip
        piece, stride = ctypes.c_int(self._piece), ctypes.c_int(self._piece * job.size)
        mpi.call(
            "MPI_Type_vector", ctypes.c_int(self._pieces), piece, stride, mpi.byte,
            ctypes.byref(view),
        )  # fmt: skip
        mpi.call("MPI_Type_commit", ctypes.byref(view))
        displacement = ctypes.c_int64(self._piece * job.rank)
        mpi.call("MPI_File_set_view", file, displacement, mpi.byte, view, b"native", mpi.info_null)
        mpi.call(call, file, self._data, ctypes.c_int(self.own), mpi.byte, mpi.status_ignore)
        mpi.call("MPI_File_close", ctypes.byref(file))
        spent = time.perf_counter() - start
        mpi.call("MPI_Type_free", ctypes.byref(view))
        return job.slowest(spent)


_CALLS = {"collective": "_all", "independent": ""}


def files(
    job: Job, seconds: float, name: str, total: int, piece: int, seed: int
) -> list[dict[str, object]]:
    """Bytes per second of writing a new file and of reading it, collectively and independently, in
    an order shuffled by `seed`, again and again for `seconds` each."""
    file = _SharedFile(job, name, total, piece, seed)
    accesses = sorted(_CALLS)
    random.Random(seed).shuffle(accesses)
    found: list[dict[str, object]] = []
    for access in accesses:
        for operation in ("write", "read"):
            spent, times = 0.0, 0
            while spent < seconds:
                if operation == "write":
                    file.remove()
                spent += file.seconds(f"MPI_File_{operation}{_CALLS[access]}")
                times += 1
            rate = file.bytes * times / spent
            found.append({"access": access, "operation": operation, "rate": rate})
    file.remove()
    return found


def main(arguments: list[str]) -> None:
    what, soname, seconds, *rest = arguments
    mpi = Mpi(soname)
    mpi.call("MPI_Init", None, None)
    job = Job(mpi)
    if what == "network":
        rates = network(job, float(seconds))
    else:
        name, total, piece, seed = rest
        rates = files(job, float(seconds), name, int(total), int(piece), int(seed))
    hosts = job.hosts()
    if job.rank == 0:
        print(json.dumps({"hosts": hosts, "processes": job.size, "rates": rates}), flush=True)
    mpi.call("MPI_Finalize")


if __name__ == "__main__":
    main(sys.argv[1:])
