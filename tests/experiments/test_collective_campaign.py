"""Goal: the pages under docs/experiments/collective say what the results say, by the stated rules.

Method: the rules on worked examples; the sweep with a made-up machine; the pages from results that
are made up here, read back as tables. Nothing is measured.
"""

from pathlib import Path
from typing import Any

import pytest

import campaign
import internals_page
import local_page
import measuring
import page_parts
import pictures
import results
import testbed_page
import testbed_runs
import verdicts
from forebay.statistics import Ratio
from verdicts import Verdict

HERE = Path(campaign.__file__).resolve().parent
RULES = campaign.Rules(limit_in_place_of_bar=0.85, pairs_at_least=5)
MIB = 1024 * 1024


def ratio(median: float, pairs: int = 6) -> Ratio:
    return Ratio(median, median * 0.9, median * 1.1, 0.97, pairs)


@pytest.mark.parametrize(
    ("median", "of_limit", "expected"),
    [
        (3.0, 0.1, Verdict.MET),
        (2.99, 0.1, Verdict.MISSED),
        (1.1, 0.85, Verdict.BY_LIMIT),
        (1.1, 0.849, Verdict.MISSED),
        (4.0, 0.95, Verdict.MET),
        (1.1, None, Verdict.MISSED),
    ],
)
def test_a_bar_is_met_by_the_median_or_by_the_limit(
    median: float, of_limit: float | None, expected: Verdict
) -> None:
    assert verdicts.of_bar(RULES, ratio(median), 3.0, of_limit, identical=True) is expected


def test_nothing_is_met_with_other_bytes_or_too_few_pairs() -> None:
    assert verdicts.of_bar(RULES, ratio(9), 3.0, 0.99, identical=False) is Verdict.MISSED
    assert verdicts.of_bar(RULES, ratio(9, 4), 3.0, 0.99, identical=True) is Verdict.TOO_FEW
    assert verdicts.of_floor(RULES, ratio(0.9, 4), 0.6) is Verdict.TOO_FEW


def test_what_nobody_claimed_or_measured_has_no_verdict() -> None:
    assert verdicts.of_bar(RULES, ratio(9), None, 0.99, identical=True) is Verdict.NO_BAR
    assert verdicts.of_bar(RULES, None, 3.0, None, identical=True) is Verdict.NO_BAR
    assert verdicts.of_floor(RULES, ratio(0.5), None) is Verdict.NO_BAR


def test_a_floor_is_on_the_fraction_of_the_limit() -> None:
    assert verdicts.of_floor(RULES, ratio(0.60), 0.60) is Verdict.MET
    assert verdicts.of_floor(RULES, ratio(0.59), 0.60) is Verdict.MISSED


def test_the_best_of_several_peers_counts() -> None:
    assert verdicts.smallest([ratio(2.0), None, ratio(1.2)]) == ratio(1.2)
    assert verdicts.smallest([None]) is None


def test_what_falls_short_is_not_rounded_up() -> None:
    assert page_parts.percent(0.8499) == "84 %"
    assert page_parts.percent(0.85) == "85 %"
    assert page_parts.ratio_text(Ratio(15.04, 9.996, 151.2, 0.97, 6)) == "15.0 [10.00, 151]"


def test_the_campaign_of_the_tree_claims_what_it_can_measure() -> None:
    described = campaign.load(HERE / "campaign.toml")
    settings = [
        described.local,
        described.independent,
        described.testbed.setting,
        described.internals.exchange,
        described.cache.series.setting,
        described.cache_local.series.setting,
    ]
    for setting in settings:
        names = [workload.name for workload in setting.workloads]
        assert len(names) == len(set(names))
        for workload in setting.workloads:
            assert set(workload.bars) <= set(campaign.QUANTITIES)
            by_mpi = [bar for bar in workload.bars.values() if isinstance(bar, dict)]
            assert all(set(bar) == set(described.mpis) for bar in by_mpi)
    assert set(described.testbed.sweep) == set(described.mpis)
    assert set(described.cache.stock) == set(described.mpis)
    series = described.cache.series
    assert described.cache.exposed_workload in [w.name for w in series.setting.workloads]
    pieces = described.internals.pieces
    assert all(pieces.total_bytes % count == 0 for count in pieces.counts)
    interleave = next(w for w in described.local.workloads if w.name == "interleave")
    assert (interleave.bar("write", "mpich"), interleave.bar("write", "openmpi")) == (5.0, 15.0)


