"""How much of a file the page cache holds, while it is read."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path
from types import TracebackType

_CACHESTAT = 451  # <asm-generic/unistd.h>, the same on all architectures; since Linux 6.5
_PERIOD_S = 0.05


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Cachestat(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")
    )


_libc = ctypes.CDLL(None, use_errno=True)


def bytes_in_page_cache(descriptor: int) -> int:
    """Of the whole file. Raises OSError where the kernel does not tell."""
    whole = _Range(0, 0)
    found = _Cachestat()
    if _libc.syscall(_CACHESTAT, descriptor, ctypes.byref(whole), ctypes.byref(found), 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(found.cached) * os.sysconf("SC_PAGE_SIZE")


class PeakPages:
    """Looks 20 times a second, from entering to leaving."""

    def __init__(self, path: Path) -> None:
        self.peak = 0  # bytes; complete when left
        self._descriptor = os.open(path, os.O_RDONLY)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> PeakPages:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._look()
        os.close(self._descriptor)

    def _look(self) -> None:
        self.peak = max(self.peak, bytes_in_page_cache(self._descriptor))

    def _watch(self) -> None:
        while not self._ended.wait(_PERIOD_S):
            self._look()
