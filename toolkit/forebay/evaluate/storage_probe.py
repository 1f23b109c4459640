"""How soon the program's own file systems answer, beside its runs: a network or a server that
others load shows in no counter of this host (background.py).

A probe is a few small writes and reads in a file of 64 KiB, past the page cache by O_DIRECT where
the file system takes that; else the file is dropped from the page cache before it is read. Each
write is synced, except by O_DIRECT on a disk of this node: that has come to the disk, and to sync
it would wait for the journal, and so for what the run before left dirty. Over a network it may have
come to a buffer alone.
"""

import contextlib
import errno
import mmap
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from forebay import filesystem
from forebay.statistics import median

_OPERATIONS = 4  # of each kind
_BYTES = 16 << 10  # of each
# Of a place; what is under way is waited for, nothing more is begun.
_LIMIT_S = 0.25
_MOST_PLACES = 2
# Small files on storage that is at rest answer within a factor of 2 to 3, most of the time, and
# what takes less than a few milliseconds can change what it likes.
_UNEVEN = 3.0
_NOTICED_S = 0.003
_NO_STORAGE = frozenset({"tmpfs", "ramfs", "hugetlbfs", "proc", "sysfs", "devtmpfs", "unknown"})


@dataclass(frozen=True)
class StorageLoad:
    """Medians of a probe, in seconds; None where the limit was over before there was one."""

    path: str
    write_s: float | None
    read_s: float | None


def places_of(paths: Iterable[str]) -> list[Path]:
    """Of the file systems that hold `paths` a directory each, at most two, those with most paths
    first; none in memory or where files cannot be made."""
    found: dict[str, Path] = {}
    count: Counter[str] = Counter()
    for path in paths:
        directory = filesystem.existing_part(Path(path).parent)
        mount = filesystem.mount_of(directory)
        if mount.type in _NO_STORAGE or not os.access(directory, os.W_OK | os.X_OK):
            continue
        found.setdefault(mount.point, directory)
        count[mount.point] += 1
    return [found[point] for point, _ in count.most_common(_MOST_PLACES)]


def probe(places: Iterable[Path]) -> list[StorageLoad]:
    """The load of each place, now. One that takes no file at present (full, gone) is left out."""
    found = []
    for place in places:
        with contextlib.suppress(OSError):
            found.append(_probe(place))
    return found


def _probe(place: Path) -> StorageLoad:
    """Raises OSError."""
    with _file(place) as (descriptor, direct), mmap.mmap(-1, _BYTES) as buffer:
        buffer.write(secrets.token_bytes(_BYTES))
        is_on_disk = direct and filesystem.is_local_disk(filesystem.mount_of(place).type)
        until = time.perf_counter() + _LIMIT_S

        def write(number: int) -> None:
            os.pwrite(descriptor, buffer, number * _BYTES)
            if not is_on_disk:
                os.fsync(descriptor)

        def read(number: int) -> None:
            os.preadv(descriptor, [buffer], number * _BYTES)

        writes = _timed(write, until)
        if not direct:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        reads = _timed(read, until, len(writes))
    return StorageLoad(
        str(place), median(writes) if writes else None, median(reads) if reads else None
    )


def _timed(
    operation: Callable[[int], None], until_s: float, most: int = _OPERATIONS
) -> list[float]:
    """Seconds of each, as many as were begun in time."""
    seconds = []
    for number in range(most):
        start = time.perf_counter()
        if start >= until_s:
            break
        operation(number)
        seconds.append(time.perf_counter() - start)
    return seconds


@contextlib.contextmanager
def _file(place: Path) -> Iterator[tuple[int, bool]]:
    """A new file's descriptor, and whether it takes O_DIRECT. The file is gone at the end; where it
    needs no name, also if we are killed."""
    try:
        descriptor, name, direct = _made(place, os.O_DIRECT)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
            raise
        descriptor, name, direct = _made(place, 0)
    try:
        yield descriptor, direct
    finally:
        if name is not None:
            name.unlink(missing_ok=True)
        os.close(descriptor)


def _made(place: Path, direct: int) -> tuple[int, Path | None, bool]:
    flags = os.O_RDWR | os.O_CLOEXEC | direct
    with contextlib.suppress(OSError):  # many network file systems have no files without a name
        return os.open(place, flags | os.O_TMPFILE, 0o600), None, bool(direct)
    # As doctor knows what a killed command left (leftovers.py).
    name = place / f".forebay-probe-{secrets.token_hex(16)}"
    try:
        return os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o600), name, bool(direct)
    except OSError:
        name.unlink(missing_ok=True)  # O_DIRECT may be refused when the file is there already
        raise


def uneven(one: Sequence[StorageLoad], other: Sequence[StorageLoad]) -> list[str]:
    """Places whose storage answered much later beside one of two runs than beside the other."""
    known = {load.path: load for load in other}
    return [
        load.path
        for load in one
        if load.path in known
        and (
            _differ(load.write_s, known[load.path].write_s)
            or _differ(load.read_s, known[load.path].read_s)
        )
    ]


def _differ(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one != other
    return max(one, other) >= max(_NOTICED_S, _UNEVEN * min(one, other))
