"""What can be tried for a program, and how long the model takes it to last.

Method: traces of runs of which everything is known, and limits that are round numbers, so that
predictions are arithmetic.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from made_runs import MIB, MadeRun

from forebay import filesystem
from forebay.configure import candidate, space, workload
from forebay.configure.constraints import Constraints, parse
from forebay.configure.factors import Variable
from forebay.configure.model import Model
from forebay.configure.rates import Point, Rates, interpolated
from forebay.configure.space import LeftOut, Space
from forebay.configure.workload import Workload
from forebay.errors import ForebayError
from forebay.filesystem import Stripe

RANKS = 4
CALL = 4 * MIB


def limit(size: int, rate: float, operation: str = "write", processes: int = 1) -> Point:
    return Point("file system", "/scratch", operation, "fsync", size, processes, rate)


#: A call of up to 64 KiB takes 10 ms; large ones go at 100 MiB/s.
LIMITS = [limit(64 << 10, 6.25 * MIB), limit(16 * MIB, 100 * MIB)]


def writing(
    path: Path, collective: bool = True, hosts: int = 1, file_system: str = "ext4", size: int = CALL
) -> MadeRun:
    """64 MiB, or as many calls of `size`, by 4 ranks within the last 600 ms of a second."""
    made = MadeRun(path / "job.trace", processes=RANKS, ranks=RANKS, file_systems=[file_system])
    made.run = {"machine": {"hosts": [f"node{n}" for n in range(hosts)]}}
    call = "write_at_all" if collective else "write_at"
    for rank in range(RANKS):
        for turn in range(4):
            made.mpi(call, 400 + 150 * turn, 150, size, process=rank, collective=collective,
                     offset=(4 * turn + rank) * size)  # fmt: skip
    return made


def built(made: Workload, *rules: str, variables: tuple[Variable, ...] = ()) -> Space:
    constraints = Constraints(tuple(parse(rule, variables) for rule in rules))
    return space.SpaceBuilder(made, constraints, variables).build()


def reasons(found: Space) -> dict[str, str]:
    return {out.factor: out.reason for out in found.left_out if out.value is None}


def test_a_traced_program_is_phases_files_and_a_ceiling(tmp_path: Path) -> None:
    made = workload.of(writing(tmp_path, hosts=2).trace())
    (work,) = made.works
    assert (work.operation, work.mpi, work.collective) == ("write", True, True)
    assert (work.bytes, work.call_bytes, work.processes) == (64 * MIB, CALL, RANKS)
    assert made.ceiling_share == pytest.approx(0.6)
    assert made.best_speedup == pytest.approx(2.5)
    assert made.nodes == 2
    (file,) = made.files
    assert (file.path, file.bytes, file.mpi) == ("/scratch/data", 64 * MIB, True)


def test_the_ceiling_is_of_the_process_with_most_io(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "job.trace", processes=RANKS, ranks=RANKS)
    made.posix("pwrite", 100, 800, MIB, offset=0)
    for rank in range(1, RANKS):
        made.posix("pwrite", 100, 1, MIB, process=rank, offset=rank * MIB)
    assert workload.of(made.trace()).ceiling_share == pytest.approx(0.8)


def test_what_the_programs_shape_rules_out_is_left_out_by_name(tmp_path: Path) -> None:
    found = built(workload.of(writing(tmp_path, collective=False).trace()))
    told = reasons(found)
    assert "no collective calls" in told["aggregators"]
    assert "ext4 has no striping" in told["stripe_count"]
    assert "one node" in told["redundancy"]
    assert "reads no file" in told["prefetch"]
    assert set(found.values) == {"engine", "cache", "cache_path", "cache_flush"}


def test_programs_without_mpi_have_only_what_is_read_ahead(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "job.trace", files=["/scratch/a[1].root"])
    for turn in range(20):
        made.posix("pread", 10 * turn, 5, MIB, offset=(20 - turn) * 2 * MIB)
    of_run = workload.of(made.trace())
    found = built(of_run)
    assert set(found.values) == {"prefetch", "prefetch_budget"}
    settings = {"prefetch": "declare", "prefetch_budget": str(64 * MIB)}
    (section,) = candidate.configuration("c", settings, of_run).sections
    assert section["path"] == "/scratch/a\\[1].root"
    assert section["willneed"][0] == [40 * MIB, MIB]
    assert section["budget"] == 64 * MIB
    watched = candidate.configuration("c", {"prefetch": "watch"}, of_run).sections
    assert "willneed" not in watched[0]


@pytest.mark.parametrize(
    ("amode", "collective", "ahead"),
    [
        ("MPI_MODE_RDONLY", False, True),
        ("MPI_MODE_RDWR", False, False),
        ("MPI_MODE_RDONLY", True, False),
    ],
)
def test_independent_reads_of_files_that_are_only_read_can_be_read_ahead(
    tmp_path: Path, amode: str, collective: bool, ahead: bool
) -> None:
    made = MadeRun(tmp_path / "job.trace", processes=2, ranks=2)
    made.openings = [{"amode": amode}]
    for rank in range(2):
        for turn in range(8):
            at = {"process": rank, "offset": (2 * turn + rank) * MIB}
            made.mpi("read_at_all" if collective else "read_at", 100 * turn, 50, MIB,
                     collective=collective, opening=0, **at)  # fmt: skip
            made.posix("pread", 100 * turn + 1, 48, MIB, within="mpi", **at)
    of_run = workload.of(made.trace())
    found = built(of_run)
    assert ("prefetch" in found.values) is ahead
    if not ahead:
        assert "its independent calls" in reasons(found)["prefetch"]
        return
    (section,) = candidate.configuration("c", {"prefetch": "declare"}, of_run).sections
    assert section["willneed"] == [[0, 16 * MIB]]
    slow = replace(limit(MIB, 20 * MIB, "read", 2), mode="cold")
    model = Model(of_run, found, Rates([slow]), [], 1)
    plain, declared = model.predict({}), model.predict({"prefetch": "declare"})
    assert plain is not None
    assert declared is not None
    assert declared < plain


def test_striping_is_for_files_that_the_run_makes(tmp_path: Path) -> None:
    of_run = workload.of(writing(tmp_path, file_system="lustre").trace())
    assert "keeps its striping" in reasons(built(of_run))["stripe_count"]
    fixed = workload.of(writing(tmp_path / "b", file_system="fuse.forebay-testbed").trace())
    assert "mounted with" in reasons(built(fixed))["stripe_count"]


def test_small_files_get_one_stripe(tmp_path: Path) -> None:
    large = workload.TracedFile("/s/out.12", "/s", "lustre", 64 * MIB, True, True, MIB, 8)
    small = workload.TracedFile("/s/log.3", "/s", "lustre", MIB, True, True, MIB, 8)
    of_run = workload.of(writing(tmp_path).trace())
    files = vars(of_run)
    alone = Workload(**(files | {"files": [small]}))
    assert built(alone).values["stripe_count"] == ["1"]
    both = Workload(**(files | {"files": [large, small]}))
    assert built(both).values["stripe_count"] == [None, "1", "2", "4", "8"]
    made = candidate.configuration("c", {"stripe_count": "8"}, both)
    assert made.hints == {}
    assert made.sections == [
        {"path": "/s/out.*", "striping_factor": "8"},
        {"path": "/s/log.*", "striping_factor": "1"},
    ]
    only_large = Workload(**(files | {"files": [large]}))
    assert candidate.configuration("c", {"stripe_count": "8"}, only_large).hints == {
        "striping_factor": "8"
    }


def test_redundancy_takes_nodes_and_keeps_to_the_constraint(tmp_path: Path) -> None:
    of_run = workload.of(writing(tmp_path, hosts=3).trace())
    rule = Constraints((parse("redundancy>=1"),))
    found = built(of_run, "redundancy>=1")
    assert found.values["redundancy"] == ["partner", "parity:4+1", "parity:4+2"]
    cached = [c for c in space.candidates(found, rule, 1) if c.get("cache") == "enable"]
    assert cached
    assert all("redundancy" in settings for settings in cached)
    alone = workload.of(writing(tmp_path / "one").trace())
    found = built(alone, "redundancy>=1")
    assert not any("cache" in c for c in space.candidates(found, rule, 1))


@pytest.mark.parametrize(
    ("hosts", "rule", "why"),
    [
        (1, "redundancy>=1", "there is one node"),
        (2, "redundancy>=2", "there is none, partner, parity:4+1 on 2 nodes"),
        (3, "redundancy>=3", "there is none, partner, parity:4+1, parity:4+2 on 3 nodes"),
    ],
)
def test_redundancy_that_the_cache_cannot_have_leaves_it_out_or_says_so(
    tmp_path: Path, hosts: int, rule: str, why: str
) -> None:
    of_run = workload.of(writing(tmp_path, hosts=hosts).trace())
    found = built(of_run, rule)
    told = {(out.factor, out.value): out.reason for out in found.left_out}
    assert told["cache", "enable"].startswith(f"{rule} cannot be kept by what waits there: ")
    assert why in told["cache", "enable"]
    assert found.kept_by().startswith("is kept: nothing waits in a cache. ")
    settings = space.candidates(found, Constraints((parse(rule),)), 1)
    assert not any("cache" in each for each in settings)
    with pytest.raises(ForebayError, match=f"cache=enable and {rule} cannot both be kept: ") as no:
        built(of_run, rule, "cache=enable")
    assert why in no.value.message


@pytest.mark.parametrize("rule", ["redundancy=none", "redundancy<1", "redundancy<=partner"])
def test_redundancy_that_is_not_asked_for_leaves_the_cache(tmp_path: Path, rule: str) -> None:
    found = built(workload.of(writing(tmp_path).trace()), rule)
    assert found.values["cache"] == [None, "enable"]
    assert "by what waits in the cache. " in found.kept_by()
    assert "--variable" in found.kept_by()


def test_a_close_that_does_not_wait_is_tried_only_by_name(tmp_path: Path) -> None:
    of_run = workload.of(writing(tmp_path).trace())
    assert "deferred" not in built(of_run).values["cache_flush"]
    named = built(of_run, "cache_flush=immediate,deferred").values["cache_flush"]
    assert named == [None, "deferred"]


def test_constraints_hold_for_what_is_in_force(tmp_path: Path) -> None:
    """4 aggregators are what Forebay takes by itself here."""
    of_run = workload.of(writing(tmp_path).trace())
    rules = Constraints((parse("aggregators<=2"), parse("collective=enable")))
    found = space.SpaceBuilder(of_run, rules, []).build()
    chosen = space.candidates(found, rules, 1)
    assert chosen
    for settings in chosen:
        assert settings["aggregators"] in ("1", "2")
        assert settings["collective"] == "enable"
    with pytest.raises(ForebayError, match="leaves no value of aggregators"):
        built(of_run, "aggregators>4096")


def test_constraints_on_the_mpi_alone_are_judged_by_its_own_defaults(tmp_path: Path) -> None:
    """ROMIO takes one aggregator a node and 16 MiB, Forebay here 4 and 512 KiB."""
    of_run = workload.of(writing(tmp_path).trace())
    stock = {"engine": "mpi"}
    for rule, keeps in (
        ("aggregators<=2", True),
        ("aggregators>=2", False),
        ("buffer_size<=1MiB", False),
        ("collective=enable", False),
        ("cache=enable", False),
        ("engine=forebay", False),
    ):
        rules = Constraints((parse(rule),))
        found = space.SpaceBuilder(of_run, rules, []).build()
        assert (rules.broken_by(found.effective(stock)) is None) == keeps, rule
    rules = Constraints((parse("engine=mpi"), parse("aggregators>=2"), parse("buffer_size>=16MiB")))
    found = space.SpaceBuilder(of_run, rules, []).build()
    assert found.values["aggregators"] == ["2", "4"]
    assert None in found.values["buffer_size"]
    made = writing(tmp_path / "ompi")
    made.run |= {"mpi": {"name": "openmpi"}}
    of_run = workload.of(made.trace())
    found = space.SpaceBuilder(of_run, Constraints(), []).build()
    assert "aggregators" not in found.effective(stock)
    assert found.effective(stock)["buffer_size"] == str(32 * MIB)


def test_what_the_cache_is_wanted_for_is_not_tried_without_it(tmp_path: Path) -> None:
    of_run = workload.of(writing(tmp_path).trace())
    rules = Constraints((parse("engine=forebay,mpi"), parse("cache=enable")))
    found = space.SpaceBuilder(of_run, rules, []).build()
    chosen = space.candidates(found, rules, 1)
    assert chosen
    assert all(settings["cache"] == "enable" for settings in chosen)
    assert not any(settings.get("engine") == "mpi" for settings in chosen)


def striped(of_run: Workload, count: int, file_system: str = "fuse.forebay-testbed") -> Workload:
    file = workload.TracedFile("/s/out", "/s", file_system, 64 * MIB, True, False, MIB, count)
    return Workload(**(vars(of_run) | {"files": [file]}))


def test_constraints_hold_for_striping_that_no_run_chooses(tmp_path: Path) -> None:
    of_run = striped(workload.of(writing(tmp_path).trace()), 8)
    rules = Constraints((parse("stripe_count<=4"),))
    found = space.SpaceBuilder(of_run, rules, []).build()
    assert "mounted with" in reasons(found)["stripe_count"]
    assert space.candidates(found, rules, 1) == []
    assert found.unheeded(rules) == []
    rules = Constraints((parse("stripe_count<=8"), parse("stripe_size=1MiB")))
    assert space.candidates(space.SpaceBuilder(of_run, rules, []).build(), rules, 1)


@pytest.mark.parametrize(
    ("servers", "block", "values"),
    [(8, 4096, [None, str(MIB)]), (1, 2 * MIB, [None, str(2 * MIB)]), (1, 4096, None)],
)
def test_romio_is_aligned_to_stripes_or_to_blocks_beyond_a_page(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    servers: int,
    block: int,
    values: list[str | None] | None,
) -> None:
    """Fault model: a file system of which this test says how large its blocks are."""
    monkeypatch.setattr(filesystem, "block_bytes", lambda _: block)
    of_run = striped(workload.of(writing(tmp_path).trace()), servers)
    found = built(of_run, "engine=forebay,mpi")
    assert found.values.get("alignment") == values
    assert ("no blocks larger than a page" in reasons(found).get("alignment", "")) == (
        values is None
    )
    chosen = space.candidates(found, Constraints((parse("engine=forebay,mpi"),)), 1)
    assert all(each["engine"] == "mpi" for each in chosen if "alignment" in each)
    hints = candidate.configuration("c", {"engine": "mpi", "alignment": str(block)}, of_run).hints
    assert hints == {"striping_unit": str(block)}


def test_forebay_and_open_mpi_have_no_alignment_to_choose(tmp_path: Path) -> None:
    of_run = striped(workload.of(writing(tmp_path).trace()), 8)
    assert "always aligned" in reasons(built(of_run))["alignment"]
    made = writing(tmp_path / "openmpi")
    made.run |= {"mpi": {"name": "openmpi"}}
    of_run = striped(workload.of(made.trace()), 8)
    found = built(of_run, "engine=forebay,mpi")
    assert "Open MPI's cannot be" in reasons(found)["alignment"]


def test_constraints_that_nothing_can_be_judged_by_are_told(tmp_path: Path) -> None:
    of_run = workload.of(writing(tmp_path).trace())
    texts = (
        "stripe_count<=4",
        "prefetch=watch",
        "sieving=disable",
        "alignment=1MiB",
        "cache=enable",
    )
    rules = Constraints(tuple(map(parse, texts)))
    found = space.SpaceBuilder(of_run, rules, []).build()
    assert [note.partition(" rules nothing out: ")[0] for note in found.unheeded(rules)] == [
        *texts[:4]
    ]
    assert "ext4 has no striping" in found.unheeded(rules)[0]


def test_candidates_are_each_once_and_mean_something(tmp_path: Path) -> None:
    of_run = workload.of(writing(tmp_path).trace())
    found = built(of_run, "engine=forebay,mpi")
    chosen = space.candidates(found, Constraints((parse("engine=forebay,mpi"),)), 1)
    assert len({tuple(sorted(c.items())) for c in chosen}) == len(chosen)
    assert {} in chosen
    assert {"engine": "mpi"} in chosen
    for settings in chosen:
        assert not (settings.get("engine") == "mpi" and "cache" in settings)
        assert not (settings.get("collective") == "disable" and "aggregators" in settings)
        assert not ("cache_flush" in settings and "cache" not in settings)


def model(of_run: Workload, points: list[Point], *rules: str, quantity: str = "wall") -> Model:
    return Model(of_run, built(of_run, *rules), Rates(points), [], of_run.nodes, quantity)


def test_seconds_are_bytes_by_rates_beside_computing(tmp_path: Path) -> None:
    """Each rank alone moves calls of 4 MiB; between 64 KiB (6.25) and 16 MiB (100 MiB/s), on
    logarithmic scales, three quarters of the way."""
    of_run = workload.of(writing(tmp_path, collective=False).trace())
    rate = 6.25 * MIB * (100 / 6.25) ** 0.75
    assert model(of_run, LIMITS).predict({}) == pytest.approx(0.4 + 64 * MIB / rate)
    assert model(of_run, LIMITS, quantity="write").predict({}) == pytest.approx(64 * MIB / rate)


def test_pieces_are_gathered_where_calls_cost(tmp_path: Path) -> None:
    small = workload.of(writing(tmp_path, size=16 << 10).trace())
    works = model(small, LIMITS)
    alone = works.predict({"collective": "disable"})
    assert alone == pytest.approx(0.4 + 16 * 0.01)  # 16 calls of 10 ms, one after another
    together = works.predict({"collective": "enable", "aggregators": "1"})
    assert together == pytest.approx(0.4 + 4 * 0.01)
    assert works.predict({"aggregators": "1"}) == together  # left alone, it is the better of both


def test_more_buffer_and_what_the_library_was_measured_at(tmp_path: Path) -> None:
    of_run = workload.of(writing(tmp_path).trace())
    small, large = (
        model(of_run, LIMITS).predict({"collective": "enable", "buffer_size": str(size)})
        for size in (512 << 10, 16 * MIB)
    )
    assert small is not None
    assert large is not None
    assert large < small
    measured = Point("library", "/scratch", "write", "fsync", CALL, 4, 32 * MIB, "collective",
                     "forebay")  # fmt: skip
    exact = model(of_run, [*LIMITS, measured]).predict({"collective": "enable"})
    assert exact == pytest.approx(0.4 + 2)


def test_collective_calls_of_smaller_pieces_than_were_measured_are_no_slower_by_that(
    tmp_path: Path,
) -> None:
    """Measured with pieces of 16 KiB: of 512 bytes there are 32 times as many to copy, but requests
    are those of a buffer as before. Memory was measured by copies of 64 MiB, and is as fast."""
    small = workload.of(writing(tmp_path, size=512).trace())
    library = [
        Point("library", "/scratch", "write", "fsync", 16 << 10, 4, rate, access, "forebay")
        for access, rate in (("collective", MIB / 64), ("independent", MIB / 64))
    ]
    memory = Point("memory", "", "copy", "copy", 64 * MIB, 1, 4e9)
    works = model(small, [*LIMITS, *library, memory])
    spent = 16 * 512 / (MIB / 64)
    assert works.predict({"collective": "enable"}) == pytest.approx(0.4 + spent, abs=0.01)
    alone = works.predict({"collective": "disable"})
    assert alone == pytest.approx(0.4 + 32 * spent)  # each of them is a request
    cached = works.predict({"cache": "enable", "cache_path": "/dev/shm", "collective": "enable"})
    assert cached is not None
    assert cached < 0.4 + spent


def test_what_ranks_cache_by_themselves_is_flushed_in_the_pieces_that_it_has(
    tmp_path: Path,
) -> None:
    of_run = workload.of(writing(tmp_path).trace())
    (work,) = of_run.works
    scattered = replace(of_run, works=[replace(work, piece_bytes=4096)])
    works = model(scattered, LIMITS)
    together = works.predict({"cache": "enable", "collective": "enable"})
    alone = works.predict({"cache": "enable", "collective": "disable"})
    assert together is not None
    assert alone is not None
    assert alone > 10 * together  # 16,384 requests of 10 ms


def test_what_is_known_of_a_place_by_other_writes_does_not_speak_of_logs_there(
    tmp_path: Path,
) -> None:
    """The launcher writes a line of 40 bytes to the disk that the cache could have."""
    of_run = workload.of(writing(tmp_path).trace())
    line = Point("file system", "/", "write", "traced", 40, 1, 1e6)
    known = replace(of_run, traced=[*of_run.traced, line])
    settings = {"cache": "enable", "cache_path": "/no-such-place", "collective": "enable"}
    assert model(known, LIMITS).predict(settings) == model(of_run, LIMITS).predict(settings)


def test_computing_is_what_is_left_beside_the_process_with_most_io(tmp_path: Path) -> None:
    """The launcher lives as long as the ranks, and has no I/O."""
    made = writing(tmp_path)
    made.processes += 1
    assert workload.of(made.trace()).compute_s == pytest.approx(0.4)


def test_a_cache_hides_what_computing_covers(tmp_path: Path) -> None:
    """Files one after another, 64 MiB each, with pauses that are longer than a flush."""
    of_run = workload.of(writing(tmp_path).trace())
    (work,) = of_run.works
    (one,) = workload.of(writing(tmp_path / "x").trace()).works
    turns = {"repetitions": 10, "pause_s": 5.0, "new_file_each_time": True}
    many = Workload(**(vars(of_run) | {"works": [type(work)(**(vars(one) | turns))]}))
    works = model(many, LIMITS, "cache_flush=immediate,onclose,deferred")
    plain = works.predict({})
    times = [
        works.predict({"cache": "enable", "cache_path": "/dev/shm", "cache_flush": flush})
        for flush in ("deferred", "immediate", "onclose")
    ]
    deferred, immediate, onclose = (t for t in times if t is not None)
    assert plain is not None
    assert deferred < immediate <= onclose


def test_a_place_without_limits_has_no_prediction(tmp_path: Path) -> None:
    of_run = workload.of(writing(tmp_path).trace())
    elsewhere = [Point("file system", "/elsewhere", "write", "fsync", MIB, 1, 1e9)]
    assert model(of_run, elsewhere).predict({}) is None


def test_the_traced_calls_stand_for_a_system_file(tmp_path: Path) -> None:
    """100 ms of writing 4 MiB, and as long for its close."""
    made = MadeRun(tmp_path / "job.trace")
    made.posix("pwrite", 0, 100, CALL, offset=0)
    made.posix("close", 100, 100)
    (point,) = workload.of(made.trace()).traced
    assert (point.operation, point.size_bytes, point.processes) == ("write", CALL, 1)
    assert point.rate == pytest.approx(CALL / 0.2)


def test_rates_are_interpolated_on_logarithmic_scales() -> None:
    points = [limit(1024, 1e6), limit(4096, 4e6), limit(4096, 16e6, processes=4)]
    assert interpolated(points, 512, 1) == pytest.approx(0.5e6)
    assert interpolated(points, 2048, 1) == pytest.approx(2e6)
    assert interpolated(points, 1 << 20, 1) == pytest.approx(4e6)
    assert interpolated(points, 4096, 2) == pytest.approx(8e6)
    assert interpolated(points, 4096, 64) == pytest.approx(16e6)


def test_a_directory_that_a_variable_names_is_looked_at(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("one", "two")]
    for place in places:
        place.mkdir()
    made = writing(tmp_path)
    made.files = [str(places[0] / "data")]
    of_run = workload.of(made.trace())
    variable = Variable("OUT", tuple(map(str, places)))
    found = built(of_run, variables=(variable,))
    assert found.values["OUT"] == list(variable.values)
    points = [
        Point("file system", str(tmp_path), "write", "fsync", CALL, 1, 32 * MIB, mount="/elsewhere")
    ]
    assert Model(of_run, found, Rates(points), [variable], 1).predict({}) is None


def test_directories_that_a_variable_names_keep_constraints_on_striping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault model: a file system of which this test says how directories are striped."""
    counts = {"wide": 8, "one": 1, "all": -1}
    places = {name: tmp_path / name for name in counts}
    for place in places.values():
        place.mkdir()
    monkeypatch.setattr(
        filesystem, "stripe_of", lambda path: Stripe(MIB, counts[path.name], "test")
    )
    made = writing(tmp_path)
    made.files = [str(places["wide"] / "data")]
    of_run = striped(workload.of(made.trace()), 8)
    of_run = Workload(
        **(vars(of_run) | {"files": [replace(of_run.files[0], path=str(places["wide"] / "data"))]})
    )
    wide, one = str(places["wide"]), str(places["one"])
    variable = Variable("OUT", (wide, one, str(places["all"])))
    rules = Constraints((parse("stripe_count<=4"),))
    found = space.SpaceBuilder(of_run, rules, [variable]).build()
    # Of how many servers 'all' are, nothing tells.
    assert found.values["OUT"] == [one, str(places["all"])]
    assert LeftOut("OUT", wide, "it breaks stripe_count<=4") in found.left_out
    assert {c["OUT"] for c in space.candidates(found, rules, 1)} == {one, str(places["all"])}
    assert found.effective({"OUT": one})["stripe_count"] == "1"
    assert "stripe_count" not in found.effective({"OUT": str(places["all"])})
    both = Variable("OUT", (wide, one))
    with pytest.raises(ForebayError, match="leaves no value of OUT"):
        space.SpaceBuilder(of_run, Constraints((parse("stripe_count>8"),)), [both]).build()
