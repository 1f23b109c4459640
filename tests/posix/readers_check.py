"""Goal: real programs that read by uproot, h5py, numpy, pyarrow and tar get the same bytes under
Forebay, whether what is declared is the whole file, parts that they do not read, nothing that a
file has, or what the file's own index says, and some of it was there before they asked; one process
and three that are forked from one.

Method: the readers of proxies/readers check what they read themselves. Records must say that
something was fetched, where all of its file is declared, for who reads by descriptors, through a
mapping or by a stream. Those whose library is not installed are left out, and named.

usage: readers_check.py LIBRARY uring|threads
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from preloaded import Preloaded, evict, total, wait_until_settled

ROOT = Path(__file__).resolve().parents[2]
READERS = ROOT / "proxies/readers"
sys.path[:0] = [str(ROOT / "toolkit"), str(READERS)]

#: Its size, in units of its own, and what it needs.
PROGRAMS = {
    "uproot_columns": (40_000, "uproot"),
    "uproot_mapped": (40_000, "uproot"),
    "h5py_slices": (4, "h5py"),
    "h5py_field": (32, "h5py"),
    "numpy_memmap": (40, "numpy"),
    "numpy_fromfile": (40, "numpy"),
    "parquet_columns": (80_000, "pyarrow"),
    "small_files": (60, "numpy"),
}

#: What they read of.
DATASETS = {"h5py_slices": "field", "h5py_field": "v"}

#: What these ask for is fetched for them, however fast they are.
BY_DESCRIPTORS = {"uproot_columns", *DATASETS}

#: These read through a mapping or by a C stream: the page cache is filled for them, unless they are
#: done before.
UNSEEN = {"uproot_mapped", "numpy_memmap", "numpy_fromfile"}

DECLARED = {
    "whole": "[[0, 0]]",
    "parts": str([[offset, 70_000] for offset in range(0, 30_000_000, 300_000)]),
    "outside": "[[1000000000000, 5000]]",
}


def by_index(one: str, data: Path) -> list[tuple[int, int]]:
    """What the index of the reader's file says of what it reads."""
    # Not where they are not installed.
    if one in DATASETS:
        from forebay import hdf5_extents

        return hdf5_extents.extents_of(data, [DATASETS[one]]).extents
    import table
    from forebay import root_extents

    entry = root_extents.Order.ENTRY
    return root_extents.extents_of(data, "events", list(table.READ_NAMES), entry).extents


def check_until(
    preloaded: Preloaded,
    command: list[str],
    data: Path,
    declared: str,
    is_enough: Callable[[list[dict[str, object]]], bool],
) -> list[str]:
    """What is wrong with a reader of which records should say enough. One that gets the processor
    before the thread that fetches for it overtakes it: it is started until one does not."""
    what = f"{data.stem}, {declared}"
    last = time.time() + 20
    while True:
        is_cold = evict(data)
        code, output, errors = preloaded.run(command)
        records = preloaded.take_records()
        served, asked = total(records, "bytes_served"), total(records, "bytes_asked_declared")
        fetched, requests = total(records, "bytes_fetched"), total(records, "requests")
        print(f"{what}: {served} bytes of {asked} served, {fetched} fetched by {requests} requests")
        if code != 0 or b"all bytes are right" not in output:
            return [f"{what}: {code}, {output!r} {errors!r}"]
        if not is_cold or is_enough(records):
            return []
        if time.time() > last:
            return [f"{what}: little was served or fetched: {records}"]


def check_by_index(preloaded: Preloaded, command: list[str], data: Path) -> list[str]:
    """What is wrong where what its file's index says was declared."""
    pairs = [list(extent) for extent in by_index(data.stem, data)]
    (preloaded.directory / "intent.toml").write_text(
        f'[[file]]\npath = "{data.name}"\nwillneed = {pairs}\n'
    )

    def is_half_served(records: list[dict[str, object]]) -> bool:
        return total(records, "bytes_served") >= total(records, "bytes_asked_declared") // 2

    return check_until(preloaded, command, data, "by its index", is_half_served)


def check_several(preloaded: Preloaded, command: list[str], data: Path, declared: str) -> list[str]:
    """What is wrong where three processes read by what was declared last."""
    evict(data)
    code, output, errors = preloaded.run([*command, "--processes", "3"])
    records = preloaded.take_records()
    what = f"{data.stem}, {declared}, three processes"
    print(f"{what}: {len(records)} openings, {total(records, 'bytes_fetched')} bytes fetched")
    failures = []
    if code != 0 or output.count(b"all bytes are right") != 3:
        failures.append(f"{what}: {code}, {output!r} {errors!r}")
    if len(records) < 3:
        failures.append(f"{what}: a process left no record: {records}")
    return failures


def is_any_fetched(records: list[dict[str, object]]) -> bool:
    """Whether anything was read ahead."""
    return total(records, "bytes_fetched") > 0 or total(records, "requests") > 0


def missing(library: str) -> bool:
    """numpy and typer, which all of them need, or a library of a reader's own."""
    return any(importlib.util.find_spec(name) is None for name in (library, "numpy", "typer"))


def main() -> int:
    library, queue = sys.argv[1:3]
    failures = []
    there = {name: needs for name, needs in PROGRAMS.items() if not missing(needs[1])}
    for name in PROGRAMS.keys() - there.keys():
        print(f"{name} is left out: {PROGRAMS[name][1]}, numpy or typer is not installed")
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-readers-") as name:
        directory = Path(name).resolve()
        preloaded = Preloaded(library, queue, directory, "")
        commands = {
            one: [sys.executable, str(READERS / f"{one}.py"), f"{one}.data", "--size", str(size)]
            for one, (size, _) in there.items()
        }
        for command in commands.values():
            subprocess.run([*command, "--create"], cwd=directory, check=True)
        wait_until_settled(directory)
        for kind, declared in DECLARED.items():
            sections = (
                f'[[file]]\npath = "{pattern}"\nwillneed = {declared}\n'
                for pattern in ("*.data", "*.data/*")
            )
            (directory / "intent.toml").write_text("".join(sections))
            for one, command in commands.items():
                data = directory / f"{one}.data"
                files = list(data.iterdir()) if data.is_dir() else [data]
                emptied = [evict(file) for file in files]
                code, output, errors = preloaded.run(command)
                records = preloaded.take_records()
                fetched = total(records, "bytes_fetched")
                print(f"{one}, {kind}: {len(records)} openings, {fetched} bytes fetched")
                if code != 0 or b"all bytes are right" not in output:
                    failures.append(f"{one}, {kind}: {code}, {output!r} {errors!r}")
                is_sure = one in BY_DESCRIPTORS and kind == "whole" and all(emptied)
                if is_sure and fetched == 0:
                    failures.append(f"{one}: nothing was read ahead: {records}")
                if one in UNSEEN and kind == "whole" and not is_any_fetched(records):
                    failures += check_until(preloaded, command, data, kind, is_any_fetched)
                if one in UNSEEN and kind == "whole":
                    failures += check_several(preloaded, command, data, kind)
        for one in sorted(there.keys() & BY_DESCRIPTORS):
            data = directory / f"{one}.data"
            failures += check_by_index(preloaded, commands[one], data)
            failures += check_several(preloaded, commands[one], data, "by its index")
    print("\n".join(failures) or "all bytes are right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
