"""Measures real programs that read, on an emulated parallel file system with a page cache: with the
kernel's own read-ahead at several settings, and read ahead by Forebay; one process and several on
one file. One JSON document a round of one program."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from analysis_runs import (
    ROOT,
    SETTLING_S,
    Testbed,
    Tools,
    circumstances,
    evict,
    observe,
    testbed,
    with_intent,
)
from kernel_runs import KERNEL, KERNEL_DEFAULT

READERS = ROOT / "proxies/readers"

# What the file system asks programs to read at once (st_blksize) is the stripe, which makes no
# difference else with one server: that of file systems on a node, and of GPFS and Lustre a small
# one. Python's file objects and C streams go by it.
STRIPE = "4KiB"


class Plan(Enum):
    """Where the extents come from."""

    RECORDED = "a recorded run"
    ROOT_ENTRY = "the index of the file, by entry"
    ROOT_BRANCH = "the index of the file, by branch"
    HDF5 = "the index of the file"
    TOLD = "the program, which knows them"
    WHOLE = "whole files"


@dataclass(frozen=True)
class Reader:
    """A program. `bar`: times that the kernel's default must take longer."""

    name: str  # of its results
    title: str
    script: str
    plan: Plan
    bar: float | None = None


ALL = [
    Reader("uproot", "uproot", "uproot_columns.py", Plan.ROOT_ENTRY, 4),
    Reader("uproot-mapped", "uproot, mapping", "uproot_mapped.py", Plan.ROOT_BRANCH, 4),
    Reader("h5py", "h5py", "h5py_slices.py", Plan.RECORDED, 5),
    Reader("h5py-field", "h5py, one dataset of four", "h5py_field.py", Plan.HDF5, 5),
    Reader("memmap", "numpy.memmap", "numpy_memmap.py", Plan.TOLD, 5),
    Reader("fromfile", "numpy.fromfile", "numpy_fromfile.py", Plan.TOLD),
    Reader("parquet", "pyarrow, Parquet", "parquet_columns.py", Plan.RECORDED),
    Reader("tar", "tar, small files", "small_files.py", Plan.WHOLE),
]
BY_NAME = {reader.name: reader for reader in ALL}

SEVERAL = (2, 4, 8)
"""Processes on the one file."""
TOGETHER = [reader.name for reader in ALL if reader.bar is not None]
"""Those that are measured so, too."""

FOREBAY = "Forebay"
APART = "Forebay, gap = 0"
WRONG = "Forebay, wrong extents"
WARM = "in the page cache"

TOLD = re.compile(r"read (\d+) bytes in \d+ pieces: ([\d.]+) s")
_PAIR = re.compile(r"\[(\d+), (\d+)\]")


@dataclass(frozen=True)
class Case:
    """One way of reading the same bytes."""

    name: str
    read_ahead: int = KERNEL_DEFAULT
    intent: Path | None = None
    is_warm: bool = False


def cases_of(reader: Reader, processes: int, exact: Path, apart: Path, wrong: Path) -> list[Case]:
    """Of small files there are no wrong extents, and most settings differ in nothing. What differs
    by how many processes there are is told by fewer cases."""
    settings = [Case(case.name, case.read_ahead) for case in KERNEL]
    right, warm = Case(FOREBAY, intent=exact), Case(WARM, is_warm=True)
    if reader.plan is Plan.WHOLE:
        return [settings[0], settings[-1], right, warm]
    misled = Case(WRONG, intent=wrong)
    if processes > 1:
        return [settings[0], settings[-1], right, misled, warm]
    return [*settings, right, Case(APART, intent=apart), misled, warm]


def measure_round(
    tools: Tools,
    memory: Path,
    reader: Reader,
    processes: Collection[int],
    shuffle: random.Random,
) -> dict[str, Any]:
    """Every case of so many processes once, in shuffled order, on an empty page cache each time but
    one. Needs root, which sets the kernel's read-ahead."""
    with (
        testbed(tools, memory, "--page-cache", "--stripe", STRIPE) as bed,
        tempfile.TemporaryDirectory(dir=memory) as name,
    ):
        place = Path(name)
        command = [sys.executable, str(READERS / reader.script), str(bed.mount / "data")]
        _make(command, place / "data", bed.mount / "data")
        time.sleep(SETTLING_S)
        exact, apart, wrong = (place / f"{name}.toml" for name in ("exact", "apart", "wrong"))
        _write_plan(tools, reader, command, exact)
        apart.write_text(exact.read_text().replace("[[file]]\n", "[[file]]\ngap = 0\n"))
        declared = _PAIR.findall(exact.read_text())
        if reader.plan is not Plan.WHOLE:
            _write_wrong(exact, wrong, (bed.mount / "data").stat().st_size)
        todo = [
            (count, case)
            for count in processes
            for case in cases_of(reader, count, exact, apart, wrong)
        ]
        shuffle.shuffle(todo)
        runs = [_run(tools, bed, case, place, command, count) for count, case in todo]
        needed = sum(int(length) for _, length in declared) or _size(bed.mount / "data")
    return {"reader": reader.name, **circumstances(), "bytes_declared": needed, "runs": runs}


