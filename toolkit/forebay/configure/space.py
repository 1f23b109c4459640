"""Which settings there are to choose from for a program on this system, and which not, and why."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from forebay import filesystem
from forebay.configure.constraints import Constraints
from forebay.configure.factors import KNOWN, Kind, Settings, Variable
from forebay.configure.workload import SMALL_FILE_BYTES, TracedFile, Workload
from forebay.errors import ForebayError
from forebay.units import show_bytes

# As core/plan/file_domains.cpp and core/engine/collective/collective_file.cpp have them.
LOCAL_AGGREGATORS = 4
LOCAL_BUFFER_BYTES = 512 << 10
STRIPED_BUFFER_BYTES = 4 << 20
# ROMIO's cb_buffer_size, and OMPIO's bytes_per_agg.
STOCK_BUFFER_BYTES = 16 << 20
_OMPIO_BUFFER_BYTES = 32 << 20

# No two processes lock or rewrite less of a file than that, whatever they begin at.
_PAGE_BYTES = 4096
_BUFFERS = (512 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20)
_STRIPES = (1 << 20, 4 << 20, 16 << 20)
_SERVERS_TRIED = (1, 4, 16)  # where nothing tells how many there are
_REDUNDANCY = ("none", "partner", "parity:4+1", "parity:4+2")
_STRIPING = ("stripe_count", "stripe_size")
_ALONE = "logs are protected by other nodes, and there is one node"
# More combinations are drawn from at random: to rank them takes a second for some thousands.
MOST_CANDIDATES = 20_000

#: File systems on which MPIs choose a file's striping when they make it. On BeeGFS none does.
STRIPED_TYPES = ("lustre",)
_TESTBED = "fuse.forebay-testbed"


@dataclass(frozen=True)
class LeftOut:
    """A factor, or one value of it, that is not tried."""

    factor: str
    value: str | None
    reason: str


@dataclass(frozen=True)
class Layout:
    """How the program's files are spread: bytes of a stripe (0: not at all), and servers."""

    stripe_bytes: int = 0
    servers: int = 1

    @property
    def striped(self) -> bool:
        return self.stripe_bytes > 0 and self.servers > 1

    @property
    def settings(self) -> dict[str, str]:
        """As factors; none where nothing tells."""
        if self.stripe_bytes == 0:
            return {}
        return {"stripe_count": str(self.servers), "stripe_size": str(self.stripe_bytes)}


@dataclass
class Space:
    """`values`: of each factor those to choose from; None leaves it alone. `defaults`: what is in
    force for a factor that is left alone, as far as it is known; `stock_defaults`: where that is
    another with the MPI alone (None: not known). `places`: of variables that say in which directory
    the program's files are, how each one's files are spread."""

    layout: Layout
    values: dict[str, list[str | None]] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    defaults: dict[str, str] = field(default_factory=dict)
    stock_defaults: dict[str, str | None] = field(default_factory=dict)
    places: dict[str, dict[str, Layout]] = field(default_factory=dict)
    considered: int = 0

    def effective(self, settings: Settings) -> dict[str, str]:
        """What is in force under `settings`, of the factors that then mean something."""
        whole: dict[str, str | None] = {**self.defaults}
        if settings.get("engine") == "mpi":
            whole |= self.stock_defaults
        for name, layouts in self.places.items():
            if name in settings:
                whole |= dict.fromkeys(_STRIPING) | layouts[settings[name]].settings
        known = {k: v for k, v in {**whole, **settings}.items() if v is not None}
        return {key: value for key, value in known.items() if _means_something(key, known)}

    def usual(self, factor: str) -> list[str | None]:
        """What is in force of a factor that is left alone, with each engine that can be tried."""
        default = self.defaults.get(factor)
        return [
            self.stock_defaults.get(factor, default) if engine == "mpi" else default
            for engine in self.values.get("engine", [None])
        ]

    def unheeded(self, constraints: Constraints) -> list[str]:
        """Of each constraint that nothing can be judged by: why."""
        why = {out.factor: out.reason for out in self.left_out if out.value is None}
        return [
            f"{rule} rules nothing out: {rule.factor.name} is left out, since {why[name]}"
            for rule in constraints.all
            # Of redundancy, `kept_by` tells.
            if (name := rule.factor.name) in why and name not in self.defaults
            if name != "redundancy"
        ]

    def kept_by(self) -> str:
        """How a constraint on redundancy is kept: what a user may have meant otherwise."""
        cached = any(self.values.get("cache", []))
        how = (
            "is kept by what waits in the cache" if cached else "is kept: nothing waits in a cache"
        )
        return (
            f"{how}. How a file system protects what has reached it (RAID, parity, copies) no run "
            "chooses: make a directory of each kind, and name them by --variable"
        )


