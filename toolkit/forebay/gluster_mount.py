"""What a mounted GlusterFS tells of itself: its client shows the graph that it runs, below a hidden
directory of the mount point."""

from collections import Counter
from pathlib import Path

# The client's xlators, a directory each.
_GRAPH = Path(".meta") / "graphs" / "active"
TYPE = "fuse.glusterfs"


def layout(point: Path) -> str | None:
    """How files lie on the bricks of what is mounted on `point`, in words; None where it does not
    tell."""
    try:
        kinds = {part.parent: part.read_text().strip() for part in (point / _GRAPH).glob("*/type")}
        parts = Counter(kinds.values())
        bricks = parts["protocol/client"]
        if not bricks:
            return None
        dispersed = [where for where, kind in kinds.items() if kind == "cluster/disperse"]
        if dispersed:
            each = len(list((dispersed[0] / "subvolumes").iterdir()))
            redundancy = int((dispersed[0] / "options" / "redundancy").read_text())
            return (
                f"{bricks} bricks, each file dispersed over {each} ({each - redundancy} data + "
                f"{redundancy} redundancy)"
            )
        replicas = parts["cluster/replicate"]
        if replicas:
            return f"{bricks} bricks, each file whole on {bricks // replicas} of them"
        return f"{bricks} bricks, each file whole on one of them"
    except (OSError, ValueError):
        return None
