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


_libc = ctypes.CDLL(None, use_errno=True)


def bytes_in_page_cache(descriptor: int) -> int:
    """Of the whole file. Raises OSError where the kernel does not tell."""
    whole, found = _Range(0, 0), _Cached()
    if _libc.syscall(_CACHESTAT, descriptor, ctypes.byref(whole), ctypes.byref(found), 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(found.cached) * os.sysconf("SC_PAGE_SIZE")


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
            left = _told_bytes(descriptor) / max(1, size)
            if left == 0:
                break
        return left
    finally:
        os.close(descriptor)


def _told_bytes(descriptor: int) -> int:
    try:
        return bytes_in_page_cache(descriptor)
    except OSError:
        return 0