def test_a_sweep_goes_on_from_the_best_of_each_quantity_and_measures_nothing_twice() -> None:
    asked: list[campaign.Hints] = []

    def machine(hints: campaign.Hints) -> testbed_runs.Seconds:
        """Writing likes a=2 and b; reading likes a=1 and suffers from b; a=3 hangs."""
        asked.append(hints)
        if hints.get("a") == "3":
            return {"write": None, "read": None}
        b = 1.0 if "b" in hints else 0.0
        write = {"1": 9.0, "2": 5.0}.get(hints.get("a", ""), 10.0) - b
        read = {"1": 3.0, "2": 4.0}.get(hints.get("a", ""), 6.0) + b
        return {"write": write, "read": read}

    stages = [[{"a": "1"}, {"a": "2"}, {"a": "3"}], [{"b": "1"}]]
    tried, best = testbed_runs.sweep(stages, machine)
    assert best == {"write": {"a": "2", "b": "1"}, "read": {"a": "1"}}
    assert [hints for hints, _ in tried] == asked
    assert len(asked) == 6  # none, three, and b on top of each best


def test_the_best_hints_are_compared_once_and_the_defaults_not_again() -> None:
    base = Path("results")
    both = testbed_runs.against({"write": {"a": "1"}, "read": {"a": "1"}}, base, "x")
    assert both == [({"a": "1"}, base / "x-best-write.json")]
    assert testbed_runs.against({"write": {}, "read": {}}, base, "x") == []


def test_pairs_start_with_either_side_equally_often() -> None:
    orders = measuring.orders(6, seed=1)
    assert sorted(orders) == [("forebay", "stock")] * 3 + [("stock", "forebay")] * 3
    assert orders == measuring.orders(6, seed=1)


def record(kind: str, **counters: int) -> dict[str, Any]:
    seconds = dict.fromkeys(("open", "write", "read", "sync", "close", "other"), 0.0)
    seconds |= {kind: 2.0, "close": 0.5, "open": 7.0}
    return {
        "ranks": 8,
        "aggregators": [0, 2],
        "calls": {"write": 0, "read": 0, kind: 8},
        "seconds": {name: {"max": value, "sum": 8 * value} for name, value in seconds.items()},
        "seconds_together": {"writing": 2.25, "data": 2.0, "all": 9.0},
        "counters": counters,
    }


def test_a_writer_waits_for_the_close_and_a_reader_does_not() -> None:
    run = measuring.Run(0, [record("write"), record("read")], 0)
    assert run.seconds() == {"write": 2.25, "read": 2.0}
    assert measuring.Run(0, [record("read")], 0).seconds() == {"write": None, "read": 2.0}


def test_counters_become_figures_of_one_call_and_one_byte() -> None:
    counters = {
        "bytes_written": 100,
        "bytes_copied": 250,
        "message_bytes_raw": 50,
        "messages": 12,
        "rounds": 3,
        "collective_calls": 16,  # of 8 ranks: 2 calls
        "exchanged_calls": 16,
        "direct_calls": 0,
        "metadata_bytes": 1000,
    }
    records = [record("write", **counters), record("read", bytes_read=100)]
    row = internals_page.exchange_row(records, "write", copies_at_most=2)
    assert row == ["16 / 0", "2", "3", "**2.50**", "0.50", "4.0", "500 B"]
    assert internals_page.exchange_row(records[:1], "read", copies_at_most=2) == []


def test_memory_for_each_further_piece_of_a_rank() -> None:
    points = [
        {"pieces": 0, "rss_max_bytes": {"stock": [50 * MIB]}},
        {"pieces": 4 * MIB, "rss_max_bytes": {"stock": [82 * MIB]}},
    ]
    assert internals_page.memory_per_piece(points, "stock", ranks=2) == 16


def comparison(median: float, seconds: float = 2.0, identical: bool = True) -> dict[str, Any]:
    """A document as `forebay compare --json` writes it: as long for writing as for reading."""
    spread = {"low": median * 0.9, "high": median * 1.1, "coverage": 0.97, "pairs": 6}
    whole = {"median": median, **spread}
    of_limit = {"median": 0.7, "low": 0.6, "high": 0.8, "coverage": 0.97, "pairs": 6}
    one = {"seconds": 0.01, "stock": {**of_limit, "median": 0.2}, "forebay": of_limit}
    sides = {"stock": seconds * median, "forebay": seconds, "limit": seconds / 2}
    pair = {side: {"write": spent, "read": spent} for side, spent in sides.items()}
    return {
        "identical": identical,
        "ratio": {"write": whole, "read": whole, "mpiio": whole},
        "limit": {"write": one, "read": one},
        "pairs": [pair] * 6,
        "engine": [
            {
                "bytes_asked": {"write": 16 * MIB, "read": 16 * MIB},
                "seconds": dict.fromkeys(("exchange", "storage", "waiting", "schedule"), 0.1),
                "counters": {
                    "bytes_copied": 48 * MIB,
                    "exchanged_calls": 4,
                    "direct_calls": 0,
                    "schedules_built": 2,
                    "schedules_reused": 2,
                },
            }
        ],
        "hints": {"stock": {}, "forebay": {}},
        "environment": {"mpi": {"mpich": "MPICH Version:\t4.0.2"}},
        "failure": None,
        "interrupted": False,
    }


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[pictures.Line]]:
    """What would be drawn, by the picture's name."""
    found: dict[str, list[pictures.Line]] = {}

    def keep(path: Path, _title: str, lines: list[pictures.Line]) -> None:
        found[path.name] = lines

    monkeypatch.setattr(pictures, "draw", keep)
    return found


