"""Goal: the report of a search tells every run and claims nothing by itself: what is faster is said
by an evaluation alone.

Method: a search whose runs are made up and known, as a history and as JSON, alone and with
evaluations beside it; files that were changed; the command.
"""

import json
import math
import re
import sqlite3
from dataclasses import replace
from pathlib import Path

import made_searches
import pytest
from changed_documents import check_changed
from conftest import Forebay, read_json
from made_campaigns import NASTY, evaluation
from made_runs import MIB, MadeRun
from made_searches import COMMAND, RUNS

from forebay.configurations import Configuration
from forebay.configure import contrasts, stored
from forebay.configure.history import SearchRun
from forebay.errors import ForebayError
from forebay.evaluate.campaign import write_json
from forebay.report import search, search_page, search_pictures
from forebay.report.search import SearchReport
from forebay.report.templates import BYTES_MOST

SECTIONS = [
    "verdict",
    "ceiling",
    "differences",
    "runs",
    "factors",
    "settings",
    "provenance",
]


def examined(directory: Path, **others: object) -> SearchReport:
    path = made_searches.history(directory / "configure.sqlite", **others)  # type: ignore[arg-type]
    return search.examine(stored.load(path))


def page_of(report: SearchReport) -> str:
    return " ".join(search_page.render(report).split())


def evaluated(directory: Path, gain: float, hints: dict[str, str], name: str = "e.json") -> None:
    """What `forebay evaluate --json` leaves beside a search."""
    found = evaluation([(Configuration("best", hints=hints), gain)])
    found.settings = {}
    found.command = COMMAND
    write_json(found.as_json(), directory / name)


def test_a_search_alone_claims_nothing(tmp_path: Path) -> None:
    report = examined(tmp_path)
    assert report.verdict == (
        "Nothing is claimed: 'c02' looks best, by estimates of noisy runs, which prove nothing; no "
        "evaluation of it lies here."
    )
    assert report.as_json()["claimed"] is False
    text = page_of(report)
    assert "No line to copy: a search shows nothing to be faster." in text
    assert "export FOREBAY_HINTS" not in text


def test_the_page_has_every_section_and_every_run(tmp_path: Path) -> None:
    text = page_of(examined(tmp_path))
    assert re.findall(r'<section id="(\w+)">', text) == SECTIONS
    assert text.count("<svg") == 2
    assert "I/O is 60 % of the time" in text
    begin = text.index("Every run in order")
    table = text[begin : text.index("</details>", begin)]
    assert table.count("<tr>") == 1 + len(RUNS)
    assert "failed: ended with exit status 4: no space &lt;script&gt;" in table
    assert "romio_cb_write: asked disable, observed enable" in table
    assert "nothing is written by MPI" in text


def test_the_page_needs_nothing_else_and_is_small(tmp_path: Path) -> None:
    text = page_of(examined(tmp_path))
    assert len(text) < BYTES_MOST / 4
    assert "<script" not in text
    assert NASTY not in text
    assert all(place.startswith("data:") for place in re.findall(r'(?:src|href)="([^"#]*)"', text))


def test_the_best_so_far_is_the_least_of_the_runs_that_count(tmp_path: Path) -> None:
    """The warm-up, what failed and what did not hold have no part in it."""
    assert examined(tmp_path).best_so_far == [
        (2, 2.0), (3, 2.0), (4, 1.25), (6, 1.25), (8, 1.25), (9, 1.25), (10, 1.25),
    ]  # fmt: skip


def test_an_evaluation_beside_it_gives_the_verdict_and_the_lines(tmp_path: Path) -> None:
    evaluated(tmp_path, 0.4, {"cb_nodes": "2"})
    report = examined(tmp_path)
    assert report.verdict == "'best' is shown to be faster than 'default'."
    text = page_of(report)
    assert "best: improved, +" in text
    assert "export FOREBAY_HINTS=cb_nodes=2" in text
    assert "unset FOREBAY_HINTS" in text
    assert text.count("<svg") == 3
    found = report.as_json()
    assert found["claimed"] is True
    assert found["lines"]


