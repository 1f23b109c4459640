"""A rung of the ladder of limits: what an application reached of reads or writes, beside one."""

from dataclasses import asdict, dataclass

from forebay.system_file import Limit

#: Sizes within this factor of each other are alike.
ALIKE = 2.0
#: With less than this part of the bytes there is no rung.
SHARE_OF_BYTES = 0.01


@dataclass(frozen=True)
class Step:
    """The application's rate while any process was in such a call, beside a limit; of a network,
    whose limit is of a pair of hosts, that of the host where it is highest. `limit` None: nothing
    like it was measured."""

    mount_point: str
    operation: str
    mode: str  # direct or buffered; of MPI-IO collective or independent
    size_bytes: int  # median of the application's calls, or of their pieces
    rate: float
    limit: Limit | None
    order: str = "sequential"  # or random

    @property
    def share(self) -> float | None:
        return None if self.limit is None else self.rate / self.limit.median

    @property
    def limit_is_of(self) -> str:
        """What the limit was measured by, in a word or two."""
        if self.limit is None:
            return ""
        if self.limit.level == "library":
            return "by Forebay" if self.limit.engine == "forebay" else "by the MPI"
        at_random = ", at random" if self.limit.order == "random" else ""
        return f"{self.limit.mode}{at_random}"

    @property
    def remark(self) -> str:
        """On a share above 1, and on a limit of another order of calls. Past the page cache nothing
        of a network's is in one."""
        if self.limit is None:
            return ""
        said = []
        if self.rate > self.limit.median:
            if self.limit.level == "network" and self.mode == "direct":
                said.append("more than one pair of hosts")
            elif self.limit.level == "library":
                said.append("more than was measured")
            else:
                said.append("a cache effect")
        if self.order != self.limit.order and self.limit.level in ("device", "file system"):
            said.append("the limit is of calls in order")
        return "; ".join(said)

    def as_json(self) -> dict[str, object]:
        limit = None if self.limit is None else asdict(self.limit)
        return {**vars(self), "limit": limit, "share": self.share}


def distance(limit: Limit, size: float) -> float:
    """The factor between the size of a limit and another."""
    return max(limit.size_bytes / size, size / limit.size_bytes)