def rows_of(page: Path, first: str, second: str = "write") -> list[list[str]]:
    """The cells of the rows that start with these two cells."""
    rows = [line.strip("| ").split(" | ") for line in page.read_text().splitlines()]
    return [row for row in rows if row[:2] == [first, second]]


def test_the_local_page_says_what_was_measured_and_what_was_not(
    tmp_path: Path, drawn: dict[str, list[pictures.Line]]
) -> None:
    described = campaign.load(HERE / "campaign.toml")
    base = tmp_path / "results" / "mpich-tmpfs"
    results.store(base / "lattice4d.json", comparison(2.0))
    results.store(base / "segments.json", comparison(1.0, identical=False))
    failure = {"side": "stock", "exit": 1, "timed_out": True}
    results.store(base / "block3d.json", {**comparison(1.0), "failure": failure})
    (tmp_path / "notes-local.md").write_text("Most of it is spent in the close.\n")

    page = local_page.write(tmp_path, described)

    text = page.read_text()
    assert "Most of it is spent in the close." in text
    assert "docs/experiments/collective/run.py" in text
    assert "MPICH Version: 4.0.2" in text
    (lattice,) = rows_of(page, "lattice4d")
    assert lattice[2:5] == ["2.00 [1.80, 2.20]", "3", "**missed**"]
    assert lattice[6:9] == ["20 %", "70 %", "60 %: met"]
    (segments,) = rows_of(page, "segments")
    assert segments[4] == "**missed**"
    assert segments[-1] == "**NO**"
    assert "| block3d |  | **stock: timed out** |" in text
    assert "| multipart |  | not measured |" in text
    assert "## Open MPI (OMPIO) on tmpfs" in text
    assert [line.name for line in drawn["local-mpich-tmpfs.svg"]] == ["lattice4d"] * 2 + [
        "segments"
    ] * 2


def test_the_testbed_page_takes_the_better_peer_and_the_servers_bandwidth(
    tmp_path: Path, drawn: dict[str, list[pictures.Line]]
) -> None:
    described = campaign.load(HERE / "campaign.toml")
    base = tmp_path / "results" / "mpich-testbed"
    hints = {"cb_nodes": "4"}
    results.store(base / "lattice4d.json", comparison(4.0, seconds=1.25))
    best = {**comparison(1.2, seconds=1.25), "hints": {"stock": hints, "forebay": {}}}
    results.store(base / "lattice4d-best-write.json", best)
    tried = [{"hints": {}, "write": 5.0, "read": 5.0}, {"hints": hints, "write": 2.0, "read": None}]
    swept = {"tried": tried, "best": {"write": hints, "read": hints}}
    results.store(base / "lattice4d-sweep.json", swept)

    page = testbed_page.write(tmp_path, described)

    (row,) = rows_of(page, "lattice4d")
    # 16 MiB in 1.25 s are 12.8 MiB/s of the servers' 16.
    assert row[5:7] == ["80 %", "**missed**"]
    assert row[7:11] == ["4.00 [3.60, 4.40]", "1.20 [1.08, 1.32]", "1.5", "**missed**"]
    text = page.read_text()
    assert "| `cb_nodes=4` | **8.0 MiB/s (50 %)** | **failed or too slow** |" in text
    assert [line.ratio.median for line in drawn["testbed-mpich.svg"]] == [1.2, 1.2]


def test_pages_without_results_say_so(tmp_path: Path) -> None:
    described = campaign.load(HERE / "campaign.toml")
    for page in (local_page, testbed_page, internals_page):
        assert "Nothing has been measured yet." in page.write(tmp_path, described).read_text()


def test_a_failed_measurement_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    assert not results.done(path)
    results.store(path, {**comparison(1.0), "interrupted": True})
    assert not results.done(path)
    results.store(path, comparison(1.0))
    assert results.done(path)


def test_the_same_lines_give_the_same_picture(tmp_path: Path) -> None:
    lines = [
        pictures.Line("lattice4d", "write", ratio(6.0), 3.0),
        pictures.Line("lattice4d", "read", ratio(0.5), None),
    ]
    pictures.draw(tmp_path / "a.svg", "MPICH on tmpfs", lines)
    pictures.draw(tmp_path / "b.svg", "MPICH on tmpfs", lines)
    picture = (tmp_path / "a.svg").read_text()
    assert picture == (tmp_path / "b.svg").read_text()
    assert "lattice4d, read" in picture
    assert "6.00" in picture
