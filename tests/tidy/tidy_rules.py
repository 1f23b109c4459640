"""The house rules as functions: each takes a file's path and text and returns its complaints.

A rule knows nothing of the tree it is applied to, so that `test_rules_bite.py` can show on small
samples that it catches what it must; `test_tree.py` applies all of them to the tree itself.

A complaint is one line, `path:line: what is wrong`, that says what to do instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

CPP_SUFFIXES = frozenset({".c", ".cc", ".cpp", ".h", ".hpp", ".inc"})
CODE_SUFFIXES = CPP_SUFFIXES | {".S", ".py", ".f90", ".F90", ".f", ".cmake", ".sh", ".toml"}

#: Lines of the longest file a reader should meet. STYLE: 100 to 400 read best.
LINES_MAX = 600

FORBIDDEN_FOLDERS = frozenset({"utils", "util", "common", "helpers", "helper", "misc"})

#: Quoted includes name a file from the root of the tree, hence start with one of these.
ROOT_FOLDERS = ("core/", "proxies/", "testbed/", "tests/", "toolkit/")

_MPI_HEADERS = frozenset({"mpi.h", "mpio.h", "mpi_proto.h"})
_THREAD_HEADERS = frozenset(
    {
        "thread",
        "mutex",
        "shared_mutex",
        "condition_variable",
        "future",
        "semaphore",
        "barrier",
        "latch",
        "stop_token",
        "pthread.h",
        "threads.h",
        "semaphore.h",
        "atomic",
        "stdatomic.h",
    }
)
_CLOCK_HEADERS = frozenset({"chrono", "ctime", "time.h"})
_SYSTEM_HEADERS = frozenset(
    {
        "unistd.h",
        "fcntl.h",
        "dirent.h",
        "poll.h",
        "sched.h",
        "signal.h",
        "csignal",
        "spawn.h",
        "dlfcn.h",
        "filesystem",
        "fstream",
    }
)


@dataclass(frozen=True)
class Wall:
    """What one room under `core/` may see.

    `rooms`: the folders it may include from. `pure`: no threads, clock or system calls.
    """

    rooms: tuple[str, ...]
    pure: bool = False


#: Longest prefix first; a file belongs to the first room that is a prefix of its path.
WALLS: dict[str, Wall] = {
    "core/model/": Wall(rooms=("core/model/",), pure=True),
    "core/plan/": Wall(rooms=("core/model/", "core/plan/"), pure=True),
    "core/storage/": Wall(rooms=("core/model/", "core/storage/")),
    "core/engine/": Wall(rooms=("core/model/", "core/plan/", "core/storage/", "core/engine/")),
    "core/intercept/": Wall(rooms=("core/",)),
}

#: Where MPI may be seen at all: the back ends, and the one exchange that has an in-process twin.
MPI_PLACES = ("core/intercept/mpi/", "core/engine/collective/mpi_exchange")

#: The nouns that may hold atomics, and why.
ATOMIC_IN_MODEL = {
    "core/model/counters.hpp": "I/O threads add to counters that the rank reads",
    "core/model/strided_tree_nodes.hpp": "immutable nodes, shared by ranks, keep their hash",
}


@dataclass(frozen=True)
class Include:
    """One `#include` line."""

    line: int
    name: str
    quoted: bool


_INCLUDE = re.compile(
    r'^[ \t]*#[ \t]*include[ \t]*(?:"(?P<quoted>[^"]+)"|<(?P<angled>[^>]+)>)', re.M
)

_GENERATED = re.compile(r"\w+\.inc")

_COMMENT_OR_STRING = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S
)


def includes(text: str) -> list[Include]:
    """The `#include` lines of a C or C++ file, in order."""
    found = []
    for match in _INCLUDE.finditer(text):
        name = match["quoted"] or match["angled"]
        found.append(Include(text.count("\n", 0, match.start()) + 1, name, bool(match["quoted"])))
    return found


def without_comments(text: str) -> str:
    """C or C++ text with comments and literals blanked out; line numbers stay true."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    return _COMMENT_OR_STRING.sub(blank, text)


def is_beside_code(path: str) -> bool:
    """Whether a file tests, fuzzes or measures the code it stands beside."""
    return PurePosixPath(path).stem.endswith(("_test", "_fuzz", "_bench"))


