"""Whether settings held, as records tell; and what else the machine did."""

import json
from pathlib import Path

import pytest
from fake_program import record as fake_record

from forebay.configurations import Configuration
from forebay.evaluate.background import Load, between, busy_share, snapshot
from forebay.evaluate.in_force import NOT_STRIPED, State, settings
from forebay.prefetch_records import PrefetchRecords
from forebay.records import Record, parse

NOTHING = PrefetchRecords([], [])


def record(path: str = "/data/out.h5", mode: str = "engine", **changed: object) -> Record:
    raw = fake_record(Path(path), mode, 0.1, 0.0, 10) | changed
    return parse(json.dumps(raw).encode())


def states(configuration: Configuration, *records: Record) -> dict[str, State]:
    return {s.key: s.state for s in settings(configuration, list(records), NOTHING)}


def hints(**values: str) -> Configuration:
    return Configuration("best", hints=values)


@pytest.mark.parametrize(
    ("key", "asked", "observed", "state"),
    [
        ("cb_nodes", "4", {"cb_nodes": "4"}, State.IN_FORCE),
        ("cb_nodes", "4", {"cb_nodes": "2"}, State.NOT_IN_FORCE),
        ("cb_buffer_size", "16MiB", {"cb_buffer_size": "16777216"}, State.IN_FORCE),
        ("romio_ds_write", "true", {"romio_ds_write": "enable"}, State.IN_FORCE),
        ("romio_ds_write", "DISABLE", {"romio_ds_write": "disable"}, State.IN_FORCE),
        ("romio_cb_write", "Automatic", {"romio_cb_write": "automatic"}, State.IN_FORCE),
        ("romio_cb_write", "automatic", {"romio_cb_write": "enable"}, State.NOT_IN_FORCE),
        ("forebay_cache_compress", "automatic", {"cb_nodes": "1"}, State.IN_FORCE),
        ("forebay_cache_path", "/data/A", {"forebay_cache_path": "/data/a"}, State.NOT_IN_FORCE),
        ("e10_cache", "coherent", {"forebay_cache": "enable"}, State.IN_FORCE),
        ("forebay_cache", "enable", {"cb_nodes": "1"}, State.NOT_IN_FORCE),
        ("forebay_cache", "disable", {"cb_nodes": "1"}, State.IN_FORCE),
        ("forebay_aggregators_per_node", "2", {"cb_config_list": "*:2"}, State.IN_FORCE),
        ("collective_buffering", "false", {"romio_cb_write": "disable", "romio_cb_read": "disable"},
         State.IN_FORCE),
        ("collective_buffering", "false", {"romio_cb_write": "enable"}, State.NOT_IN_FORCE),
        ("romio_lustre_co_ratio", "2", {"cb_nodes": "1"}, State.NOT_RECORDED),
    ],
)  # fmt: skip
def test_a_hint_is_looked_up_in_the_record(
    key: str, asked: str, observed: dict[str, str], state: State
) -> None:
    assert states(hints(**{key: asked}), record(hints=observed)) == {key: state}


def test_striping_is_that_of_the_file() -> None:
    found = record(stripe_count=4, stripe_size=1 << 20)
    assert states(hints(striping_factor="4", stripe_size="1MiB"), found) == {
        "striping_factor": State.IN_FORCE,
        "stripe_size": State.IN_FORCE,
    }
    assert states(hints(stripe_width="8"), found) == {"stripe_width": State.NOT_IN_FORCE}


def test_striping_that_nothing_tells_is_not_said_to_be_missing() -> None:
    """Of most file systems a record has no stripes, whatever the files have."""
    asked = hints(striping_factor="8", striping_unit="1MiB")
    unknown = record(stripe_count=1, stripe_size=0, file_system="beegfs")
    for observed in settings(asked, [unknown], NOTHING):
        assert (observed.state, observed.reason) == (State.NOT_RECORDED, NOT_STRIPED)
    on_disk = record(stripe_count=1, stripe_size=0, file_system="ext4")
    assert set(states(asked, on_disk).values()) == {State.NOT_IN_FORCE}
    striped = record(stripe_count=1, stripe_size=1 << 20)
    assert states(asked, striped)["striping_factor"] == State.NOT_IN_FORCE


