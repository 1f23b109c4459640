"""Which storage of this node write-behind logs had best be on."""

import shlex
from collections.abc import Iterable

from forebay.filesystem import LocalPath
from forebay.leftovers import SHARED_MEMORY

# Of the free space the cache takes a quarter: with less, writers wait for the flush.
_LEAST_BYTES = 1 << 30


def best(found: Iterable[LocalPath]) -> LocalPath | None:
    """The flash with the most free space, and else memory; None where neither can be written."""
    found = list(found)
    flash = [p for p in found if _would_keep(p) and p.writable and p.free >= _LEAST_BYTES]
    if flash:
        return max(flash, key=lambda place: place.free)
    return next((p for p in found if p.path == str(SHARED_MEMORY) and p.writable), None)


def describe(place: LocalPath, found: Iterable[LocalPath]) -> str:
    """Why the best place is that one, what a crash of the node does to what is there, and the line
    that has logs there."""
    told = f"write-behind logs: {place.path}, "
    if place.flash:
        told += "flash of this node, which survives a crash of it"
    else:
        told += "memory: what is in no file yet does not survive a crash of the node"
        closed = [one.path for one in found if _would_keep(one) and not one.writable]
        if closed:
            told += f" (a directory of yours on {' or '.join(closed)} would keep it)"
    declared = shlex.quote(f"forebay_cache=enable;forebay_cache_path={place.path}")
    return f"{told}; export FOREBAY_HINTS={declared}"


def _would_keep(place: LocalPath) -> bool:
    return place.flash and not place.emptied and place.path != "/"