class SpaceBuilder:
    """Puts a space together: what the program's shape, the file system and the user rule out is
    left out by name."""

    def __init__(
        self,
        workload: Workload,
        constraints: Constraints,
        variables: Iterable[Variable],
        nodes: int | None = None,
    ) -> None:
        self._workload = workload
        self._constraints = constraints
        self._variables = list(variables)
        self._nodes = nodes or workload.nodes
        self._mpi = str(workload.trace.run.mpi.get("name", ""))
        self._space = Space(layout_of(workload))

    def build(self) -> Space:
        self._engine()
        self._collective()
        self._striping()
        self._cache()
        self._prefetch()
        for variable in self._variables:
            self._variable(variable)
        return self._space

    def _out(self, factors: Sequence[str], reason: str) -> None:
        for factor in factors:
            self._space.left_out.append(LeftOut(factor, None, reason))

    def _add(self, factor: str, values: Sequence[str | None], default: str | None) -> None:
        """A factor with its values, as far as the constraints allow them."""
        kept: list[str | None] = []
        if default is not None:
            self._space.defaults[factor] = default
        for value in dict.fromkeys(values):
            means = self._space.usual(factor) if value is None else [value]
            if any(one is None or self._constraints.allow(factor, one) for one in means):
                kept.append(value)
            else:
                self._space.left_out.append(LeftOut(factor, value or default, "a constraint"))
        if not kept:
            rules = " and ".join(map(str, self._constraints.of(factor)))
            raise ForebayError(
                f"{rules} leaves no value of {factor}",
                f"There are: {', '.join(_names(factor, values, default))}.",
            )
        self._space.values[factor] = kept

    def _engine(self) -> None:
        if not self._workload.opens_through_mpi:
            self._out(("engine",), "the program makes no calls of MPI-IO")
            return
        # The MPI's own hints are for those who do not want Forebay.
        wanted = [None, *(["mpi"] if self._constraints.named("engine", "mpi") else [])]
        if wanted == [None]:
            self._space.left_out.append(
                LeftOut("engine", "mpi", "is tried as 'stock' alone: allow its hints by "
                        "--constraint engine=forebay,mpi")
            )  # fmt: skip
        self._add("engine", wanted, "forebay")

    def _collective(self) -> None:
        works = self._workload.through_mpi()
        names = ("collective", "aggregators", "buffer_size", "alignment", "sieving")
        if not works:
            self._out(names, "the program makes no data calls of MPI-IO")
            return
        if any(work.collective for work in works):
            self._aggregation()
        else:
            self._out(names[:4], "the program makes no collective calls, and only it can")
        if not self._constraints.named("engine", "mpi"):
            self._out(names[4:], "Forebay goes by what calls cost")
        elif self._mpi == "openmpi":
            self._out(names[4:], "Open MPI takes no such hint from outside")
        elif any(work.scattered and not work.collective for work in works):
            self._add("sieving", [None, "enable", "disable"], "automatic")
        else:
            self._out(names[4:], "each rank's calls are contiguous in the file")

    def _aggregation(self) -> None:
        works = [work for work in self._workload.through_mpi() if work.collective]
        self._add("collective", [None, "enable", "disable"], "automatic")
        ranks = max(work.processes for work in works)
        default = default_aggregators(self._space.layout, self._nodes, ranks)
        # ROMIO takes one a node; how many OMPIO takes goes by the data.
        alone = None if self._mpi == "openmpi" else str(min(self._nodes, ranks))
        self._space.stock_defaults["aggregators"] = alone
        counts = {2**power for power in range(int(math.log2(ranks)) + 1)}
        counts |= {min(ranks, self._space.layout.servers), min(ranks, self._nodes), ranks}
        self._add("aggregators", [None, *map(str, sorted(counts))], str(default))
        self._buffers()
        self._alignment()

    def _buffers(self) -> None:
        """Multiples of a stripe where there are stripes: rounds are aligned to them."""
        layout = self._space.layout
        together = max(
            work.bytes // max(1, work.repetitions)
            for work in self._workload.through_mpi()
            if work.collective
        )
        if layout.striped:
            default = max(layout.stripe_bytes, STRIPED_BUFFER_BYTES)
            sizes = [layout.stripe_bytes * 4**power for power in range(6)]
            sizes = [size for size in sizes if (64 << 10) <= size <= (256 << 20)]
        else:
            default = LOCAL_BUFFER_BYTES
            sizes = list(_BUFFERS)
        # A buffer beyond all bytes of a call is as good as one for all of them.
        most = next((size for size in sizes if size >= together), sizes[-1])
        values = [str(size) for size in sizes if size <= most]
        alone = _OMPIO_BUFFER_BYTES if self._mpi == "openmpi" else STOCK_BUFFER_BYTES
        self._space.stock_defaults["buffer_size"] = str(alone)
        self._add("buffer_size", [None, *values], str(default))

    def _alignment(self) -> None:
        """ROMIO's aggregators begin at multiples of its hint on any file system."""
        if not self._constraints.named("engine", "mpi") or self._mpi == "openmpi":
            self._out(("alignment",), "Forebay's rounds are always aligned, and Open MPI's cannot "
                      "be")  # fmt: skip
            return
        layout = self._space.layout
        unit = layout.stripe_bytes if layout.striped else self._block_bytes()
        if unit > _PAGE_BYTES:
            self._add("alignment", [None, str(unit)], None)
        else:
            self._out(("alignment",), "the files are not striped, and their file system has no "
                      "blocks larger than a page")  # fmt: skip

    def _block_bytes(self) -> int:
        files = [file for file in _most_bytes_first(self._workload) if file.mpi]
        return filesystem.block_bytes(Path(files[0].path)) if files else 0

    def _striping(self) -> None:
        names = _STRIPING
        layout = self._space.layout
        # Constraints hold also for what no run can choose.
        self._space.defaults |= layout.settings
        files = [file for file in self._workload.files if file.mpi]
        if not files:
            self._out(names, "no file is made through MPI; of others, 'lfs setstripe' sets it for "
                      "a directory, before the program runs")  # fmt: skip
            return
        reason = why_striping_is_fixed(files)
        if reason:
            self._out(names, reason)
            return
        if all(file.bytes < SMALL_FILE_BYTES for file in files):
            self._add("stripe_count", ["1"], None)
            self._out(("stripe_size",), f"files below {show_bytes(SMALL_FILE_BYTES)} get one "
                      "stripe")  # fmt: skip
            return
        servers = {2**power for power in range(12) if 2**power <= layout.servers}
        counts = sorted(servers | {layout.servers}) if layout.servers > 1 else _SERVERS_TRIED
        known = layout.stripe_bytes > 0
        self._add("stripe_count", [None, *map(str, counts)], str(layout.servers) if known else None)
        sizes = [str(size) for size in _STRIPES]
        self._add("stripe_size", [None, *sizes], str(layout.stripe_bytes) if known else None)

    def _variable(self, variable: Variable) -> None:
        """One of the program's own. Where it names the directories of files whose striping no run
        chooses, the striping of each has to keep the constraints."""
        files = _most_bytes_first(self._workload)[:1]
        if all(Path(value).is_dir() for value in variable.values) and any(
            inside(file.path, value) for file in files for value in variable.values
        ):
            self._space.places[variable.name] = {v: layout_at(Path(v)) for v in variable.values}
        self._add(variable.name, list(variable.values), default=None)
        if "stripe_count" in self._space.values:
            return
        values = self._space.values[variable.name]
        for value, layout in self._space.places.get(variable.name, {}).items():
            broken = self._constraints.broken_by(layout.settings)
            if broken is None or value not in values:
                continue
            values.remove(value)
            self._space.left_out.append(LeftOut(variable.name, value, f"it breaks {broken}"))
            if not values:
                raise ForebayError(
                    f"{broken} leaves no value of {variable.name}",
                    f"Files in each of {', '.join(variable.values)} are spread in another way.",
                )

    def _cache(self) -> None:
        names = ("cache", "cache_path", "cache_flush", "redundancy")
        if not self._workload.through_mpi(write=True):
            self._out(names, "the program writes nothing through MPI-IO")
            return
        self._add("cache", [None, "enable"], "disable")
        if self._space.values["cache"] == [None]:
            self._out(names[1:], "a constraint on the cache")
            return
        self._add("cache_path", self._cache_paths(), None)
        flushes: list[str | None] = [None, "onclose"]
        if self._constraints.named("cache_flush", "deferred"):
            flushes.append("deferred")
        else:
            self._space.left_out.append(
                LeftOut("cache_flush", "deferred", "other programs may find a file incomplete "
                        "that was closed: allow it by --constraint cache_flush=immediate,deferred")
            )  # fmt: skip
        self._add("cache_flush", flushes, "immediate")
        self._redundancy()

    def _redundancy(self) -> None:
        """Of the cache's logs. Raises ForebayError where the user wants the cache, and redundancy
        that it cannot have here."""
        fitting = [v for v in _REDUNDANCY if _pieces(v) < self._nodes]
        if any(self._constraints.allow("redundancy", value) for value in fitting):
            if len(fitting) > 1:
                values: list[str | None] = [None if v == "none" else v for v in fitting]
                self._add("redundancy", values, "none")
            else:
                self._out(("redundancy",), _ALONE)
            return
        rules = " and ".join(map(str, self._constraints.of("redundancy")))
        reason = (
            _ALONE
            if len(fitting) == 1
            else (f"there is {', '.join(fitting)} on {self._nodes} nodes")
        )
        if not self._constraints.allow("cache", "disable"):
            wanted = " and ".join(map(str, self._constraints.of("cache")))
            raise ForebayError(
                f"{wanted} and {rules} cannot both be kept: {reason}",
                "Take one of them away, or run on more nodes.",
            )
        self._space.values["cache"] = [None]
        self._space.left_out.append(
            LeftOut("cache", "enable", f"{rules} cannot be kept by what waits there: {reason}")
        )
        self._out(("redundancy",), reason)

    def _cache_paths(self) -> list[str | None]:
        """Node-local places with room for what the program writes; not the one that holds the
        program's own files."""
        written = sum(work.bytes for work in self._workload.through_mpi(write=True)) // self._nodes
        points = {file.mount_point for file in self._workload.files if file.mpi}
        chosen: list[str | None] = []
        for place in filesystem.local_paths():
            if not place.writable or filesystem.mount_of(Path(place.path)).point in points:
                why = "is not writable, or holds the program's own files"
            elif place.free // 4 < min(written, 64 << 20):
                why = f"has {show_bytes(place.free)} free, of which the cache takes a quarter"
            else:
                chosen.append(place.path)
                continue
            self._space.left_out.append(LeftOut("cache_path", place.path, why))
        return chosen or [None]

    def _prefetch(self) -> None:
        names = ("prefetch", "prefetch_budget")
        if not self._workload.reads:
            self._out(names, "the program reads no file of 1 MiB or more by itself (without MPI, "
                      "or by its independent calls), or writes to those that it reads")  # fmt: skip
            return
        self._add("prefetch", [None, "watch", "declare"], "off")
        self._add("prefetch_budget", [None, str(64 << 20)], str(8 << 20))


