"""Goal: with JavaScript the pictures of a report are charts that answer the pointer, in light and
in dark; without it, where a chart fails and in print they are the pictures that they were.

Method: pages with Vega, as `make build` leaves it, in Chromium: of a run, an evaluation and a
search whose names are hostile; and cells of which everything is known.
"""

import base64
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import made_searches
import numpy as np
import pytest
from conftest import TIMEOUT_S
from made_campaigns import NASTY, evaluation
from made_runs import MIB, MadeRun

from forebay.configurations import Configuration
from forebay.configure import stored as stored_search
from forebay.evaluate import stored
from forebay.evaluate.campaign import write_json
from forebay.report import campaign, campaign_page, charts, contents, page, search, search_page
from forebay.report.grids import OFFSET_CELLS, ROWS_MOST, TIME_CELLS, OffsetTime, RankTime
from forebay.report.templates import BYTES_MOST

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FloatRect, Page

REPOSITORY = Path(__file__).resolve().parents[2]
REAL_LIBRARY = Path(os.environ.get("FOREBAY_LIBRARY_DIR", REPOSITORY / "build" / "lib"))
VEGA = REAL_LIBRARY.parent / "share" / "vega.js"

pytestmark = pytest.mark.skipif(not VEGA.is_file(), reason=f"no {VEGA} (make build)")

# What a script element, an attribute, an expression of Vega or a path to a field would end at.
HOSTILE = "</script><script>alert(1)</script><!-- ]['\"`${1} \\ \u2028 " + NASTY


@pytest.fixture(scope="module", autouse=True)
def vega() -> Iterator[None]:
    """As in a package that was built with it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOREBAY_LIBRARY_DIR", str(REAL_LIBRARY))
        yield


def charts_of(text: str) -> list[dict[str, Any]]:
    found = re.findall(f"{re.escape(charts.MARK)}(.*?)</script>", text)
    return [json.loads(each) for each in found]


def of_a_run(path: Path) -> contents.Contents:
    """Four ranks that read and write a file in turn."""
    run = MadeRun(path, ranks=4, processes=4, wall_ms=1000, files=[f"/scratch/{HOSTILE}"])
    for rank in range(4):
        for turn in range(8):
            place = (turn * 4 + rank) * MIB
            call = "pwrite" if turn % 2 else "pread"
            start = 50 + 110 * turn + 10 * rank
            run.posix(call, start, 60, MIB, process=rank, file=0, offset=place)
    return contents.examine(run.trace())


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each kind."""
    directory = tmp_path_factory.mktemp("charts")
    found = {name: directory / f"{name}.html" for name in ("run", "campaign", "search")}
    page.write(of_a_run(directory / "run"), found["run"])
    named = Configuration(HOSTILE, hints={"cb_nodes": "8"})
    made = evaluation([(named, 0.3), (Configuration("$x$"), 0.02)], blocks=9)
    made.settings = {}
    write_json(made.as_json(), directory / "e.json")
    evaluated = campaign.examine(directory / "e.json", stored.load(directory / "e.json"))
    campaign_page.write(evaluated, found["campaign"])
    history = made_searches.history(directory / "configure.sqlite")
    searched = search.examine(stored_search.load(history))
    search_page.write(replace(searched, evaluations=[evaluated]), found["search"])
    return found


FIGURES = {"run": 2, "campaign": 2, "search": 3}


def opened(browser: "Browser", file: Path, told: list[str], **context: Any) -> "Page":  # noqa: ANN401
    """The page in a window of its own; what it says and asks for is in `told`."""
    size = {"width": 1000, "height": 900}
    shown = browser.new_context(viewport=size, **context).new_page()  # type: ignore[arg-type]
    shown.on("console", lambda message: told.append(message.text))
    shown.on("pageerror", lambda error: told.append(str(error)))
    shown.on(
        "request",
        lambda request: (
            None if request.url.startswith(("file:", "data:")) else told.append(request.url)
        ),
    )
    shown.goto(file.as_uri())
    return shown


def wait_for_charts(shown: "Page", theme: str) -> None:
    for number in range(shown.locator("figure").count()):
        figure = shown.locator(f'figure[data-drawn^="{theme} "]').nth(number)
        figure.locator("canvas").wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("of", FIGURES)
