"""How much of a file the page cache holds, while it is read."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType

from forebay.characterise.system.page_cache import bytes_in_page_cache

_PERIOD_S = 0.05


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
