"""Goal: the page of a campaign or a search is small however much was measured, has what matters
most, and says how much it leaves out and where that is.

Method: thousands of runs and configurations with long names, settings and complaints, all made up;
something as large as Vega in its place, so that pages have their charts.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import made_searches
import pytest
from made_campaigns import evaluation

from forebay.comparison import FileCheck
from forebay.configurations import Configuration
from forebay.configure import stored as stored_search
from forebay.configure.contrasts import Contrast
from forebay.configure.history import SearchRun, State, Why
from forebay.evaluate import stored
from forebay.evaluate.campaign import write_json
from forebay.evaluate.evaluation import Evaluation
from forebay.evaluate.in_force import Setting
from forebay.evaluate.in_force import State as Held
from forebay.report import campaign, campaign_page, rows, search, search_page, search_pictures
from forebay.report.templates import BYTES_MOST
from forebay.units import show_count

LONG = "<\u00e9" * 200
RUNS = 3000


@pytest.fixture(scope="module", autouse=True)
def vega(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The package has charts, by as large a script."""
    place = tmp_path_factory.mktemp("package")
    (place / "lib").mkdir()
    (place / "share").mkdir()
    (place / "share" / "vega.js").write_text("/" * 940_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOREBAY_LIBRARY_DIR", str(place / "lib"))
        yield


def campaign_of(found: Evaluation, directory: Path) -> campaign.Campaign:
    write_json(found.as_json(), directory / "e.json")
    return campaign.examine(directory / "e.json", stored.load(directory / "e.json"))


def large_evaluation(candidates: int, blocks: int) -> Evaluation:
    """The last candidate alone is faster; all have much to tell."""
    made = [
        Configuration(
            f"c{number:05d}{LONG}", description=LONG, hints={f"hint{LONG}": LONG},
            environment={f"V{place}": LONG for place in range(30)},
        )
        for number in range(candidates)
    ]  # fmt: skip
    found = evaluation([*((each, 0.0) for each in made[:-1]), (made[-1], 0.5)], blocks)
    for each in made:
        found.settings[each.name] = [Setting("cb_nodes", LONG, (LONG,), Held.IN_FORCE)] * 20
        found.files[each.name] = [
            FileCheck(f"/scratch/{LONG}{place}", 1, "a", "a", identical=True) for place in range(30)
        ]
    held = found.settings[made[0].name]
    found.settings[made[0].name] = [*held, Setting("late", "8", ("1",), Held.NOT_IN_FORCE)]
    found.notes = [f"a note {LONG}"] * 100
    found.environment = {f"key{number}": LONG for number in range(500)}
    return found


def pictured(text: str, which: int) -> int:
    """Points of a picture, each a <use> of its marker, and marks of the axes."""
    return len(re.findall("<use", re.findall(r"<svg.*?</svg>", text, re.DOTALL)[which]))


@pytest.mark.parametrize(("candidates", "blocks"), [(1, RUNS), (200, 4), (30, 100)])
def test_the_page_of_a_large_campaign_is_small(
    tmp_path: Path, candidates: int, blocks: int
) -> None:
    report = campaign_of(large_evaluation(candidates, blocks), tmp_path)
    campaign_page.write(report, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert len(text.encode()) < BYTES_MOST
    table = text[text.index("All runs as a table") : text.index("</details>")]
    assert 100 < table.count("<tr>") <= 1 + rows.RUNS_MOST
    left_out = (1 + candidates) * blocks - (table.count("<tr>") - 1)
    assert f"{show_count(left_out)} more are left out" in " ".join(text.split())
    assert f"c{candidates - 1:05d}" in text  # the one that is faster
    assert f"left out, see {tmp_path}/e.json" in " ".join(text.split())


def test_blocks_stay_whole_and_settings_that_did_not_hold_stay(tmp_path: Path) -> None:
    report = campaign_of(large_evaluation(20, 100), tmp_path)
    text = campaign_page.render(report)
    table = text[text.index("All runs as a table") : text.index("</details>")]
    blocks = re.findall(r'<tr><td class="number">(\d+)</td>', table)
    assert {blocks.count(block) for block in blocks} == {21}
    assert {blocks[0], blocks[-1]} == {"1", "100"}
    assert "<strong>not in force</strong>" in text


def test_all_of_a_small_campaign_is_shown(tmp_path: Path) -> None:
    text = campaign_page.render(campaign_of(evaluation(blocks=60), tmp_path))
    assert "left out" not in text
    assert pictured(text, 0) >= 120


def large_search(directory: Path) -> search.SearchReport:
    """Runs that take less and less time until the middle, half of those after it without a time."""
    made = []
    for number in range(1, RUNS + 1):
        settings = {"aggregators": str(number % 100), "variable": LONG}
        seconds = 100.0 - number / 100 if number <= RUNS // 2 else 200.0 + number
        run = SearchRun(
            number, f"c{number % 100:05d}{LONG}", settings, Why.SEARCH, "2026", seconds + 1,
            seconds=seconds, state=State.MEASURED,
        )  # fmt: skip
        run.observed = [asdict(Setting("cb_nodes", LONG, (LONG,), Held.IN_FORCE))]
        if number > RUNS // 2 and number % 2:
            run.state, run.seconds, run.reason = State.FAILED, None, LONG
        made.append(run.as_json())
    told = made_searches.ending(
        best=made[0]["configuration"],
        configurations={},
        constraints=[LONG] * 200,
        notes=[LONG] * 200,
        left_out=[
            {"factor": LONG, "value": str(number), "reason": f"{number} {LONG}"}
            for number in range(200)
        ],
        ranking=[
            {"configuration": f"{number}{LONG}", "seconds": 1, "low": 1, "high": 1, "runs": 1}
            for number in range(500)
        ],
    )  # fmt: skip
    (directory / "s.json").write_text(json.dumps(told | {"runs": made}))
    report = search.examine(stored_search.load(directory / "s.json"))
    pairs = [(f"a{place}{LONG}", f"b{LONG}") for place in range(500)]
    contrast = Contrast("aggregators", LONG, None, pairs, [math.log1p(0.001)] * 500, 0.1)
    return replace(
        report,
        contrasts=[contrast] * 50,
        caveats=[LONG] * 100,
        evaluations=[campaign_of(large_evaluation(30, 20), directory)],
    )


def test_the_page_of_a_large_search_is_small_and_has_the_fastest_runs(tmp_path: Path) -> None:
    report = large_search(tmp_path)
    search_page.write(report, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert len(text.encode()) < BYTES_MOST
    begin = text.index("Every run in order")
    table = text[begin : text.index("</details>", begin)]
    numbers = [int(each) for each in re.findall(r'<tr><td class="number">(\d+)</td>', table)]
    assert numbers == list(range(RUNS // 2 - rows.RUNS_MOST + 1, RUNS // 2 + 1))
    told = " ".join(text.split())
    for words in (
        f"{show_count(RUNS - rows.RUNS_MOST)} more are left out",
        f"left out, see {tmp_path}/s.json",
        "36 more are smaller and left out, see --json",
    ):
        assert words in told


def test_the_reference_is_on_the_axis_also_where_no_run_of_it_is_shown(tmp_path: Path) -> None:
    report = large_search(tmp_path)
    slow = replace(report.found.runs[-1], configuration="default", seconds=5000.0, number=RUNS + 1)
    slow.state = State.MEASURED
    report = replace(report, found=replace(report.found, runs=[*report.found.runs, slow]))
    shown = search_pictures.shown_runs(report).shown
    assert slow not in shown
    (low, high), by_factors = search_pictures.time_scale(report, shown)
    assert by_factors
    assert low < 86 < 5000 < high


def test_runs_that_were_the_fastest_until_then_stay(tmp_path: Path) -> None:
    """The first two are slow, and all later ones like each other."""
    made = [
        SearchRun(
            number, f"c{number}", {}, Why.SEARCH, "2026", None,
            seconds=(9.0, 8.0, *[1.0] * 400)[number - 1], state=State.MEASURED,
        )
        for number in range(1, 403)
    ]  # fmt: skip
    document = made_searches.ending() | {"runs": [run.as_json() for run in made]}
    (tmp_path / "s.json").write_text(json.dumps(document))
    report = search.examine(stored_search.load(tmp_path / "s.json"))
    shown = search_pictures.shown_runs(report)
    assert [run.number for run in shown.shown] == list(range(1, rows.RUNS_MOST + 1))
    assert shown.left_out == 402 - rows.RUNS_MOST


def test_rows_are_kept_in_their_order() -> None:
    assert rows.most_important([5, 1, 4, 2], 2, lambda each: each) == rows.Rows([1, 2], 2)
    assert rows.evenly(list(range(101)), 3) == rows.Rows([0, 50, 100], 98)
    assert rows.evenly([1, 2], 3) == rows.Rows([1, 2], 0)
    assert rows.clipped("abcdef", 4) == "abcd\u2026 (2 more characters)"
    assert rows.clipped("<\u00e9\u00e9", 6) == "<\u00e9\u2026 (1 more characters)"