def test_an_evaluation_that_shows_no_gain_says_so(tmp_path: Path) -> None:
    evaluated(tmp_path, 0.0, {"cb_nodes": "2"})
    report = examined(tmp_path)
    assert report.verdict == "No configuration is shown to be faster than 'default': keep it."
    assert "export FOREBAY_HINTS" not in page_of(report)
    assert report.as_json()["claimed"] is False


def test_an_evaluation_of_something_else_is_left_out(tmp_path: Path) -> None:
    evaluated(tmp_path, 0.4, {"cb_nodes": "64"})
    other = evaluation()
    write_json(other.as_json() | {"command": ["./b"]}, tmp_path / "other.json")
    (tmp_path / "torn.json").write_text('{"version": 1, "verdicts": {')
    report = examined(tmp_path)
    assert report.evaluations == []
    assert report.caveats == [
        f"{tmp_path}/e.json evaluates no configuration of this search: it is left out."
    ]


def test_a_factor_is_judged_by_pairs_that_differ_in_it_alone(tmp_path: Path) -> None:
    """default to 2 aggregators: (2.0, 2.04) against (1.25, 1.3, 1.28); to 8: against 2.2."""
    report = examined(tmp_path)
    found = {search.change(each): each for each in report.contrasts}
    assert set(found) == {
        "aggregators: left alone to 2",
        "aggregators: left alone to 8",
        "aggregators: 2 to 8",
        "buffer_size: left alone to 1MiB",
    }
    two = found["aggregators: left alone to 2"]
    expected = math.sqrt(2.0 * 2.04) / (1.25 * 1.3 * 1.28) ** (1 / 3) - 1
    assert two.gain == pytest.approx(expected)
    assert two.pairs == [("default", "c02")]
    assert two.beyond_noise
    assert report.noise is not None
    assert report.noise.degrees == 3
    assert [f"{each.factor}={each.value}" for each in report.troubles] == [
        "buffer_size=64KiB", "collective=disable",
    ]  # fmt: skip


def test_without_repeated_runs_nothing_is_beyond_chance() -> None:
    runs = {run.configuration: run for run in made_searches.runs() if run.seconds}
    found = contrasts.contrasts(list(runs.values()))
    assert found
    assert not any(each.beyond_noise for each in found)
    assert {each.bounds for each in found} == {None}


def test_values_with_two_dollar_signs_are_no_formula(tmp_path: Path) -> None:
    report = examined(tmp_path)
    of_variable = replace(report.contrasts[0], factor="DIR", before="$A{", after="$B")
    drawn = search_pictures.factors(replace(report, contrasts=[of_variable]))
    assert "DIR: $A{ to $B" in drawn


def test_settings_are_told_as_asked_and_as_observed(tmp_path: Path) -> None:
    text = page_of(examined(tmp_path))
    table = text[text.index('<section id="settings">') : text.index('<section id="provenance">')]
    assert "<td>cb_nodes</td>" in table
    assert '<td class="number">3</td>' in table  # runs of c02
    assert "<strong>not in force</strong>" in table


def test_a_killed_search_has_its_runs_and_the_ceiling_of_its_trace(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "job.trace", processes=1, ranks=1)
    made.mpi("write_at_all", 0, 600, MIB, collective=True)
    trace = made.trace().path
    digest = read_json(trace / "run.json")["checksum"]
    path = made_searches.history(tmp_path / "configure.sqlite", concluded=False)
    with sqlite3.connect(path) as database:
        where = json.dumps({"path": str(trace), "checksum": digest})
        database.execute("UPDATE search SET value = ? WHERE key = 'trace'", (where,))
    database.close()
    report = search.examine(stored.load(path))
    assert report.verdict == (
        "Nothing is claimed: the search was killed, and what it measured is below."
    )
    assert report.ceiling is not None
    assert report.ceiling.io_share == pytest.approx(0.6)
    text = page_of(report)
    assert "it was killed" in text
    assert text.count("<svg") == 2
    (trace / "run.json").unlink()
    assert "is not known" in search.examine(stored.load(path)).ceiling_words


