"""Whether the files that a program wrote are the same by the stock MPI and through Forebay."""

import fnmatch
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from forebay.comparison import FOREBAY, STOCK, FileCheck
from forebay.written_files import FileHash

Hashes = dict[str, FileHash | None]


@dataclass(frozen=True)
class RunFiles:
    """What one run left. None in place of a hash: the file is not there, or not this run's work."""

    mpi: Hashes
    others: Hashes
    places: frozenset[Path]  # directories and files at which those without MPI were looked for


class FileChecks:
    """Gathers what the runs left, pair by pair, and compares it."""

    def __init__(self, ignored: Iterable[str] = (), control: str = "the stock MPI") -> None:
        """`control`: what STOCK is called in the reasons."""
        self._control = control
        self._ignored = list(ignored)
        self._pairs: list[dict[str, RunFiles]] = []

    def add(self, pair: dict[str, RunFiles]) -> None:
        """Takes a pair's runs, by side."""
        self._pairs.append(pair)

    def ignores(self, path: str) -> bool:
        """Whether a pattern matches: with a slash in it the absolute path, else the name."""
        name = Path(path).name
        for pattern in self._ignored:
            if "/" in pattern:
                if fnmatch.fnmatch(path, os.path.abspath(pattern)):  # noqa: PTH100
                    return True
            elif fnmatch.fnmatch(name, pattern):
                return True
        return False

    def checks(self) -> dict[str, FileCheck]:
        """Every file that a run wrote and that is not ignored, those written through MPI first."""
        runs = [run for pair in self._pairs for run in pair.values()]
        through_mpi = list(dict.fromkeys(path for run in runs for path in run.mpi))
        others = sorted({path for run in runs for path in run.others} - set(through_mpi))
        found = [self._of_mpi(path) for path in through_mpi if not self.ignores(path)]
        found += [self._of_others(path) for path in others if not self.ignores(path)]
        return {check.path: check for check in found}

    def _of_mpi(self, path: str) -> FileCheck:
        left = [
            (pair[STOCK].mpi.get(path), pair[FOREBAY].mpi.get(path))
            for pair in self._pairs
            if any(path in run.mpi for run in pair.values())
        ]
        a, b = next(((a, b) for a, b in left if a != b), left[-1])
        check = _check(path, a, b)
        check.identical = None if a is None and b is None else a == b
        if check.identical is None:
            check.reason = "gone after the run on both sides"
        elif a != b and len({a for a, _ in left}) > 1:
            check.reason = f"{self._control}'s runs differ among themselves, too"
        return check

    def _of_others(self, path: str) -> FileCheck:
        """The stock MPI's own runs are the control: where they differ among themselves, as logs do,
        nothing can be said of Forebay."""
        stock, forebay = (
            [pair[side].others.get(path) for pair in self._pairs if _covers(pair[side], path)]
            for side in (STOCK, FOREBAY)
        )
        expected = next((found for found in stock if found), None)
        check = _check(path, expected, next((f for f in forebay if f != expected), expected))
        check.mpi = False
        if len(stock) < 2 or len(forebay) < 2:
            check.reason = "seen in too few runs to tell"
        elif len(set(stock)) > 1:
            check.reason = f"{self._control}'s runs differ among themselves"
        elif expected is None and None in forebay:
            check.reason = "left by some runs only"
        else:
            check.identical = all(found == expected for found in forebay)
        return check


def _check(path: str, a: FileHash | None, b: FileHash | None) -> FileCheck:
    return FileCheck(
        path=path,
        bytes=max(a.bytes if a else 0, b.bytes if b else 0),
        hash_stock=a.digest if a else None,
        hash_forebay=b.digest if b else None,
        identical=None,
    )


def _covers(run: RunFiles, path: str) -> bool:
    """Whether the run would have been seen to write `path`."""
    return not run.places.isdisjoint((Path(path), *Path(path).parents))
