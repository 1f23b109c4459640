"""How long a run would take under given settings, by what was characterised: phases times limits.

The model orders candidates before anything was run; what it gets wrong is learnt from the runs
(residual.py). Its assumptions are told in docs/guide/configure.md.
"""

from dataclasses import dataclass
from pathlib import Path

from forebay import filesystem
from forebay.configure.factors import Settings, Variable, survived_nodes
from forebay.configure.rates import Rates, Told
from forebay.configure.space import (
    STOCK_BUFFER_BYTES,
    Layout,
    Space,
    default_aggregators,
    inside,
    layout_at,
)
from forebay.configure.workload import Work, Workload

# Of an exchange, for each contiguous piece that a rank hands over. Of the MPIs as measured with
# pieces of 8 bytes by 2 ranks.
_PIECE_S = {"forebay": 0.05e-6, "mpich": 0.5e-6, "openmpi": 5.4e-6}
# Of a round: the MPIs agree among all ranks in each, Forebay with those that have data.
_ROUND_S = {"forebay": 20e-6, "mpi": 100e-6}
# Where no system file tells what a copy in memory does.
_MEMORY_BYTES_PER_S = 4e9
_FLUSH_BYTES = 512 << 10  # ind_wr_buffer_size
_FLUSHERS_MOST = 16
_SIEVE_BYTES = 512 << 10  # ROMIO's ind_wr_buffer_size
_FETCH_BYTES = 512 << 10  # `block` of an intent file
_FETCHES = 8  # under way, at a few milliseconds each
# Of what reading ahead by a plan hides, what is hidden where the order has to be found first.
_FOUND_BY_WATCHING = 0.5


@dataclass(frozen=True)
class _Place:
    """Where a work's files lie under given settings. `scale`: servers in proportion to those of the
    place that was traced, where nothing was measured at this one."""

    mount: str
    layout: Layout
    scale: float