def test_an_ending_of_fewer_runs_is_of_an_earlier_session(tmp_path: Path) -> None:
    path = made_searches.history(tmp_path / "configure.sqlite")
    history = made_searches.History(path, made_searches.search())
    history.add(SearchRun(11, "c01", made_searches.EIGHT, made_searches.Why.AGAIN, "2026"))
    history.close()
    found = stored.load(path)
    assert found.ending is None
    assert found.runs[-1].reason == "the search was killed"


def test_history_and_json_tell_the_same(tmp_path: Path) -> None:
    path = made_searches.history(tmp_path / "configure.sqlite")
    document = made_searches.ending() | {"runs": [run.as_json() for run in made_searches.runs()]}
    (tmp_path / "s.json").write_text(json.dumps(document))
    one, other = (search.examine(stored.load(p)).as_json() for p in (path, tmp_path / "s.json"))
    assert one | {"search": ""} == other | {"search": ""}


def test_little_io_is_told_without_a_run(tmp_path: Path) -> None:
    ceiling = {"io_share": 0.03, "best_speedup": 1.031}
    document = made_searches.ending(
        stopped="ceiling", best=None, ranking=[], configurations={}, ceiling=ceiling
    )
    (tmp_path / "s.json").write_text(json.dumps(document | {"runs": []}))
    report = search.examine(stored.load(tmp_path / "s.json"))
    assert report.verdict.startswith("Nothing is claimed: without any I/O")
    text = page_of(report)
    for sentence in ("I/O is 3 % of the time", "No run was made.", "do not tell factors apart"):
        assert sentence in text


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("UPDATE runs SET content = replace(content, '1.25', '0.25')", "the checksum of run 4"),
        ("UPDATE endings SET content = replace(content, '2.5', '9.5')", "the ending after run 10"),
        ("DROP TABLE runs", "cannot be read"),
        ("DELETE FROM search WHERE key = 'command'", "cannot be read"),
        ("UPDATE search SET value = '\"hours\"' WHERE key = 'time'", "damaged"),
        ("PRAGMA user_version = 2", "has version 2"),
        ("PRAGMA application_id = 7", "no search history"),
    ],
)
def test_a_damaged_history_is_refused_and_left_alone(
    tmp_path: Path, statement: str, complaint: str
) -> None:
    path = made_searches.history(tmp_path / "a search%20#1?.sqlite")
    with sqlite3.connect(path) as database:
        database.execute(statement)
    database.close()
    before = path.read_bytes()
    with pytest.raises(ForebayError, match=complaint):
        stored.load(path)
    assert path.read_bytes() == before


def test_a_search_that_goes_on_is_waited_for(tmp_path: Path) -> None:
    path = made_searches.history(tmp_path / "configure.sqlite")
    running = made_searches.History(path, made_searches.search())
    running.add(SearchRun(11, "c01", made_searches.EIGHT, made_searches.Why.AGAIN, "2026"))
    with pytest.raises(ForebayError, match="in use by another search"):
        stored.load(path)
    running.close()


VALUES = [None, "", "text", -1, 0.5, float("nan"), [], {}, ["x"]]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_changed_file_is_refused_or_reported(tmp_path: Path, value: object) -> None:
    whole = made_searches.ending() | {"runs": [run.as_json() for run in made_searches.runs()[:4]]}
    check_changed(
        tmp_path / "s.json", whole, value, stored.load, lambda it: search.examine(it).as_json()
    )


@pytest.mark.parametrize("source", [".", "configure.sqlite"])
def test_the_command_reports_a_search(forebay: Forebay, tmp_path: Path, source: str) -> None:
    made_searches.history(tmp_path / "configure.sqlite")
    evaluated(tmp_path, 0.4, {"cb_nodes": "2"})
    answer = forebay("report", source, "-o", "a page.html", "--json", "found.json")
    assert answer.code == 0, answer.errors
    assert "'best' is shown to be faster than 'default'." in answer.output
    assert "mattered: aggregators: left alone to 2: +5" in answer.output
    assert "c05: not in force: romio_cb_write: asked disable, observed enable" in answer.output
    found = read_json(tmp_path / "found.json")
    assert found["claimed"] is True
    assert found["runs"] == len(RUNS)
    assert "The search, run by run" in (tmp_path / "a page.html").read_text()
