"""Goal: names and values that are no text do not end a report: they stand there escaped.

Method: campaigns and searches with bytes that are no UTF-8, lone surrogates and control characters
where names and values can stand; what escapes them, by itself; the command.
"""

import json
import os
import re
from pathlib import Path

import made_searches
import pytest
from conftest import Forebay
from hypothesis import given
from hypothesis import strategies as st
from made_campaigns import evaluation

from forebay.configurations import Configuration
from forebay.configure import stored as stored_search
from forebay.evaluate.campaign import write_json
from forebay.evaluate.in_force import Setting, State
from forebay.report import escapes, search, search_page

BYTES = os.fsdecode(b"caf\xe9")
SHOWN = {
    BYTES: r"caf\xe9",
    "a\ud800b": r"a\ud800b",
    "a\x1b[31mb": r"a\x1b[31mb",
    "a\0b": r"a\x00b",
    "two\nlines": r"two\x0alines",
}


def pictures(text: str) -> str:
    return "".join(re.findall("<svg.*?</svg>", text, re.DOTALL))


def hostile_search(directory: Path, name: str) -> search.SearchReport:
    """A search with `name` as a configuration, a factor's value, a reason and a note."""
    runs = [run.as_json() for run in made_searches.runs()]
    for run in runs:
        run["configuration"] = run["configuration"].replace("c02", name)
        run["settings"] = {key: f"{value}{name}" for key, value in run["settings"].items()}
        run["reason"] += name
    document = made_searches.ending(notes=[name], constraints=[name]) | {"runs": runs}
    (directory / "s.json").write_text(json.dumps(document))
    return search.examine(stored_search.load(directory / "s.json"))


@pytest.mark.parametrize("name", SHOWN, ids=ascii)
def test_the_page_of_a_search_shows_them_escaped(tmp_path: Path, name: str) -> None:
    report = hostile_search(tmp_path, name)
    search_page.write(report, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"<td>{SHOWN[name]}</td>" in text
    assert f"aggregators: left alone to 2{SHOWN[name]}" in pictures(text)
    assert escapes.escaped(text) == text


@pytest.mark.parametrize("name", SHOWN, ids=ascii)
def test_the_command_reports_a_campaign_with_them(
    forebay: Forebay, tmp_path: Path, name: str
) -> None:
    named = Configuration(name, hints={"cb_nodes": name}, environment={"WAY": name})
    found = evaluation([(named, 0.3)])
    found.settings = {name: [Setting("cb_nodes", name, (name,), State.IN_FORCE)]}
    found.notes = [name]
    write_json(found.as_json(), tmp_path / "e.json")
    answer = forebay("report", "e.json", "-o", "page.html", "--json", "found.json")
    assert answer.code == 0, answer.errors
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"<td>{SHOWN[name]}</td>" in text
    assert SHOWN[name] in pictures(text)
    assert escapes.escaped(text) == text
    assert json.loads((tmp_path / "found.json").read_text())["best"] == name


def test_what_is_text_stays() -> None:
    for text in ("caf\u00e9 \U0001f600 <&> \u2028 \\x41", "two\n\tlines"):
        assert escapes.escaped(text) == text


@given(st.text(st.characters(categories=None)))
def test_whatever_is_escaped_can_be_written_and_seen(text: str) -> None:
    shown = escapes.in_a_line(text)
    shown.encode()
    assert escapes.in_a_line(shown) == shown
    assert not re.search(r"[\x00-\x1f\x7f]", shown)
