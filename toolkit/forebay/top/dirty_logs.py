"""What processes of this host have in write-behind logs and in no file yet."""

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from forebay import cache, filesystem
from forebay.cache import Selection
from forebay.errors import ForebayError

_AGAIN_S = 2.0


class DirtyLogs:
    """Asked no more often than every two seconds: a program is started for each answer."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.problem = ""  # why it is not known
        self._clock = clock
        self._asked = -_AGAIN_S
        self._known: dict[int, int] = {}

    def by_pid(self, places: Iterable[str]) -> dict[int, int]:
        """Bytes, of each process that writes logs, in this node's storage and in `places`, where
        hints have them."""
        if self.problem or self._clock() - self._asked < _AGAIN_S:
            return self._known
        self._asked = self._clock()
        directories = [local.path for local in filesystem.local_paths()]
        directories += [place for place in places if place not in directories]
        try:
            found = cache.survey(Selection([Path(place) for place in directories]))
        except ForebayError as error:
            self.problem = f"unflushed bytes are not known: {error.message}"
            return {}
        self._known = {}
        for log in found.logs:
            if log["in_use"] and log["progress"] and log.get("host") == os.uname().nodename:
                pid = log["process"]
                dirty = log["progress"]["dirty_bytes"]
                self._known[pid] = self._known.get(pid, 0) + dirty
        return self._known