def _names(factor: str, values: Sequence[str | None], default: str | None) -> list[str]:
    """Of the values, for a person: each once, with what is in force where none is chosen."""
    named = dict.fromkeys(default if value is None else value for value in values)
    is_size = factor in KNOWN and KNOWN[factor].kind is Kind.SIZE
    return [
        show_bytes(int(value)) if is_size and value.isdigit() else value
        for value in named
        if value is not None
    ]


def _pieces(redundancy: str) -> int:
    """Protecting pieces of a group, which need nodes of their own beside a protected one."""
    return 0 if redundancy == "none" else 1 if redundancy == "partner" else int(redundancy[-1])


def layout_of(workload: Workload) -> Layout:
    """Of the file with most bytes, as traced; of its directory, as it is now, where the trace does
    not tell."""
    for file in _most_bytes_first(workload)[:1]:
        if file.stripe_bytes > 0:
            return Layout(file.stripe_bytes, max(1, file.stripe_count))
        return layout_at(Path(file.path))
    return Layout()


def _most_bytes_first(workload: Workload) -> list[TracedFile]:
    return sorted(workload.files, key=lambda file: (-file.mpi, -file.bytes))


def layout_at(path: Path) -> Layout:
    """How what is there is spread, or will be. Lustre says 0 for its default and -1 for all
    servers, which tells no number."""
    stripe = filesystem.stripe_of(path)
    if stripe is None or stripe.size <= 0 or stripe.count <= 0:
        return Layout()
    return Layout(stripe.size, stripe.count)


