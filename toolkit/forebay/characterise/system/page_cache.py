"""Dropping a file from the page cache, and asking whether it is gone."""

import ctypes
import os
from pathlib import Path

_CACHESTAT = 451  # the number of the call, on every architecture. [Linux 6.5]
_TRIES = 3


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Cached(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")
    )


def drop(path: Path) -> float:
    """Writes the file out and drops it. Returns which part of it is still there, 0 where the kernel
    does not tell. Raises OSError."""
    size = path.stat().st_size
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        left = 1.0
        for _ in range(_TRIES):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            left = _cached_bytes(descriptor, size) / max(1, size)
            if left == 0:
                break
        return left
    finally:
        os.close(descriptor)


def _cached_bytes(descriptor: int, size: int) -> int:
    asked, answer = _Range(0, size), _Cached()
    code = ctypes.CDLL(None).syscall(
        _CACHESTAT, descriptor, ctypes.byref(asked), ctypes.byref(answer), 0
    )
    if code != 0:
        return 0
    pages: int = answer.cached
    return pages * os.sysconf("SC_PAGE_SIZE")
