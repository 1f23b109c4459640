"""What share of each limit of MPI-IO an application used."""

import itertools

import numpy as np

from forebay.characterise import accesses
from forebay.report import timeline
from forebay.report.layers import Flags
from forebay.report.rung import ALIKE, SHARE_OF_BYTES, Step, distance
from forebay.system_file import Limit, System
from forebay.trace import calls
from forebay.trace.directory import Trace

_OPERATIONS = ("read", "write")
_ACCESSES = ("independent", "collective")
_ENGINES = ("mpi", "forebay")


def of(trace: Trace, system: System) -> list[Step]:
    """By mount point, operation, access and engine, where the system file has limits of these; of
    blocking calls those with a hundredth of the bytes or more. A log of Darshan does not tell which
    calls are collective."""
    limits = [limit for limit in system.limits if limit.level == "library"]
    if not limits or trace.run.origin.get("kind") == "darshan":
        return []
    found, _ = accesses.load(trace, "mpiio")
    waits = np.array(
        [not (calls.is_nonblocking(word) or calls.is_split(word)) for word in found.words], np.bool_
    )
    own = (found.bytes > 0) & (found.file >= 0)
    own[own] = waits[found.call[own]]
    files = trace.table("files", ["mount_point"])["mount_point"].to_pylist()
    mounts = [mount or "" for mount in files]
    names = sorted(set(mounts))
    mount_of = np.array([*(names.index(mount) for mount in mounts), -1])[found.file]
    by_forebay = _files_of_forebay(trace)[found.file]
    piece = np.where(found.block_bytes > 0, np.minimum(found.block_bytes, found.bytes), found.bytes)
    least = SHARE_OF_BYTES * int(found.bytes.sum())
    steps = []
    for place, mount in enumerate(names):
        for write, collective, served in itertools.product((False, True), repeat=3):
            kind = (_OPERATIONS[write], _ACCESSES[collective], _ENGINES[served])
            of_kind = [
                limit
                for limit in limits
                if (limit.operation, limit.access, limit.engine) == kind
                and system.is_of(limit.path, mount)
            ]
            if not of_kind:
                continue
            rows = own & (mount_of == place) & (found.write == write)
            rows &= (found.collective == collective) & (by_forebay == served)
            moved = int(found.bytes[rows].sum())
            busy = timeline.busy_seconds(found.start_ns[rows], found.end_ns[rows])
            if busy > 0 and moved >= least:
                size = int(np.median(piece[rows]))
                steps.append(Step(mount, *kind[:2], size, moved / busy, _like(of_kind, size)))
    return steps


def _files_of_forebay(trace: Trace) -> Flags:
    """Which files Forebay carried the data calls of, and False for no file."""
    found = np.zeros(trace.rows("files") + 1, np.bool_)
    table = trace.table("openings", ["file", "mode"])
    for file, mode in zip(*(column.to_pylist() for column in table.columns), strict=True):
        if file is not None and mode == "engine":
            found[file] = True
    return found


def _like(limits: list[Limit], size: int) -> Limit | None:
    """Of those of like pieces the nearest, then the highest, whatever processes it takes."""
    alike = [limit for limit in limits if distance(limit, size) <= ALIKE]
    return min(alike, key=lambda each: (distance(each, size), -each.median), default=None)