def inside(path: str, directory: str) -> bool:
    """Whether a path is below a directory, by their names."""
    return path.startswith(directory.rstrip("/") + "/")


def why_striping_is_fixed(files: Sequence[TracedFile]) -> str | None:
    """Why a run cannot choose the striping of its files; None if it can."""
    types = sorted({file.file_system or "an unknown file system" for file in files})
    if _TESTBED in types:
        return (
            "the emulated testbed has the stripes that it was mounted with: mount another one by "
            "'forebay testbed up --servers --stripe', and name both by --variable"
        )
    if not any(name in STRIPED_TYPES for name in types):
        return f"{', '.join(types)} has no striping that a program chooses"
    if not all(file.made for file in files if file.file_system in STRIPED_TYPES):
        return (
            "the file is there before the run, and keeps its striping: a new directory can have "
            "another, by 'lfs setstripe'"
        )
    return None


def default_aggregators(layout: Layout, nodes: int, ranks: int) -> int:
    """As choose_aggregators in core/plan/file_domains.cpp, with one network adapter a node."""
    if layout.striped:
        useful = min(layout.servers, nodes) if nodes > 1 else layout.servers
    else:
        useful = nodes if nodes > 1 else LOCAL_AGGREGATORS
    return max(1, min(useful, ranks))


