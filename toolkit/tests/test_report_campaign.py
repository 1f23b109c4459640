"""Goal: the report of an evaluation says what that showed and no more: the lines to copy only of
what is faster, every run, settings asked and observed.

Method: results that are made up and known, as `evaluate --json` writes them; the command; files
that were changed at random.
"""

import json
import re
from pathlib import Path

import pytest
from changed_documents import check_changed
from conftest import Forebay, read_json
from made_campaigns import BEST, NASTY, evaluation

from forebay.comparison import Failure
from forebay.configurations import Configuration
from forebay.errors import ForebayError
from forebay.evaluate import stored
from forebay.evaluate.campaign import write_json
from forebay.evaluate.evaluation import Evaluation
from forebay.evaluate.in_force import Setting, State
from forebay.report import campaign, campaign_page, campaign_pictures
from forebay.report.campaign import Campaign
from forebay.report.templates import BYTES_MOST

SECTIONS = ["verdict", "differences", "runs", "settings", "background", "provenance"]


def examined(directory: Path, found: Evaluation) -> Campaign:
    path = directory / "e.json"
    write_json(found.as_json(), path)
    return campaign.examine(path, stored.load(path))


def page_of(directory: Path, found: Evaluation) -> str:
    return " ".join(campaign_page.render(examined(directory, found)).split())


def test_what_was_written_is_what_is_read(tmp_path: Path) -> None:
    found = evaluation()
    write_json(found.as_json(), tmp_path / "e.json")
    again = stored.load(tmp_path / "e.json")
    assert again.as_json() == found.as_json()


def test_what_is_faster_by_most_has_the_lines_to_copy(tmp_path: Path) -> None:
    slight = Configuration("slight", hints={"cb_nodes": "2"})
    report = examined(tmp_path, evaluation([(slight, 0.15), (BEST, 0.4)]))
    assert report.best == "best"
    assert report.summary == (
        "'best' is shown to be faster than 'default', and of all that are, by most."
    )
    assert report.application is not None
    assert "export FOREBAY_HINTS=cb_nodes=8" in report.application.lines
    assert report.application.use == ["forebay run -- COMMAND"]
    taken_back = "\n".join(report.application.undo)
    assert all(f"unset {key};" in taken_back for key in ("WAY", "FOREBAY_HINTS", "FOREBAY_INTENT"))


def test_without_a_gain_there_is_nothing_to_copy(tmp_path: Path) -> None:
    report = examined(tmp_path, evaluation([(BEST, 0.0)]))
    assert (report.best, report.application) == (None, None)
    assert report.summary == "No configuration is shown to be faster than 'default': keep it."
    text = " ".join(campaign_page.render(report).split())
    assert "No line to copy: no configuration is shown to be faster." in text
    assert "forebay run" not in text


def test_the_page_has_every_section_and_every_run(tmp_path: Path) -> None:
    found = evaluation()
    text = page_of(tmp_path, found)
    assert re.findall(r'<section id="(\w+)">', text) == SECTIONS
    assert "best: improved, +3" in text
    assert "same: no detectable gain over default" in text
    assert text.count("<svg") == 2
    table = text[text.index("All runs as a table") : text.index("</details>")]
    assert table.count("<tr>") == 1 + len(found.runs)
    assert "hint not understood: &lt;b&gt;" in text
    assert "as the reference leaves it" in text
    assert "path = &#34;*.h5&#34;" in text


def test_a_point_of_the_picture_is_a_run_or_a_block(tmp_path: Path) -> None:
    """matplotlib draws a point as a <use> of its marker."""
    found = evaluation(blocks=9)
    differences, runs = re.findall(r"<svg.*?</svg>", page_of(tmp_path, found))
    ticks = 40
    assert 2 * 9 <= len(re.findall("<use", differences)) <= 2 * 9 + ticks
    assert 3 * 9 <= len(re.findall("<use", runs)) <= 3 * 9 + ticks


def test_the_page_needs_nothing_else_and_is_small(tmp_path: Path) -> None:
    text = page_of(tmp_path, evaluation(blocks=60))
    assert len(text) < BYTES_MOST / 4
    assert "<script" not in text
    assert "alert(1)" in text
    assert NASTY not in text
    assert all(place.startswith("data:") for place in re.findall(r'(?:src|href)="([^"#]*)"', text))