def test_each_picture_is_a_chart(
    browser: "Browser", pages: dict[str, Path], of: str, theme: str
) -> None:
    told: list[str] = []
    shown = opened(browser, pages[of], told, color_scheme=theme)
    wait_for_charts(shown, theme)
    assert shown.locator("figure").count() == FIGURES[of]
    for number in range(FIGURES[of]):
        figure = shown.locator("figure").nth(number)
        assert figure.locator("> svg").is_hidden()
        inside, outside = figure.locator("canvas").bounding_box(), figure.bounding_box()
        assert inside is not None
        assert outside is not None
        assert inside["width"] <= outside["width"] + 1
        assert inside["width"] > 0.9 * outside["width"]
        assert inside["height"] > 60
    assert told == []
    shown.context.close()


@pytest.mark.parametrize(
    ("of", "which", "across", "down", "lines"),
    [
        ("run", 0, 0.5, 0.1, ["time .* ms to .* ms", "read .* B/s", "write .*iB/s"]),
        ("run", 0, 0.5, 0.5, ["rank 1", "time .* ms to .* ms", "(read|write) .* %"]),
        (
            "run",
            1,
            0.5,
            0.44,
            [r"offset 1.*\.\d MiB to 1.*\.\d MiB", "time .* ms", "(read|write) .*iB"],
        ),
        ("campaign", 0, 0.75, 0.25, ["configuration </script>.*", "(block \\d|estimate) .*"]),
        (
            "campaign",
            1,
            0.5,
            0.4,
            ["run 1.", "block .", "configuration .*", "write .* s", "cores busy"],
        ),
        ("search", 1, 0.5, 0.4, ["run [56]", "configuration c0.", "settings .*", "for search"]),
    ],
)
def test_the_pointer_is_told_what_is_below_it(
    browser: "Browser",
    pages: dict[str, Path],
    of: str,
    which: int,
    across: float,
    down: float,
    lines: list[str],
) -> None:
    told: list[str] = []
    shown = opened(browser, pages[of], told)
    wait_for_charts(shown, "light")
    box = in_sight(shown, which)
    tip = shown.locator(".vg-tooltip.visible")
    for place in range(int(across * box["width"]), int(box["width"]) - 20, 2):
        shown.mouse.move(box["x"] + place, box["y"] + down * box["height"])
        if tip.count():
            break
    found = tip.inner_text(timeout=5000).splitlines()
    for line in lines:
        assert any(re.match(line, each) for each in found), found
    assert told == []
    shown.context.close()


def in_sight(shown: "Page", which: int) -> "FloatRect":
    """Where in the window a chart is, once it is scrolled to."""
    canvas = shown.locator("figure canvas").nth(which)
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    return box


def test_the_wheel_zooms_with_ctrl_alone(browser: "Browser", pages: dict[str, Path]) -> None:
    told: list[str] = []
    shown = opened(browser, pages["run"], told)
    wait_for_charts(shown, "light")
    box = in_sight(shown, 0)
    tip = shown.locator(".vg-tooltip.visible")

    def begin_ms() -> float:
        """Of what is told near the left end of the rates."""
        shown.mouse.move(box["x"] + 120, box["y"] + 50)
        return float(re.findall(r"time ([\d.]+) ms", tip.inner_text(timeout=5000))[0])

    before = begin_ms()
    assert 0 < before < 100
    shown.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.6 * box["height"])
    scrolled = shown.evaluate("scrollY")
    shown.keyboard.down("Control")
    for _ in range(5):
        shown.mouse.wheel(0, -100)
    shown.keyboard.up("Control")
    tip.wait_for(state="hidden", timeout=5000)
    assert begin_ms() > before + 100
    assert shown.evaluate("scrollY") == scrolled
    shown.mouse.wheel(0, -100)
    # The page's policy would have none of wait_for_function, which evaluates text in the page.
    shown.evaluate(
        """before => new Promise(done => {
          const look = () => (scrollY < before ? done() : requestAnimationFrame(look));
          look();
        })""",
        scrolled,
    )
    assert told == []
    shown.context.close()


def test_a_chart_follows_the_theme_and_the_window(
    browser: "Browser", pages: dict[str, Path]
) -> None:
    told: list[str] = []
    shown = opened(browser, pages["campaign"], told, color_scheme="light")
    wait_for_charts(shown, "light")
    shown.emulate_media(color_scheme="dark")
    wait_for_charts(shown, "dark")
    shown.set_viewport_size({"width": 600, "height": 900})
    shown.locator('figure[data-drawn="dark 568"]').first.wait_for()
    wait_for_charts(shown, "dark")
    assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert shown.locator("canvas").count() == FIGURES["campaign"]
    assert told == []
    shown.emulate_media(media="print")
    assert shown.locator("figure > svg").first.is_visible()
    assert shown.locator("canvas").first.is_hidden()
    shown.context.close()


