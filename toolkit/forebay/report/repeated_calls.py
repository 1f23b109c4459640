"""Calls that are made again and again where one of them would do, or none: openings and look-ups,
also those that fail, and syncs."""

import errno
import os

import numpy as np

from forebay.report.clue import Clue, most_of
from forebay.report.layers import Flags, Ints, Layer
from forebay.trace.calls import Kind
from forebay.units import show_count, show_seconds

_O_CREAT, _O_EXCL, _O_TRUNC = 0o100, 0o200, 0o1000
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)
_MORE_FILES = "Close files that are not needed, or allow more open ones: ulimit -n."
_SPACE = "Free some space: an opening that fails is no use."
_ACCESS = "Give the program access, or do not have it try."
_ADVICE = {
    errno.EEXIST: "Who makes a file that must not be there yet, such as a lock, waits by trying: "
    "let one process make it, or wait longer between tries.",
    errno.EACCES: _ACCESS,
    errno.EPERM: _ACCESS,
    errno.EMFILE: _MORE_FILES,
    errno.ENFILE: _MORE_FILES,
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
}


def repeated(own: Layer, posix: Layer, paths: list[str]) -> list[Clue]:
    """`own`: the program's calls that are weighed. `posix`: those of all processes, any of which
    may put another file in a name's place. `paths` are those of the files."""
    done = own.only(~own.failed & (own.file >= 0))
    opened, asked, synced = (
        done.only(done.kind == kind) for kind in (Kind.OPEN, Kind.STAT, Kind.SYNC)
    )
    looks = own.only(np.isin(own.kind, (Kind.STAT, Kind.OPEN)) & (own.error > 0))
    is_missing = np.isin(looks.error, _NOT_THERE)
    missing = looks.only(is_missing)
    needed = _firsts(opened, _contents(opened, posix))
    anew = int((needed & ~_firsts(opened)).sum())
    found = [
        _clue(
            "opened-again",
            "Files opened again and again",
            opened,
            ~needed,
            "high",
            "Keep the file open between uses.",
            paths,
            [
                f"not counted: {show_count(anew)} more that made a file anew or emptied it, or "
                "came after it was removed or replaced"
            ]
            if anew
            else [],
        ),
        _clue(
            "not-there",
            "Names looked for that are not there",
            missing,
            np.ones(len(missing), np.bool_),
            "medium",
            "Shorten the search paths of the program (modules, libraries, configuration).",
            paths,
        ),
        _clue(
            "looked-up-again",
            "The state of files asked again and again",
            asked,
            ~_firsts(asked),
            "medium",
            "Ask once, and keep the answer.",
            paths,
        ),
        _clue(
            "synced-again",
            "Files synced again and again",
            synced,
            ~_lasts(synced),
            "low",
            "One sync at the end, if what is written in between need not survive a crash.",
            paths,
        ),
    ]
    found += [
        _failing(looks.only(looks.error == number), number, paths)
        for number in np.unique(looks.error[~is_missing]).tolist()
    ]
    return [clue for clue in found if clue is not None]


def _contents(opened: Layer, posix: Layer) -> Ints:
    """Of each opening a number that rises on a file when it is made anew or emptied, and when its
    name comes to another one: nobody can keep such a file open."""
    done = posix.only(~posix.failed & np.isin(posix.kind, (Kind.OPEN, Kind.REMOVE, Kind.RENAME)))
    flags = np.maximum(done.argument, 0)
    makes = (flags & _O_TRUNC != 0) | ((flags & _O_CREAT != 0) & (flags & _O_EXCL != 0))
    renames = done.kind == Kind.RENAME
    changes = (done.kind != Kind.OPEN) | makes
    file = np.concatenate((done.file[changes], done.argument[renames], opened.file))
    moment = np.concatenate((done.start_ns[changes], done.start_ns[renames], opened.start_ns))
    is_opening = np.arange(len(file)) >= len(file) - len(opened)
    order = np.lexsort((is_opening, moment, file))  # who makes it opens what is new then
    number = np.empty(len(file), np.int64)
    number[order] = np.cumsum(~is_opening[order])
    return number[is_opening]


def _firsts(rows: Layer, content: Ints | None = None) -> Flags:
    """The first call of each process and file, and on each content of it if that is given."""
    order = np.lexsort((rows.start_ns, rows.file, rows.process))
    columns = [rows.process, rows.file, *([] if content is None else [content])]
    first = np.zeros(len(rows), np.bool_)
    first[order] = _differs(*(column[order] for column in columns))
    return first


def _lasts(rows: Layer) -> Flags:
    """The last call of each process and file."""
    order = np.lexsort((rows.start_ns, rows.file, rows.process))[::-1]
    last = np.zeros(len(rows), np.bool_)
    last[order] = _differs(rows.process[order], rows.file[order])
    return last


def _differs(*columns: Ints) -> Flags:
    """Which rows are unlike the one before in any of the columns; the first is."""
    unlike = np.ones(len(columns[0]), np.bool_)
    unlike[1:] = np.any([np.diff(column) != 0 for column in columns], axis=0)
    return unlike


def _clue(
    key: str, title: str, rows: Layer, spare: Flags, confidence: str, advice: str,
    paths: list[str], remarks: list[str] | None = None,
) -> Clue | None:  # fmt: skip
    """Calls of which those that `spare` marks could be spared."""
    if not spare.any():
        return None
    seconds = rows.seconds
    names = most_of(seconds[spare], rows.file[spare], paths)
    return Clue(
        key,
        title,
        float(seconds[spare].sum()),
        confidence,
        [
            f"{show_count(int(spare.sum()))} of {show_count(len(rows))} such calls could be "
            f"spared; all of them took {show_seconds(float(seconds.sum()))} of all processes",
            *([f"most of it: {names}"] if names else []),
            *(remarks or []),
        ],
        advice,
    )


def _failing(rows: Layer, number: int, paths: list[str]) -> Clue | None:
    """Openings and look-ups that fail with one error, and again."""
    if len(rows) < 2:
        return None
    opens = int((rows.kind == Kind.OPEN).sum())
    counts = ((opens, "opening"), (len(rows) - opens, "look-up"))
    what = " and ".join(
        f"{show_count(count)} {word}{'s' if count > 1 else ''}" for count, word in counts if count
    )
    name = errno.errorcode.get(number, f"error {number}")
    seconds = rows.seconds
    names = most_of(seconds, rows.file, paths)
    return Clue(
        f"failed-{name.lower().replace(' ', '-')}",
        f"{what} failed with {name} ({os.strerror(number)})",
        float(seconds.sum()),
        "low",
        [
            f"they took {show_seconds(float(seconds.sum()))} of all processes",
            *([f"most of it: {names}"] if names else []),
            "what the program does in their place may take as long",
        ],
        _ADVICE.get(number, "See why it is tried again: a call that fails does nothing."),
    )
