"""Where a place is measured: a hidden directory of its own, with files that were written before."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from forebay.characterise.system import page_cache, place, striping
from forebay.characterise.system.place import Place
from forebay.errors import ForebayError
from forebay.filesystem import Stripe
from forebay.units import show_bytes

PREFIX = ".forebay-system-"
SHARED, OWN, FRESH = "shared", "own", "fresh"
_BLOCK_BYTES = 4 << 20  # a file is a multiple of it
_FIRST_BYTES = 8 << 20
_ALIGNMENT = 4096


@dataclass(frozen=True)
class Sizing:
    """How large a set of files is: at most `bytes_most`, and what is written in `seconds`."""

    bytes_most: int
    seconds: float


@dataclass(frozen=True)
class Workspace:
    """`bytes` of each set of files: one shared, one for each process, one to write anew. `stripe`
    as set here, or as the place has it. `direct`: whether O_DIRECT works."""

    place: Place
    directory: Path
    bytes: int
    processes: int
    write_rate: float  # bytes per second, synced
    stripe: Stripe | None
    direct: bool

    def keys(self) -> dict[str, object]:
        """What a limit measured here has in the system file."""
        found: dict[str, object] = {"path": str(self.place.path)}
        if self.stripe is not None:
            found["stripe_count"] = max(striping.ALL, self.stripe.count)
            found["stripe_size_bytes"] = self.stripe.size
        return found

    def files(self, name: str, processes: int) -> list[Path]:
        """Those of one run: the shared one, or one for each process."""
        if name == SHARED:
            return [self.directory / name]
        return [self.directory / f"{name}.{number}" for number in range(processes)]

    def remove_fresh(self) -> None:
        """What the last run wrote anew."""
        for path in self.directory.glob(f"{FRESH}*"):
            path.unlink()

    def drop(self, name: str, processes: int) -> float:
        """Drops files from the page cache, and returns which part of one is still there at most."""
        return max(page_cache.drop(path) for path in self.files(name, processes))


def make(
    where: Place,
    sizing: Sizing,
    processes: int,
    seed: int,
    made: Callable[[Path], None],
    stripe: Stripe | None = None,
) -> Workspace:
    """Writes the files, with bytes that do not compress. `made` is told of the directory, which is
    to be removed. `stripe`: set here, in place of the present one. Raises ForebayError."""
    try:
        directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=where.path))
    except OSError as error:
        raise _unusable(where, error) from error
    made(directory)
    if stripe is not None:
        why = striping.set_stripe(where.mount.type, directory, stripe.count, stripe.size)
        if why:
            raise ForebayError(f"{where.path} cannot be striped: {why}", exit_code=1)
    generator = np.random.default_rng(seed)
    most = min(sizing.bytes_most, place.most_bytes(where))
    try:
        first = _whole(min(_FIRST_BYTES, most), processes)
        seconds = _write(directory / SHARED, first, generator)
        rate = first / seconds
        size = _whole(min(most, max(first, round(rate * sizing.seconds))), processes)
        _write(directory / SHARED, size, generator)
        part = size // processes
        if processes > 1:
            for number in range(processes):
                _write(directory / f"{OWN}.{number}", part, generator)
        direct = not where.in_memory and _takes_direct(directory / SHARED)
    except OSError as error:
        raise _unusable(where, error) from error
    return Workspace(where, directory, size, processes, rate, stripe or where.stripe, direct)


def remove(directory: Path) -> str:
    """Removes what `make` made. Returns why something is left, or nothing."""
    try:
        shutil.rmtree(directory)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{directory} could not be removed: {error.strerror or error}"
    return ""


def _whole(size: int, processes: int) -> int:
    """Parts of whole blocks for each process."""
    unit = min(_BLOCK_BYTES, max(_ALIGNMENT, size // processes // _ALIGNMENT * _ALIGNMENT))
    return max(1, size // (unit * processes)) * unit * processes


def _write(path: Path, size: int, generator: np.random.Generator) -> float:
    """Writes and syncs a file; returns the seconds."""
    spent = 0.0
    with path.open("wb", buffering=0) as file:
        left = size
        while left:
            block = memoryview(generator.bytes(min(left, _BLOCK_BYTES)))
            start = time.perf_counter()
            done = 0
            while done < len(block):
                done += file.write(block[done:])
            spent += time.perf_counter() - start
            left -= len(block)
        start = time.perf_counter()
        os.fsync(file.fileno())
    return spent + time.perf_counter() - start


def _takes_direct(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_DIRECT))
    except OSError:
        return False
    return True


def _unusable(where: Place, error: OSError) -> ForebayError:
    return ForebayError(
        f"files cannot be written in {where.path} "
        f"({show_bytes(where.free_bytes)} free): {error.strerror or error}",
        "Free some space (or ask for your quota), or name another directory.",
        exit_code=1,
    )