def test_one_opening_that_has_it_is_enough() -> None:
    reading, writing = record(hints={"cb_nodes": "1"}), record(hints={"cb_nodes": "4"})
    assert states(hints(cb_nodes="4"), reading, writing) == {"cb_nodes": State.IN_FORCE}


def test_a_file_that_is_left_to_the_mpi_is_so_in_its_record() -> None:
    left = record(mode="observe", hints={})
    assert states(hints(forebay="disable"), left) == {"forebay": State.IN_FORCE}
    assert states(hints(forebay="enable"), left) == {"forebay": State.NOT_IN_FORCE}


def test_without_a_record_nothing_took_effect() -> None:
    assert states(hints(cb_nodes="4")) == {"cb_nodes": State.NOT_IN_FORCE}


def test_the_stock_mpi_keeps_no_record_of_its_hints() -> None:
    stock = Configuration("s", stock=True, hints={"cb_nodes": "4"})
    assert states(stock, record(mode="observe", hints={})) == {"cb_nodes": State.NOT_RECORDED}


def test_a_section_holds_for_the_files_that_match_it() -> None:
    sections = [
        {"path": "*.h5", "cb_nodes": 2, "cache": {"mode": "enable", "flush": "onclose"}},
        {"path": "/other/*", "cb_nodes": 4},
    ]
    asked = Configuration("best", sections=sections)
    found = record(hints={"cb_nodes": "2", "forebay_cache": "enable"})
    assert states(asked, found) == {
        "cb_nodes": State.IN_FORCE,
        "forebay_cache": State.IN_FORCE,
        "forebay_cache_flush": State.NOT_IN_FORCE,
        "path": State.NOT_IN_FORCE,
    }


def test_variables_of_the_program_and_budgets_are_not_proven_by_a_record() -> None:
    section = {"path": "*.root", "willneed": [[0, 0]], "budget": 64 << 20}
    asked = Configuration("best", environment={"OWN": "1"}, sections=[section])
    found = {each.key: each for each in settings(asked, [record()], NOTHING)}
    assert found["OWN"].state == found["budget"].state == State.NOT_RECORDED
    assert "variable of the program" in found["OWN"].reason
    assert found["budget"].asked == str(64 << 20)


def test_reading_ahead_shows_in_its_own_records() -> None:
    asked = Configuration("best", sections=[{"path": "*.root", "willneed": [[0, 0]]}])
    assert states(asked) == {"reading ahead": State.NOT_IN_FORCE}


def write_counters(place: Path, idle: int, busy: int, sectors: int) -> None:
    place.mkdir(exist_ok=True)
    (place / "stat").write_text(f"cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 1 1 1\n")
    disk = f"8 0 sda 1 0 {sectors} 5 1 0 {sectors} 5 0 1 1\n"
    (place / "diskstats").write_text(disk + disk.replace("sda", "sda1") + disk.replace("sda", "dm"))


def test_the_background_is_what_the_kernel_counted_meanwhile(tmp_path: Path) -> None:
    """Fault model: a kernel whose counters this test writes; partitions do not count twice."""
    (tmp_path / "block" / "sda" / "device").mkdir(parents=True)
    (tmp_path / "block" / "dm").mkdir()
    write_counters(tmp_path / "proc", idle=100, busy=100, sectors=10)
    first = snapshot(1.0, tmp_path / "proc", tmp_path)
    write_counters(tmp_path / "proc", idle=130, busy=110, sectors=20)
    load = between(first, snapshot(3.0, tmp_path / "proc", tmp_path), cores=8)
    assert load.cores == pytest.approx(2.0)
    assert load.device_bytes_per_s == 20 * 512 / 2
    assert between(first, first, cores=8) == Load(0.0, 0.0)


def test_busy_moments_are_counted_where_they_are_known() -> None:
    loads = [Load(0.1, 0), Load(3.0, 0), None]
    assert busy_share(loads, cores=4) == 0.5
    assert busy_share([None], cores=4) == 0.0