def test_settings_that_did_not_hold_are_named(tmp_path: Path) -> None:
    found = evaluation([(BEST, 0.3)])
    found.settings["best"] = [Setting("cb_nodes", "8", ("1", "2"), State.NOT_IN_FORCE)]
    report = examined(tmp_path, found)
    assert report.sentences == {"best": "best: setting did not take effect"}
    assert report.application is None
    text = " ".join(campaign_page.render(report).split())
    assert "<li>best: cb_nodes: asked 8, observed 1, 2</li>" in text
    assert "<strong>not in force</strong>" in text


def test_a_command_that_failed_is_named_with_its_last_words(tmp_path: Path) -> None:
    found = evaluation([(BEST, 0.3)], blocks=0)
    found.failure = Failure("best", 3, "ended with exit status 3", False, "no <input>", "")
    text = page_of(tmp_path, found)
    assert "The command ended with exit status 3 in configuration &#39;best&#39;." in text
    assert "no &lt;input&gt;" in text
    for sentence in ("Nothing is judged.", "No two runs were paired.", "There are no timed runs.",
                     "What else the machine did is not known."):  # fmt: skip
        assert sentence in text


def test_what_stopped_a_campaign_stands_beside_the_verdict(tmp_path: Path) -> None:
    found = evaluation(blocks=3)
    found.interrupted = True
    found.broken_off = "the disk is full. Make room."
    text = page_of(tmp_path, found)
    assert "interrupted: the verdicts are of what there was so far" in text
    assert "broken off: the disk is full. Make room." in text
    assert "too noisy" in text
    assert "shown to be faster than &#39;default&#39;, but not all is decided" in text


def test_widely_scattered_runs_have_readable_marks(tmp_path: Path) -> None:
    """No two words of the axis overlap where one run took forty times as long as another."""
    found = evaluation([(BEST, 0.3)])
    for ratio in (2.5, -1.2):
        found.tests["best"].add(ratio)
    picture = re.findall(r"<svg.*?</svg>", page_of(tmp_path, found))[0]
    marks = [float(mark) for mark in re.findall(r">([+-]?[0-9.]+) %</text>", picture)]
    assert marks == [-50, 0, 100, 400, 900]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "no JSON"),
        ("[]", "no result of an evaluation"),
        ('{"version": 1, "pairs": []}', "no result of an evaluation"),
        ('{"version": 2, "verdicts": {}, "log_ratios": {}, "runs": []}', "version 2"),
        ('{"version": 1, "verdicts": {}, "log_ratios": {}, "runs": []}', "damaged"),
    ],
)
def test_what_is_no_campaign_is_told(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "e.json"
    path.write_text(content)
    with pytest.raises(ForebayError, match=complaint):
        stored.load(path)


WHOLE = json.loads(json.dumps(evaluation(blocks=2).as_json()))


VALUES = [None, "", "text", -1, 3, 0.5, float("nan"), [], {}, ["x"], True]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_changed_file_is_refused_or_reported(tmp_path: Path, value: object) -> None:
    path = tmp_path / "e.json"
    check_changed(path, WHOLE, value, stored.load, lambda it: campaign.examine(path, it).as_json())


def test_the_command_reports_a_campaign(forebay: Forebay, tmp_path: Path) -> None:
    write_json(evaluation().as_json(), tmp_path / "my e.json")
    answer = forebay("report", "my e.json", "-o", "a page.html", "--json", "found.json")
    assert answer.code == 0, answer.errors
    assert "'best' is shown to be faster than 'default'." in answer.output
    assert "export FOREBAY_HINTS=cb_nodes=8" in answer.output
    found = read_json(tmp_path / "found.json")
    assert found["best"] == "best"
    assert found["verdicts"]["best"] in answer.output
    assert "Every run" in (tmp_path / "a page.html").read_text()


@pytest.mark.parametrize("option", ["--json", "-o"])
def test_a_campaign_is_not_replaced_by_its_report(
    forebay: Forebay, tmp_path: Path, option: str
) -> None:
    campaign = tmp_path / "e.json"
    campaign.write_text("precious")
    answer = forebay("report", "e.json", option, "./e.json")
    assert answer.code == 2
    assert "is what is to be read" in answer.errors
    assert campaign.read_text() == "precious"


def test_limits_are_for_runs_alone(forebay: Forebay, tmp_path: Path) -> None:
    write_json(evaluation().as_json(), tmp_path / "e.json")
    answer = forebay("report", "e.json", "--system", "e.json")
    assert answer.code == 2
    assert "--system is for the report of a run" in answer.errors


def test_a_bound_as_low_as_none_is_none() -> None:
    assert campaign_pictures.log_gain(None) is None
    assert campaign_pictures.log_gain(-1.0) is None
    assert campaign_pictures.log_gain(0.0) == 0
