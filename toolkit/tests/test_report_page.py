"""Goal: the page of a report reads anywhere: in light and in dark, with no script and no network.

Method: the page of a run that has something in every section, as text and in Chromium; the command.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import made_searches
import pytest
from conftest import TIMEOUT_S, Forebay, read_json
from made_campaigns import evaluation
from made_runs import MIB, MadeRun
from test_darshan_import import EXAMPLES
from test_report_campaign import SECTIONS as OF_A_CAMPAIGN
from test_report_search import SECTIONS as OF_A_SEARCH

from forebay import system_file
from forebay.configure import stored as stored_search
from forebay.evaluate import stored
from forebay.evaluate.campaign import write_json
from forebay.report import campaign, campaign_page, contents, page, search, search_page
from forebay.report.templates import BYTES_MOST

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SECTIONS = [
    "verdict",
    "budget",
    "limits",
    "phases",
    "offsets",
    "funnel",
    "findings",
    "settings",
    "provenance",
]
SYSTEM = Path(__file__).with_name("reports") / "system.json"
NASTY = "/scratch/<script>alert(1)</script> & 'data'"


def full_run(path: Path) -> MadeRun:
    """Four ranks write through MPI-IO with amplification, and read."""
    run = MadeRun(path, ranks=4, processes=4, wall_ms=2000, files=[NASTY, "/scratch/in"])
    for rank in range(4):
        run.posix("open", 5, 20, process=rank, file=1, argument=0)
        for turn in range(6):
            start = 100 + 300 * turn + 5 * rank
            run.mpi(
                "write_at_all", start, 150, MIB, process=rank, collective=True, opening=0, hints=1
            )
            place = (turn * 4 + rank) * 4 * MIB
            run.posix("pread", start + 5, 40, 2 * MIB, process=rank, within="mpi", offset=place)
            run.posix("pwrite", start + 50, 60, 2 * MIB, process=rank, within="mpi", offset=place)
            run.posix("pread", start + 200, 30, MIB, process=rank, file=1, offset=rank * MIB)
    for turn in range(12):
        run.posix("stat", 30 + turn, 0.1, file=1)
    run.hints = [{"cb_nodes": "8", "note": NASTY}, {"cb_nodes": "8", "note": NASTY}]
    run.openings = [{"hints_asked": 0}]
    run.run = {
        "overhead": {"ns_per_call": 31.0, "calls": 76, "share_of_wall": 0.0012},
        "mpi": {"name": "mpich", "version": "4.0.2"},
        "environment": {"ROMIO_HINTS": "<none>"},
    }
    return run


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("page")
    found = contents.examine(full_run(directory / "run").trace(), system_file.load(SYSTEM))
    page.write(found, directory / "report.html")
    return directory / "report.html"


def test_every_section_is_there_in_its_order(written: Path) -> None:
    text = written.read_text()
    assert re.findall(r'<section id="(\w+)">', text) == SECTIONS
    assert text.count("<svg") == 2
    assert "forebay compare -- mpiexec -n 4 &#39;./a b&#39;" in text
    assert "Amplification" in text
    assert "a cache effect" in text
    assert "stat, 12 times" in text
    assert "40 000/s" in text


def test_the_page_needs_nothing_else(written: Path) -> None:
    text = written.read_text()
    assert written.stat().st_size < BYTES_MOST / 4
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text
    loaded = re.findall(r'(?:src|href)="([^"#]*)"', text)
    assert all(place.startswith("data:") for place in loaded)
    assert "@import" not in text


def test_what_a_run_has_no_data_for_is_said(tmp_path: Path) -> None:
    text = page.render(contents.examine(MadeRun(tmp_path / "run").trace()))
    assert re.findall(r'<section id="(\w+)">', text) == SECTIONS
    for sentence in (
        "there is nothing to judge",
        "The trace holds neither calls nor counters",
        "give a system file by",
        "nothing is known of when they were",
        "does not tell which places",
        "Nothing in the trace reads or writes a file",
        "None: there is no I/O in the trace",
    ):
        assert sentence in text


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of an evaluation."""
    directory = tmp_path_factory.mktemp("campaign")
    write_json(evaluation().as_json(), directory / "e.json")
    found = campaign.examine(directory / "e.json", stored.load(directory / "e.json"))
    campaign_page.write(found, directory / "report.html")
    return directory / "report.html"


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a search."""
    directory = tmp_path_factory.mktemp("search")
    history = made_searches.history(directory / "configure.sqlite")
    search_page.write(search.examine(stored_search.load(history)), directory / "report.html")
    return directory / "report.html"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    ("of", "sections"),
    [("written", SECTIONS), ("evaluated", OF_A_CAMPAIGN), ("searched", OF_A_SEARCH)],
)
def test_chromium_shows_it_in_both_themes(
    browser: "Browser", request: pytest.FixtureRequest, of: str, sections: list[str], theme: str
) -> None:
    page_file: Path = request.getfixturevalue(of)
    scheme: Literal["light", "dark"] = "dark" if theme == "dark" else "light"
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1000, "height": 800})
    shown = context.new_page()
    told: list[str] = []
    asked: list[str] = []
    shown.on("console", lambda message: told.append(message.text))
    shown.on("pageerror", lambda error: told.append(str(error)))
    shown.on("request", lambda request: asked.append(request.url))
    shown.goto(page_file.as_uri())
    for section in sections:
        place = shown.locator(f"section#{section}")
        assert place.is_visible()
        box = place.bounding_box()
        assert box is not None
        assert box["height"] > 40
    assert told == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    text, ground = (
        brightness(shown.evaluate(f"getComputedStyle(document.body).{name}"))
        for name in ("color", "backgroundColor")
    )
    assert (text < ground) == (theme == "light")
    assert abs(text - ground) > 150
    pictures = shown.evaluate(PICTURES)
    assert len(pictures) == shown.locator("svg").count() >= 2
    for picture in pictures:
        assert picture["width"] > 400
        assert picture["height"] > 80
        check_words(picture, text)
    assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()


# Of each picture its size, and its words with their boxes: left, top, right, bottom.
PICTURES = """() => [...document.querySelectorAll("figure svg")].map(picture => {
  const frame = picture.getBoundingClientRect();
  const words = [...picture.querySelectorAll("text")].map(word => {
    const box = word.getBoundingClientRect();
    return {
      word: word.textContent, colour: getComputedStyle(word).fill,
      box: [box.left - frame.left, box.top - frame.top, box.right - frame.left,
            box.bottom - frame.top],
    };
  });
  return {width: frame.width, height: frame.height, words};
})"""
SLACK = 3.0  # pixels: letters do not fill their boxes


def check_words(picture: dict[str, Any], text: float) -> None:
    """A picture's words have the colour of the text around it, are inside it, and none lies over
    another."""
    assert len(picture["words"]) > 4
    for place, one in enumerate(picture["words"]):
        left, top, right, bottom = one["box"]
        assert brightness(one["colour"]) == text, one
        assert -SLACK <= left < right <= picture["width"] + SLACK, one
        assert -SLACK <= top < bottom <= picture["height"] + SLACK, one
        for other in picture["words"][:place]:
            other_left, other_top, other_right, other_bottom = other["box"]
            apart = max(left, other_left) + SLACK >= min(right, other_right)
            apart |= max(top, other_top) + SLACK >= min(bottom, other_bottom)
            assert apart, (one, other)


def brightness(colour: str) -> float:
    """Of `rgb(r, g, b)`, from 0 to 255."""
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3


def test_the_command_writes_the_page_and_says_the_same(forebay: Forebay, tmp_path: Path) -> None:
    full_run(tmp_path / "my run").trace()
    answer = forebay(
        "report", "my run", "-o", "a page.html", "--json", "found.json", "--system", SYSTEM
    )
    assert answer.code == 0, answer.errors
    found = read_json(tmp_path / "found.json")
    assert found["verdict"] in answer.output
    assert "1. Amplification" in answer.output
    assert re.search(r"metadata.*stat, 12 times.*40 000/s.*10 000/s.*25 %", answer.output)
    assert "hints that the program gave: 2 not recorded" in answer.output
    assert found["findings"][0]["key"] == "amplification"
    assert [each["key"] for each in found["settings"]] == ["cb_nodes", "note"]
    assert "Amplification" in (tmp_path / "a page.html").read_text()


def test_a_run_is_not_replaced_by_what_is_made_of_it(forebay: Forebay, tmp_path: Path) -> None:
    full_run(tmp_path / "run").trace()
    before = (tmp_path / "run" / "run.json").read_bytes()
    for words, told in (
        (["report", "run", "-o", "run/run.json"], "is what is to be read"),
        (["report", "run", "--json", "run/posix.parquet"], "is what is to be read"),
        (["export", "run", "--perfetto", "run/run.json"], "is what is to be read"),
        (["report", "run", "-o", "one", "--json", "./one"], "would be written twice"),
    ):
        answer = forebay(*words)
        assert answer.code == 2
        assert told in answer.errors
    assert (tmp_path / "run" / "run.json").read_bytes() == before
    for _ in range(2):  # A page stands beside what it is made of, and is made again.
        assert forebay("report", "run", "-o", "run/report.html").code == 0


def test_what_is_written_is_there_where_nothing_can_be_shown(
    environ: dict[str, str], tmp_path: Path
) -> None:
    """As in `| head -1`, or after the terminal was closed."""
    full_run(tmp_path / "run").trace()
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "forebay", "report", "run", "--json", "j.json"],
            cwd=tmp_path, env=environ, stdout=full, stderr=subprocess.PIPE, timeout=TIMEOUT_S,
            check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "</html>" in (tmp_path / "report.html").read_text()
    assert read_json(tmp_path / "j.json")["verdict"]


def test_a_report_of_an_imported_log(forebay: Forebay, tmp_path: Path) -> None:
    log = EXAMPLES / "dxt.darshan"
    assert forebay("import", log, "-o", "job").code == 0
    answer = forebay("report", "job")
    assert answer.code == 0, answer.errors
    text = " ".join((tmp_path / "report.html").read_text().split())
    assert "sums over processes and files" in text


def test_what_is_no_trace_is_told(forebay: Forebay, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    answer = forebay("report", "nothing")
    assert answer.code == 2
    assert "run.json" in answer.errors
    assert not (tmp_path / "report.html").exists()


def test_what_tracing_took_of_a_killed_run_is_said_to_be_unknown(tmp_path: Path) -> None:
    run = full_run(tmp_path / "run")
    run.run |= {"overhead": {"ns_per_call": None, "calls": 76, "share_of_wall": None}}
    page.write(contents.examine(run.trace()), tmp_path / "report.html")
    assert "an unknown part of the run's time" in (tmp_path / "report.html").read_text()