class Model:
    """Predicts the seconds of one quantity of a run (comparison.QUANTITIES)."""

    def __init__(
        self,
        workload: Workload,
        space: Space,
        rates: Rates,
        variables: list[Variable],
        nodes: int,
        quantity: str = "wall",
    ) -> None:
        self._workload = workload
        self._space = space
        self._rates = rates
        self._quantity = quantity
        self._nodes = nodes
        self._stock = str(workload.trace.run.mpi.get("name", "")) or "mpich"
        self._places = {
            variable.name: variable.values
            for variable in variables
            if all(Path(value).is_dir() for value in variable.values)
        }
        self._found: dict[str, tuple[str, Layout]] = {}

    def predict(self, settings: Settings) -> float | None:
        """Seconds; None where no rate is known of any of the program's phases."""
        effective = self._space.effective(settings)
        times = [self._seconds(work, effective) for work in self._counted()]
        known = [seconds for seconds in times if seconds is not None]
        if not known:
            return None
        beside = self._workload.compute_s if self._quantity == "wall" else 0.0
        return beside + sum(known)

    def _counted(self) -> list[Work]:
        works = self._workload.works
        if self._quantity == "wall":
            return works if not self._workload.through_mpi() else self._workload.through_mpi()
        if self._quantity in ("write", "read"):
            return [w for w in works if w.mpi and w.operation == self._quantity]
        return [work for work in works if work.mpi]

    def _seconds(self, work: Work, settings: Settings) -> float | None:
        place = self._place(work, settings)
        if not work.mpi:
            return self._posix(work, place, settings)
        engine = settings.get("engine", "forebay")
        if work.write and settings.get("cache") == "enable":
            return self._cached(work, place, settings)
        direct = self._direct(work, place, settings)
        if not work.collective:
            return self._ahead(direct, work, place, settings)
        how = settings.get("collective", "automatic")
        if how == "disable":
            return direct
        gathered = self._gathered(work, place, settings)
        if how == "enable" or direct is None or gathered is None:
            return gathered
        # Forebay chooses by what calls cost; ROMIO gathers what lies interleaved.
        if engine == "mpi":
            return gathered if work.scattered else direct
        return min(direct, gathered)

    def _direct(self, work: Work, place: _Place, settings: Settings) -> float | None:
        """Each process moves its own pieces."""
        engine = settings.get("engine", "forebay")
        size = work.piece_bytes if work.scattered else work.call_bytes
        moved = float(work.bytes)
        if engine == "mpi" and work.scattered and settings.get("sieving") != "disable":
            # What lies between a rank's pieces is mostly the others'; writing reads it first.
            moved *= work.processes * (2 if work.write else 1)
            return self._storage(work, place, moved, _SIEVE_BYTES, work.processes)
        told = self._rates.library(
            place.mount, work.operation, "independent", engine, size, work.processes
        )
        if told is not None:
            return self._by_library(work, place, told, size)
        return self._storage(work, place, moved, size, work.processes, work.at_random)

    def _by_library(self, work: Work, place: _Place, told: Told, size: float) -> float:
        """At the library's measured rate; beyond the sizes that it was measured with, and at
        random, as storage goes from those to this one."""
        seconds = work.bytes / told.rate
        here = self._storage(work, place, work.bytes, size, work.processes, work.at_random)
        there = self._storage(work, place, work.bytes, told.size_bytes, work.processes)
        return seconds * here / there if here and there else seconds

    def _gathered(self, work: Work, place: _Place, settings: Settings) -> float | None:
        """Through aggregators. Of a system file that knows collective calls, their rate with the
        defaults counts, and the model tells how far the settings are from those."""
        engine = settings.get("engine", "forebay")
        usual = self._default_aggregators(work, place, engine)
        aggregators = int(settings.get("aggregators", usual))
        aggregators = max(1, min(aggregators, work.processes))
        buffer = int(settings.get("buffer_size", self._default_buffer(engine)))
        modelled = self._exchanged(work, place, engine, aggregators, buffer, work.piece_bytes)
        told = self._rates.library(
            place.mount, work.operation, "collective", engine, work.piece_bytes, work.processes
        )
        if told is None or modelled is None:
            return modelled
        plain = self._exchanged(
            work, place, engine, usual, self._default_buffer(engine), told.size_bytes
        )
        return work.bytes / told.rate * (modelled / plain if plain else 1.0)

    def _exchanged(
        self, work: Work, place: _Place, engine: str, aggregators: int, buffer: int, piece: float
    ) -> float | None:
        """If the bytes were handed over in contiguous pieces of `piece`."""
        each = work.bytes / max(1, work.calls) * work.processes / aggregators
        size = max(1.0, min(buffer, each))
        storage = self._storage(work, place, work.bytes, size, aggregators)
        if storage is None:
            return None
        rounds = work.bytes / (size * aggregators)
        exchange = self._handed_over(work, engine, piece) + rounds * _ROUND_S[engine]
        # Forebay's aggregators gather while the window before is written.
        return max(storage, exchange) if engine == "forebay" else storage + exchange

    def _handed_over(self, work: Work, engine: str, piece: float) -> float:
        """Seconds of bringing all bytes to the aggregators: copies, pieces, and what crosses the
        network."""
        memory = self._rates.memory(piece) or _MEMORY_BYTES_PER_S
        own = work.bytes / work.processes
        pieces = own / piece
        cost = _PIECE_S["forebay" if engine == "forebay" else self._stock_name()]
        return own / memory + pieces * cost + self._over_network(work.bytes)

    def _over_network(self, moved: float) -> float:
        rate = self._rates.network(1 << 20) if self._nodes > 1 else None
        return moved * (self._nodes - 1) / self._nodes / (rate * self._nodes) if rate else 0.0

    def _cached(self, work: Work, place: _Place, settings: Settings) -> float | None:
        """Into logs on the node, from there in the background. What the flush has not done when the
        file is closed is waited for."""
        log_mount = filesystem.mount_of(Path(settings.get("cache_path", "/dev/shm"))).point
        gathered = work.collective and settings.get("collective") != "disable"
        writers, piece = work.processes, float(_FLUSH_BYTES)
        if gathered:
            usual = self._default_aggregators(work, place, "forebay")
            writers = int(settings.get("aggregators", usual))
        elif work.scattered:
            # A log has its rank's pieces alone, and what lies between them is in another one.
            piece = float(min(work.piece_bytes, _FLUSH_BYTES))
        # What the program itself wrote there, if anything, were other things in other sizes.
        log_rate = self._rates.storage(log_mount, "write", piece, writers, traced_too=False)
        if log_rate is None:
            log_rate = _MEMORY_BYTES_PER_S
        front = work.bytes / log_rate
        if gathered:
            front += self._handed_over(work, "forebay", work.piece_bytes)
        lost = survived_nodes(settings.get("redundancy", "none"))
        network = self._rates.network(1 << 20)
        if lost and network:
            front += work.bytes * lost / (network * self._nodes)
        flushers = min(_FLUSHERS_MOST, 2 * place.layout.servers) * max(1, min(writers, self._nodes))
        flush = self._storage(work, place, work.bytes, piece, max(flushers, writers))
        if flush is None:
            return None
        turns = max(1, work.repetitions)
        return front + turns * _exposed(
            settings.get("cache_flush", "immediate"), front / turns, flush / turns, work
        )

    def _posix(self, work: Work, place: _Place, settings: Settings) -> float | None:
        size = work.call_bytes
        plain = self._storage(work, place, work.bytes, size, work.processes, work.at_random)
        return self._ahead(plain, work, place, settings)

    def _ahead(
        self, plain: float | None, work: Work, place: _Place, settings: Settings
    ) -> float | None:
        """What of `plain` seconds of reading is left where the settings read ahead."""
        size = work.call_bytes
        how = settings.get("prefetch", "off")
        ahead = not work.write and any(path in self._workload.reads for path in work.paths)
        if plain is None or how == "off" or not ahead:
            return plain
        fetched = self._storage(
            work, place, work.bytes, max(size, _FETCH_BYTES), work.processes * _FETCHES,
            work.at_random,
        )  # fmt: skip
        exposed = max(0.0, min(plain, fetched or plain) - self._workload.compute_s)
        if how == "declare":
            return exposed
        return plain - _FOUND_BY_WATCHING * (plain - exposed)

    def _storage(
        self,
        work: Work,
        place: _Place,
        moved: float,
        size: float,
        processes: float,
        at_random: bool = False,
    ) -> float | None:
        """Seconds of so many bytes in requests of `size`, by so many at a time."""
        just_written = any(other.write and other.paths == work.paths for other in
                           self._workload.works)  # fmt: skip
        rate = self._rates.storage(
            place.mount, work.operation, size, processes, just_written, at_random=at_random
        )
        return moved / (rate * place.scale) if rate else None

    def _place(self, work: Work, settings: Settings) -> _Place:
        """Where the work's files lie: as traced, or in the directory that a variable names."""
        by_path = {file.path: file for file in self._workload.files}
        traced = by_path.get(work.paths[0]) if work.paths else None
        mount = traced.mount_point if traced else ""
        layout, before = self._space.layout, self._space.layout
        for name, values in self._places.items():
            if name in settings and any(inside(path, v) for path in work.paths for v in values):
                mount_there, layout = self._directory(settings[name])
                if self._rates.knows(mount_there):
                    return _Place(mount_there, layout, 1.0)
        count = settings.get("stripe_count")
        if count is not None:
            size = int(settings.get("stripe_size", layout.stripe_bytes or 1 << 20))
            useful = max(1, -(-work.file_bytes // size))
            layout = Layout(size, min(int(count), useful))
        return _Place(mount, layout, layout.servers / max(1, before.servers))

    def _directory(self, path: str) -> tuple[str, Layout]:
        if path not in self._found:
            self._found[path] = (filesystem.mount_of(Path(path)).point, layout_at(Path(path)))
        return self._found[path]

    def _default_aggregators(self, work: Work, place: _Place, engine: str) -> int:
        if engine == "mpi":  # ROMIO takes one a node
            return min(self._nodes, work.processes)
        return default_aggregators(place.layout, self._nodes, work.processes)

    def _default_buffer(self, engine: str) -> int:
        return STOCK_BUFFER_BYTES if engine == "mpi" else int(self._space.defaults["buffer_size"])

    def _stock_name(self) -> str:
        return "openmpi" if "openmpi" in self._stock else "mpich"


def _exposed(flush_policy: str, front_s: float, flush_s: float, work: Work) -> float:
    """Seconds of one turn's flush that the program waits for [E10]."""
    at_close = flush_s if flush_policy == "onclose" else max(0.0, flush_s - front_s)
    if flush_policy == "deferred":
        # Each but the last one is hidden by what comes before the next file.
        last = 1 / max(1, work.repetitions)
        return max(0.0, flush_s - work.pause_s) * (1 - last) + flush_s * last
    if work.new_file_each_time or work.repetitions == 1 or flush_policy == "onclose":
        return at_close
    return max(0.0, at_close - work.pause_s)