@pytest.mark.parametrize("of", FIGURES)
def test_without_javascript_there_are_the_pictures(
    browser: "Browser", pages: dict[str, Path], of: str
) -> None:
    told: list[str] = []
    shown = opened(browser, pages[of], told, java_script_enabled=False)
    pictures = shown.locator("figure > svg")
    assert pictures.count() == FIGURES[of]
    assert all(pictures.nth(number).is_visible() for number in range(FIGURES[of]))
    assert shown.locator("canvas").count() == 0
    assert told == []
    shown.context.close()


def test_a_picture_stays_where_its_chart_fails(
    browser: "Browser", pages: dict[str, Path], tmp_path: Path
) -> None:
    text = pages["run"].read_text()
    assert text.count('"vconcat":') >= 1
    (tmp_path / "page.html").write_text(text.replace('"vconcat":', '"nothing":', 1))
    told: list[str] = []
    shown = opened(browser, tmp_path / "page.html", told)
    shown.locator("figure canvas").wait_for()
    assert shown.locator("figure > svg").first.is_visible()
    assert shown.locator("canvas").count() == 1
    assert len(told) == 1
    assert told[0].startswith("A picture stays as it is: ")
    shown.context.close()


class Scripts(HTMLParser):
    """The kind of each script element, and what the page allows to run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.kinds: list[str | None] = []
        self.policy = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag == "script":
            self.kinds.append(known.get("type"))
        if known.get("http-equiv") == "Content-Security-Policy":
            self.policy += known["content"] or ""


@pytest.mark.parametrize("of", FIGURES)
def test_nothing_but_the_two_scripts_may_run(pages: dict[str, Path], of: str) -> None:
    text = pages[of].read_text()
    found = Scripts(text)
    assert found.kinds == ["application/json"] * FIGURES[of] + [None, None]
    assert re.findall("script-src ([^;]*)", found.policy)[0].count("'sha256-") == 2
    assert "unsafe-eval" not in found.policy
    assert found.policy.startswith("default-src 'none'; ")
    assert HOSTILE not in text
    told = charts_of(text)
    assert len(told) == FIGURES[of]
    assert of != "campaign" or told[0]["data"]["names"]["name"] == [HOSTILE, "$x$"]


def test_a_page_is_small_however_much_is_in_its_cells(tmp_path: Path) -> None:
    """No cell like its neighbour, in as many rows as there can be."""
    generator = np.random.default_rng(3)
    shares = generator.uniform(0, 0.25, (4, ROWS_MOST, TIME_CELLS))
    rates = generator.uniform(0, 1e10, (2, TIME_CELLS))
    amount = generator.uniform(0, 1e12, (2, OFFSET_CELLS, TIME_CELLS))
    full = replace(
        of_a_run(tmp_path / "run"),
        ranks=RankTime(shares, 8, 8 * ROWS_MOST, 1.7, rates),
        offsets=OffsetTime("/scratch/big", "POSIX", amount, 0, 1 << 50, 1.7),
    )
    page.write(full, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size <= BYTES_MOST


def test_cells_are_those_of_the_picture() -> None:
    values = {
        "read": np.array([[0.0, 1.0, 3 * MIB]]),
        "write": np.array([[0.0, 1e12, 0.0]]),
        "none": np.zeros((1, 3)),
    }
    found = charts.grid(values, np.arange(4.0), np.array([0.0, 10.0]), by_power=True)
    assert found["layers"] == ["read", "write"]
    codes = np.frombuffer(base64.b64decode(found["codes"]), "<u2").reshape(2, 1, 3)
    assert np.allclose(2 ** (codes / 1000) - 1, [values["read"], values["write"]], rtol=1e-3)
    assert found["full"] == codes.max()
    share = np.array([[0.25, 1.0 + 1e-9]])
    shares = charts.grid({"mpi": share}, np.arange(3.0), np.arange(2.0), by_power=False)
    assert base64.b64decode(shares["codes"]) == np.array([250, 1000], "<u2").tobytes()


def test_the_installed_command_makes_pages_with_charts(tmp_path: Path) -> None:
    command = REPOSITORY / ".venv" / "bin" / "forebay"
    if not command.is_file():
        pytest.skip(".venv holds no forebay (make build)")
    write_json(evaluation(blocks=2).as_json(), tmp_path / "e.json")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FOREBAY_", "PYTHON"))}
    subprocess.run(
        [command, "report", "e.json"], cwd=tmp_path, env=kept, check=True, timeout=TIMEOUT_S
    )
    kinds = Scripts((tmp_path / "report.html").read_text()).kinds
    assert kinds == ["application/json"] * 2 + [None, None]