def _means_something(factor: str, settings: Settings) -> bool:
    """Whether a factor has any effect beside the others."""
    stock = settings.get("engine") == "mpi"
    if factor in ("aggregators", "buffer_size", "alignment"):
        if settings.get("collective") == "disable":
            return False
        return factor != "alignment" or stock
    if factor in ("cache", "prefetch"):
        return True  # the MPI alone is without: a constraint may not be kept by that
    if factor.startswith("cache") or factor == "redundancy":
        return not stock and settings.get("cache") == "enable"
    if factor.startswith("prefetch"):
        return not stock and settings.get("prefetch", "off") != "off"
    if factor == "sieving":
        return stock
    return True


def candidates(space: Space, constraints: Constraints, seed: int) -> list[dict[str, str]]:
    """Every combination that means something and keeps the constraints, once. Of more than
    MOST_CANDIDATES, so many at random."""
    names = list(space.values)
    lists = [space.values[name] for name in names]
    space.considered = math.prod(len(values) for values in lists)
    found: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    for combination in _combinations(lists, seed):
        settings = {n: v for n, v in zip(names, combination, strict=True) if v is not None}
        settings = {n: v for n, v in settings.items() if _means_something(n, settings)}
        if settings.get("engine") == "mpi" and not _stock_knows(settings):
            continue
        if constraints.broken_by(space.effective(settings)) is None:
            found.setdefault(tuple(sorted(settings.items())), settings)
    return list(found.values())


def _stock_knows(settings: Settings) -> bool:
    return not any(name in ("cache", "prefetch") for name in settings)


def _combinations(
    lists: Sequence[Sequence[str | None]], seed: int
) -> Iterator[tuple[str | None, ...]]:
    if math.prod(len(values) for values in lists) <= MOST_CANDIDATES:
        yield from itertools.product(*lists)
        return
    yield tuple(values[0] for values in lists)
    generator = np.random.default_rng(seed)
    for _ in range(MOST_CANDIDATES):
        yield tuple(values[int(generator.integers(len(values)))] for values in lists)
