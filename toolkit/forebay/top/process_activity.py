"""What one process of a running job does, piece by piece of what it spills."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.top.followed_files import FollowedFiles
from forebay.top.host_clock import HostClock
from forebay.top.known_calls import KnownCalls
from forebay.top.live_files import LiveFiles
from forebay.top.timeline import Floats, Quantity, Timeline, minutes_sum, sum_of
from forebay.trace import mpi_calls, spills
from forebay.trace.calls import Kind
from forebay.trace.mpi_calls import World
from forebay.trace.spills import Piece, Process

_WITHIN_PROGRAM, _WITHIN_MPI = 0, 1
_NS = 1_000_000_000


@dataclass
class _Thread:
    timeline: Timeline = field(default_factory=Timeline)
    lost: int = 0
    is_programs: bool = False  # not one of Forebay's engine
    mpi_until: int = 0  # ticks: end of the last call of MPI-IO that returned
    inside_until: int = 0  # likewise: of the last call that the MPI made


class ProcessActivity:
    """A process, also after it became another program: its files are followed anew then. `number`
    is its own among all."""

    def __init__(self, number: int, process: Process, clock: HostClock, files: LiveFiles) -> None:
        self.number = number
        self.process = process
        self.begun_ns = clock.unix_ns(process.ticks)
        self.heard_ns = self.begun_ns  # when it spilled last
        self.ended_ns: int | None = None
        self._became_another = 0  # ticks of its word that it was about to
        self.world: World | None = None
        self.has_engine = False  # Forebay carries calls of it out
        self.cache_places: set[str] = set()  # where hints have the logs of this node
        self.total = sum_of([])
        self._clock = clock
        self._files = files
        self._threads: dict[int, _Thread] = {}
        self._lost = 0  # by threads that were forgotten
        self._images: dict[str, tuple[KnownCalls, FollowedFiles]] = {}

    @property
    def rank(self) -> int:
        """-1: it has none."""
        return self.world.rank if self.world else self.process.rank

    @property
    def became_another(self) -> bool:
        """Whether its last word is that it was about to become another program."""
        return self._became_another > 0

    @property
    def lost(self) -> int:
        """Calls that it could not keep."""
        return self._lost + sum(thread.lost for thread in self._threads.values())

    @property
    def is_inside_mpi(self) -> bool:
        """Whether a thread was in a call of MPI-IO when it was heard of last."""
        return any(t.inside_until > t.mpi_until for t in self._threads.values())

    def begin_image(self, name: str, process: Process) -> None:
        """A further spill file of it begins: it forked from another, or became another program."""
        self.process = process
        self.ended_ns, self._became_another = None, 0
        self._images[name] = (KnownCalls(), FollowedFiles(process.directory, self._files.number))

    def end_image(self, name: str) -> None:
        """Nothing comes in that file any more."""
        self._images.pop(name, None)

    def add(self, image: str, piece: Piece) -> None:
        """The next piece of a spill file of it."""
        calls, followed = self._images[image]
        spilled_ns = self._clock.unix_ns(piece.ticks)
        self.heard_ns = max(self.heard_ns, spilled_ns)
        self._hear(piece, calls)
        thread = self._threads.setdefault(piece.thread, _Thread())
        thread.lost = max(thread.lost, piece.lost)
        files = followed.files(piece, calls)
        kept = ~calls.remarks(piece.events["call"])
        if not kept.any():
            return
        amounts = self._amounts(piece, calls, followed)[kept]
        events = piece.events[kept]
        begin = np.minimum(self._clock.all_unix_ns(events["begin"]), spilled_ns)
        duration = np.minimum(self._clock.durations_ns(events["duration"]), spilled_ns - begin)
        duration = np.maximum(duration, 0)
        amounts[:, Quantity.MPI_NS :] *= duration[:, None]
        thread.timeline.add(begin, duration, amounts)
        self.total += amounts.sum(axis=0)
        self._files.add(self.number, files[kept], begin, duration, amounts)
        _follow(thread, events)

    def rates(self, until_ns: int, window_s: int) -> Floats:
        """Each Quantity per second, of all threads."""
        return sum_of(
            [t.timeline.rates(until_ns, window_s, self.begun_ns) for t in self._threads.values()]
        )

    def shares(self, until_ns: int, window_s: int) -> tuple[float, float]:
        """Of the time of the thread of the program that spent most: in all I/O, and in calls of
        POSIX, by whomever."""
        best = 0.0, 0.0
        for thread in self._threads.values():
            if not thread.is_programs:
                continue
            rates = thread.timeline.rates(until_ns, window_s, self.begun_ns) / _NS
            posix = min(1.0, float(rates[Quantity.POSIX_NS]))
            own = float(rates[Quantity.MPI_NS] + rates[Quantity.OWN_POSIX_NS])
            # A call of MPI-IO that has not returned is known by the calls that it made.
            best = max(best, (min(1.0, max(own, posix)), posix))
        return best

    def series(self, last: int) -> Floats:
        """(seconds, quantities) of the last minute."""
        return minutes_sum([thread.timeline.series(last) for thread in self._threads.values()])

    def forget_before(self, second: int) -> None:
        """Threads that have done nothing since."""
        for tid, thread in list(self._threads.items()):
            if thread.timeline.newest < second:
                self._lost += thread.lost
                del self._threads[tid]

    def _hear(self, piece: Piece, calls: KnownCalls) -> None:
        for kind, key, data in spills.definitions_in(piece.definitions):
            if kind == spills.CALL:
                calls.define(key, data.decode(errors="replace"))
            elif kind == spills.MPI_PROCESS:
                self.world = mpi_calls.world_in(data)
            elif kind == spills.MPI_OPENING:
                self.has_engine = self.has_engine or mpi_calls.is_engines(data)
            elif kind == spills.MPI_HINTS:
                self.cache_places |= _cache_places(mpi_calls.hints_in(data))
            elif kind == spills.END:
                self.ended_ns = self._clock.unix_ns(spills.farewell_in(data).ticks)
            elif kind == spills.EXEC:
                self.ended_ns, self._became_another = self.heard_ns, piece.ticks
        if self._became_another and np.any(piece.events["begin"] > self._became_another):
            self.ended_ns, self._became_another = None, 0  # It did not.

    @staticmethod
    def _amounts(piece: Piece, calls: KnownCalls, followed: FollowedFiles) -> Floats:
        """(events, quantities); of times 1 where the call's own counts."""
        events = piece.events
        kind = calls.kinds(events["call"], events["argument"])
        is_mpi = events["call"] >= spills.MPI_CALLS_FROM
        own = is_mpi | (events["within"] == _WITHIN_PROGRAM)
        moved = np.maximum(events["result"], 0).astype(np.float64)
        _ask_sizes(piece, moved, is_mpi & (kind <= Kind.WRITE), followed)
        read = np.where(kind == Kind.READ, moved, 0)
        written = np.where(kind == Kind.WRITE, moved, 0)
        amounts: Floats = np.zeros((len(events), len(Quantity)))
        amounts[:, Quantity.MPI_READ_BYTES] = read * is_mpi
        amounts[:, Quantity.MPI_WRITE_BYTES] = written * is_mpi
        amounts[:, Quantity.COLLECTIVE_BYTES] = (read + written) * calls.collective(events["call"])
        amounts[:, Quantity.POSIX_READ_BYTES] = read * ~is_mpi
        amounts[:, Quantity.POSIX_WRITE_BYTES] = written * ~is_mpi
        amounts[:, Quantity.OWN_READ_BYTES] = read * own
        amounts[:, Quantity.OWN_WRITE_BYTES] = written * own
        amounts[:, Quantity.MPI_CALLS] = is_mpi
        amounts[:, Quantity.POSIX_CALLS] = ~is_mpi
        amounts[:, Quantity.MPI_NS] = is_mpi
        amounts[:, Quantity.OWN_POSIX_NS] = own & ~is_mpi
        amounts[:, Quantity.POSIX_NS] = ~is_mpi
        return amounts


