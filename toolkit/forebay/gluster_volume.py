"""A GlusterFS volume: how its files are laid out over bricks, and what the `gluster` command says
of it in XML."""

import enum
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forebay.errors import ForebayError

NAME = "forebay"
# An address that every network namespace with a loopback device has. GlusterFS refuses 127.0.0.1.
HOST = "127.1.0.1"
# Below that GlusterFS disperses nothing.
_LEAST_DISPERSED = 3
# File operations, as GlusterFS names them, that are counted.
_COUNTED = {"READ": "read_requests", "WRITE": "write_requests", "FSYNC": "sync_requests"}


class Kind(enum.StrEnum):
    """How a file lies on bricks: whole on one of them, or as an erasure code over all."""

    DISTRIBUTED = "distributed"
    DISPERSED = "dispersed"


@dataclass(frozen=True)
class Layout:
    """`servers` bricks; of a dispersed volume any `redundancy` may be lost. Raises ForebayError
    where GlusterFS has no such volume."""

    kind: Kind
    servers: int
    redundancy: int = 0

    def __post_init__(self) -> None:
        if self.kind is Kind.DISTRIBUTED:
            if self.redundancy:
                raise ForebayError(
                    "a distributed volume has no redundancy",
                    "Leave --redundancy out, or give --layout dispersed.",
                )
            return
        least = max(_LEAST_DISPERSED, 2 * self.redundancy + 1)
        if self.servers < least:
            raise ForebayError(
                f"{self.servers} servers are too few to disperse files with a redundancy of "
                f"{self.redundancy}",
                f"Give --servers {least} or more.",
            )

    def words(self) -> list[str]:
        """What `gluster volume create` is told of it."""
        if self.kind is Kind.DISTRIBUTED:
            return []
        return ["disperse", str(self.servers), "redundancy", str(self.redundancy)]

    def __str__(self) -> str:
        if self.kind is Kind.DISTRIBUTED:
            return f"{self.servers} bricks, distributed"
        return (
            f"{self.servers} bricks, dispersed ({self.servers - self.redundancy} data + "
            f"{self.redundancy} redundancy)"
        )


def answer(text: str) -> ElementTree.Element:
    """What `gluster --xml` printed. Raises ForebayError with its own words where it refused, or
    printed something else."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        lines = text.strip().splitlines() or ["it said nothing"]
        raise ForebayError(f"gluster: {lines[0]}", exit_code=1) from None
    if root.findtext("opRet") != "0":
        why = root.findtext("opErrstr") or root.findtext("output") or "it does not say why"
        raise ForebayError(f"gluster: {why}", exit_code=1)
    return root


def layout_in(info: ElementTree.Element) -> Layout:
    """The layout in the answer to `volume info`. Raises ForebayError where it is none of ours."""
    volume = info.find("volInfo/volumes/volume")
    kind = None if volume is None else volume.findtext("typeStr")
    if volume is None or kind not in ("Distribute", "Disperse"):
        raise ForebayError(f"there is a volume of another kind: {kind}", exit_code=1)
    servers = int(volume.findtext("brickCount", "0"))
    if kind == "Distribute":
        return Layout(Kind.DISTRIBUTED, servers)
    return Layout(Kind.DISPERSED, servers, int(volume.findtext("redundancyCount", "0")))


def bricks_in(status: ElementTree.Element, profile: ElementTree.Element) -> list[dict[str, Any]]:
    """One object for each brick of `volume status`, with the counters that `volume profile ... info
    cumulative` has: since the brick started."""
    counters = {
        Path(brick.findtext("brickName", "").partition(":")[2]): _counters(brick)
        for brick in profile.iterfind("volProfile/brick")
    }
    bricks = []
    for node in status.iterfind("volStatus/volumes/volume/node"):
        path = node.findtext("path", "")
        if not path.startswith("/"):  # a daemon that is no brick
            continue
        online = node.findtext("status") == "1"
        bricks.append(
            {
                "brick": path,
                "online": online,
                "pid": int(node.findtext("pid", "0")) if online else None,
                **(counters.get(Path(path)) or _counters(None)),
            }
        )
    return bricks


def _counters(brick: ElementTree.Element | None) -> dict[str, int]:
    found = dict.fromkeys((*_COUNTED.values(), "read_bytes", "write_bytes"), 0)
    stats = None if brick is None else brick.find("cumulativeStats")
    if stats is None:
        return found
    found["read_bytes"] = int(stats.findtext("totalRead", "0"))
    found["write_bytes"] = int(stats.findtext("totalWrite", "0"))
    for operation in stats.iterfind("fopStats/fop"):
        key = _COUNTED.get(operation.findtext("name", ""))
        if key:
            found[key] = int(operation.findtext("hits", "0"))
    return found