def wall_complaints(path: str, text: str) -> list[str]:
    """A room includes only the rooms it may know; pure rooms touch neither thread, clock nor OS.

    Tests beside the code keep to the rooms but may use threads and clocks of their own.
    """
    wall = next((wall for room, wall in WALLS.items() if path.startswith(room)), None)
    if wall is None:
        return []
    complaints = []
    for include in includes(text):
        where = f"{path}:{include.line}: "
        if include.name.startswith("core/") and not include.name.startswith(wall.rooms):
            complaints.append(f"{where}includes {include.name}, beyond {', '.join(wall.rooms)}")
        if not wall.pure or is_beside_code(path):
            continue
        if include.name in {"atomic", "stdatomic.h"} and path in ATOMIC_IN_MODEL:
            continue
        if include.name in _THREAD_HEADERS:
            complaints.append(f"{where}includes <{include.name}>: threads belong in core/engine")
        if include.name in _CLOCK_HEADERS:
            complaints.append(f"{where}includes <{include.name}>: take the time as an argument")
        if include.name in _SYSTEM_HEADERS or include.name.startswith("sys/"):
            complaints.append(f"{where}includes <{include.name}>: system calls are core/storage's")
    return complaints


def mpi_complaints(path: str, text: str) -> list[str]:
    """Inside `core/`, MPI is included only by the back ends and the one MPI exchange."""
    if not path.startswith("core/") or path.startswith(MPI_PLACES):
        return []
    places = " or ".join(MPI_PLACES)
    return [
        f"{path}:{include.line}: includes <{include.name}>: MPI belongs in {places}"
        for include in includes(text)
        if include.name in _MPI_HEADERS
    ]


_MPI_DEFINITION = re.compile(
    r"^[ \t]*(?:extern[ \t]+)?(?:[A-Za-z_][\w:]*[\s*&]+)+(?P<name>P?MPI_[A-Z]\w*)\s*"
    r"\([^;{}]*\)\s*(?:noexcept\s*)?\{",
    re.M,
)


def mpi_definition_complaints(path: str, text: str) -> list[str]:
    """A symbol that an MPI library owns is defined by the interception room alone."""
    if not path.startswith(("core/", "testbed/", "proxies/")) or path.startswith("core/intercept/"):
        return []
    code = without_comments(text)
    return [
        f"{path}:{code.count(chr(10), 0, match.start('name')) + 1}: defines {match['name']}: "
        "only core/intercept may"
        for match in _MPI_DEFINITION.finditer(code)
    ]


def include_root_complaints(path: str, text: str) -> list[str]:
    """Quoted includes are written from the root; everything else stands in angle brackets.

    A generated `NAME.inc` lies in the build tree, where there is no root to write it from.
    """
    return [
        f'{path}:{include.line}: "{include.name}" is not written from the root of the tree'
        for include in includes(text)
        if include.quoted
        and not include.name.startswith(ROOT_FOLDERS)
        and not _GENERATED.fullmatch(include.name)
    ]


def folder_complaints(path: str) -> list[str]:
    """A folder is one idea: no drawers."""
    drawers = FORBIDDEN_FOLDERS.intersection(PurePosixPath(path).parts[:-1])
    stem = PurePosixPath(path).stem
    if stem in FORBIDDEN_FOLDERS:
        drawers = drawers | {stem}
    return [f"{path}: '{drawer}' names no idea; name what it holds" for drawer in sorted(drawers)]


def length_complaints(path: str, text: str, allowed: dict[str, str]) -> list[str]:
    """No file outgrows a reader. `allowed`: path to the reason why it may."""
    lines = text.count("\n")
    if lines <= LINES_MAX or path in allowed:
        return []
    return [f"{path}: {lines} lines; split it below {LINES_MAX} by noun"]


# Assembled from pieces, so that this file does not break its own rules.
_UNFINISHED = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b")
_MACHINE_PATH = re.compile(r"(?<![\w./-])/(?:work|root|home/\w+|Users/\w+)/[\w.-]+")


def text_complaints(path: str, text: str) -> list[str]:
    """Nothing unfinished, and no path that only one machine has."""
    complaints = []
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _UNFINISHED.search(line):
            complaints.append(f"{path}:{number}: '{match[0]}': finish it or drop it")
        if match := _MACHINE_PATH.search(line):
            complaints.append(f"{path}:{number}: '{match[0]}' exists on one machine only")
    return complaints


def format_complaints(path: str, text: str) -> list[str]:
    """A format that outlives a process says its version and how damage is noticed."""
    return [
        f"{path}: names no {word}"
        for word in ("version", "checksum")
        if not re.search(rf"\b{word}", text, re.I)
    ]