def _files(data: Path) -> list[Path]:
    return sorted(data.iterdir()) if data.is_dir() else [data]


def _size(data: Path) -> int:
    return sum(file.stat().st_size for file in _files(data))


def _make(command: list[str], made: Path, data: Path) -> None:
    """Elsewhere, and then copied: libraries write in pieces, each of which the testbed delays."""
    subprocess.run([*command[:-1], str(made), "--create"], check=True)
    if made.is_dir():
        data.mkdir()
        with ThreadPoolExecutor(max_workers=10) as copies:
            list(copies.map(lambda file: shutil.copyfile(file, data / file.name), _files(made)))
        shutil.rmtree(made)
    else:
        shutil.copyfile(made, data)
        made.unlink()


def _write_plan(tools: Tools, reader: Reader, command: list[str], exact: Path) -> None:
    data = command[-1]
    if reader.plan is Plan.WHOLE:
        exact.write_text(f"[[file]]\npath = '{data}/*'\nwillneed = [[0, 0]]\n")
    elif reader.plan is Plan.TOLD:
        subprocess.run([*command, "--intent", str(exact)], check=True)
    elif reader.plan is Plan.RECORDED:
        record = [str(tools.forebay), "run", "--quiet", "--record", "--intent-out", str(exact)]
        subprocess.run([*record, "--", *command], check=True, capture_output=True)
    elif reader.plan is Plan.HDF5:
        index = [str(tools.forebay), "intent", "from-hdf5", data, "--dataset", _dataset()]
        subprocess.run([*index, "-o", str(exact)], check=True, capture_output=True)
    else:
        order = "entry" if reader.plan is Plan.ROOT_ENTRY else "branch"
        branches = [word for name in _branches() for word in ("--branches", name)]
        index = [str(tools.forebay), "intent", "from-root", data, "--tree", "events"]
        subprocess.run(
            [*index, *branches, "--order", order, "-o", str(exact)], check=True, capture_output=True
        )


def _branches() -> list[str]:
    return _told("import table; print(*table.READ_NAMES)").split()


def _dataset() -> str:
    return _told("import h5py_field; print(h5py_field.READ)").strip()


def _told(program: str) -> str:
    """What Python says that can import the readers."""
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=READERS, check=True, capture_output=True, text=True
    )
    return told.stdout


# Between what is read and what is wrongly declared: streams and mappings read what lies around.
_DISTANCE = 16 << 10


def _write_wrong(exact: Path, wrong: Path, size: int) -> None:
    """As many extents of about the same lengths, in the gaps between those that are read."""
    text = exact.read_text()
    pairs = sorted({(int(offset), int(length)) for offset, length in _PAIR.findall(text)})
    draw = random.Random(1)
    lines = []
    end = 0
    for offset, length in [*pairs, (size, 0)]:
        room = offset - end - 2 * _DISTANCE
        if room > 0:
            lines.append(f"  [{end + _DISTANCE}, {min(room, draw.choice(pairs)[1])}],")
        end = max(end, offset + length)
    head = text[: text.index("willneed")]
    wrong.write_text("\n".join([f"{head}willneed = [", *lines, "]"]) + "\n")


def _run(
    tools: Tools, bed: Testbed, case: Case, place: Path, command: list[str], processes: int
) -> dict[str, Any]:
    bed.set_read_ahead(case.read_ahead)
    for file in _files(Path(command[-1])):
        if case.is_warm:
            file.read_bytes()
        else:
            evict(file)
    if processes > 1:
        command = [*command, "--processes", str(processes)]
    summary = place / "summary.json" if case.intent is not None else None
    if case.intent is not None and summary is not None:
        command = with_intent(tools, case.intent, summary, command)
    told, seen = observe(case.name, TOLD, bed.served, command, summary, processes)
    if summary is not None:
        # Of tar's 5,000 files: what the page shows is the most memory that one takes.
        files = sorted(seen["prefetch"], key=lambda file: int(file["memory_peak"]))
        seen["prefetch"] = files[-1:]
    # All read the same; the slowest counts.
    count, seconds = max(told, key=lambda one: float(one[1]))
    return {
        "case": case.name,
        "processes": processes,
        "bytes": int(count),
        "seconds": float(seconds),
        **seen,
    }
