"""What a series of files says: how fast they were written, flushed and recovered."""

from dataclasses import dataclass

from cache_case import NEVER, ON, STOCK
from forebay.statistics import Ratio, median_ratio
from results import Result


@dataclass(frozen=True)
class Rates:
    """What came out of one series of files. Rates are bytes a second, one for each run."""

    result: Result

    @property
    def identical(self) -> bool:
        """Forebay's runs left the same bytes, all of them."""
        return bool(self.result.raw["identical"])

    @property
    def stock_identical(self) -> bool:
        """So did the stock MPI's."""
        return bool(self.result.raw.get("stock_identical", self.identical))

    @property
    def bytes(self) -> list[int]:
        """Of each file."""
        return [int(count) for count in self.result.raw["runs"][STOCK][0]["bytes"]]

    def identical_text(self) -> str:
        if not self.identical:
            return "**NO**"
        return "yes" if self.stock_identical else "but for stock"

    def perceived(self, mode: str) -> list[float]:
        """Bytes for the time that the program spent in its calls, or waited for the last file's log
        when it opened the next one: what is flushed while it computes, after the last file too,
        costs nothing."""
        return [
            sum(self.bytes) / (sum(run["seconds"]) + sum(run["late"][:-1]))
            for run in self.result.raw["runs"][mode]
        ]

    def exposed(self) -> list[float]:
        """The same with the wait for the last file's flush: nothing is computed after it."""
        return [
            sum(self.bytes) / (sum(run["seconds"]) + sum(run["late"]))
            for run in self.result.raw["runs"][ON]
        ]

    def flushed(self) -> list[float]:
        """Of the last file, for the time of writing it and of waiting for its flush."""
        return [
            self.bytes[-1] / float(run["seconds"][-1] + run["late"][-1])
            for run in self.result.raw["runs"][ON]
        ]

    def left(self) -> list[int]:
        """Bytes in logs that are never flushed: less than all where the cache was given up."""
        return [sum(run["absorbed"]) for run in self.result.raw["runs"][NEVER]]

    def recovered(self) -> list[float]:
        """Of these, for the time of `forebay cache recover`."""
        runs = self.result.raw["runs"][NEVER]
        return [
            left / float(run["recovery_s"]) for left, run in zip(self.left(), runs, strict=True)
        ]

    def through_logs(self) -> float:
        """The part of all bytes of a cache that is flushed: less where it was given up."""
        runs = self.result.raw["runs"][ON]
        absorbed = sum(sum(run["absorbed"]) for run in runs)
        return float(absorbed / (len(runs) * sum(self.bytes)))

    def log_overhead(self) -> float:
        """What the logs hold beside the program's bytes, as a part of these."""
        runs = self.result.raw["runs"][ON]
        absorbed = sum(sum(run["absorbed"]) for run in runs)
        return sum(sum(run["log_bytes"]) for run in runs) / absorbed - 1 if absorbed else 0.0

    def times(self, stock: str) -> Ratio | None:
        """Perceived bandwidth of the cache, of this mode's in the same round."""
        pairs = zip(self.perceived(ON), self.perceived(stock), strict=True)
        return median_ratio([on / other for on, other in pairs])
