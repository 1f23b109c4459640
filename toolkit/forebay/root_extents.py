"""Where the branches of a TTree lie in a ROOT file, by the index of its baskets: what an analysis
of these branches will read, without a run that learns it. Needs uproot."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from forebay.errors import ForebayError, first_line
from forebay.intent_file import HOW_ELSE, DeclaredReads, coalesced

_LARGEST_BUFFER = 64 << 10

if TYPE_CHECKING:
    import numpy as np  # Not for every command: it starts threads.


class Order(StrEnum):
    """In which order a program reads baskets."""

    ENTRY = "entry"  # event by event, all branches
    BRANCH = "branch"  # one branch after the other


def extents_of(
    path: Path, tree: str, branches: list[str], order: Order, buffer: int | None = None
) -> DeclaredReads:
    """The baskets of `branches` (names or shell patterns, all if none are given) of `tree`, each in
    whole buffers of `buffer` bytes from its beginning on; None: those of uproot. Raises
    ForebayError."""
    try:
        import uproot
    except ImportError as error:
        raise ForebayError(
            "uproot is not installed, which reads the index of a ROOT file",
            "Install it: pip install 'forebay[formats]', or pip install uproot.",
        ) from error
    try:
        with uproot.open(path) as file:
            if tree not in file:
                known = ", ".join(sorted(file.keys(cycle=False))[:8])
                raise ForebayError(f"{path} has no tree {tree}", f"It has: {known}.")
            found = file[tree]
            if not isinstance(found, uproot.TTree):
                raise _no_tree(file, path, tree, found)
            chosen = [found[name] for name in found.keys(filter_name=branches or None)]
            if not chosen:
                known = ", ".join(found.keys()[:8])
                raise ForebayError(
                    f"{tree} has no branch {', '.join(branches)}", f"It has: {known}."
                )
            baskets = [
                (entry, number, offset, length)
                for number, branch in enumerate(chosen)
                for entry, offset, length in _baskets(branch)
            ]
    except ForebayError:
        raise
    except Exception as error:  # Of a damaged file uproot tells by errors of many kinds.
        raise ForebayError(
            f"{path} cannot be read as ROOT: {first_line(error)}", HOW_ELSE
        ) from error
    if order is Order.ENTRY:
        baskets.sort()
    unit = _read_buffer(path) if buffer is None else buffer
    size = path.stat().st_size
    if any(length < 0 or offset + length > size for _, _, offset, length in baskets):
        raise ForebayError(f"{path} is damaged: a basket of {tree} lies outside of it", HOW_ELSE)
    extents = (
        (offset, min(-(-length // unit) * unit, size - offset)) for _, _, offset, length in baskets
    )
    return DeclaredReads(path, coalesced(extents), "format")


def _no_tree(file: Any, path: Path, tree: str, found: object) -> ForebayError:  # noqa: ANN401
    """The error for what is `found` by this name and has no baskets."""
    kind = getattr(found, "classname", "TDirectory")
    trees = sorted(file.keys(cycle=False, filter_classname=["TTree", "TNtuple*"]))[:8]
    advice = f"Its trees: {', '.join(trees)}." if trees else HOW_ELSE
    return ForebayError(f"{tree} of {path} is a {kind}, and no TTree", advice)


def _read_buffer(path: Path) -> int:
    """uproot reads a basket through a file object of Python's, which asks for whole buffers of the
    block size of the file system, from the beginning of the basket on. Where that is large, to
    declare as much would be to declare most bytes many times over."""
    size = path.stat().st_blksize
    return size if 1 < size <= _LARGEST_BUFFER else 1


class _Branch(Protocol):
    """What is used here of uproot's TBranch; uproot has no types."""

    def member(self, name: str) -> "np.ndarray[Any, Any]": ...


def _baskets(branch: _Branch) -> list[tuple[int, int, int]]:
    """First entry, offset and length of each basket that is a record of its own in the file."""
    count = int(branch.member("fWriteBasket"))
    members = (
        branch.member(name)[:count] for name in ("fBasketEntry", "fBasketSeek", "fBasketBytes")
    )
    return [
        (int(entry), int(offset), int(length))
        for entry, offset, length in zip(*members, strict=True)
        if offset > 0
    ]