def _cache_places(hints: dict[str, str]) -> set[str]:
    return {hints[key] for key in ("forebay_cache_path", "e10_cache_path") if hints.get(key)}


def _ask_sizes(
    piece: Piece, moved: Floats, data: NDArray[np.bool_], followed: FollowedFiles
) -> None:
    """What a call of MPI-IO without a status moves is what it was asked for, if it went well. The
    event after it has its datatype and its error class."""
    events = piece.events
    places = np.flatnonzero(data & (events["result"] < 0))
    places = places[places + 1 < len(events)]
    more = events[places + 1]
    went_well = (more["begin"] == events["begin"][places]) & (more["result"] == 0)
    places, more = places[went_well], more[went_well]
    keys = [int(key) % (1 << 64) for key in more["length"]]
    moved[places] = events["length"][places] * np.array(followed.type_sizes(piece, keys), "i8")


def _follow(thread: _Thread, events: NDArray[Any]) -> None:
    end = events["begin"] + events["duration"]
    is_mpi = events["call"] >= spills.MPI_CALLS_FROM
    thread.is_programs |= bool(np.any(is_mpi | (events["within"] == _WITHIN_PROGRAM)))
    inside = ~is_mpi & (events["within"] == _WITHIN_MPI)
    if is_mpi.any():
        thread.mpi_until = max(thread.mpi_until, int(end[is_mpi].max()))
    if inside.any():
        thread.inside_until = max(thread.inside_until, int(end[inside].max()))
