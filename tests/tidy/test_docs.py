"""Goal: tables of the documentation that list what the code has cannot fall behind it.

Method: the names are read from the code, and each must stand in its table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (".c", ".cpp", ".hpp", ".py")


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    """Path from the root and text of the code in `folders`, without tests."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SOURCES and "test" not in path.name:
                yield str(path.relative_to(ROOT)), path.read_text()


def first_column(page: str) -> set[str]:
    """The words in back quotes in the first column of the tables of a page."""
    rows = re.findall(r"^\| (`[^|]*`) \|", (ROOT / page).read_text(), re.M)
    return {word for row in rows for word in re.findall(r"`([^`]*)`", row)}


def test_every_call_has_its_fate_told() -> None:
    names = re.findall(
        r"^FOREBAY_NAME\((\w+)\)", (ROOT / "core/intercept/preload/names.inc").read_text(), re.M
    )
    told = first_column("docs/guide/calls.md")
    endings = tuple(word.removeprefix("...") for word in told if word.startswith("..."))
    missing = [
        name
        for name in (name.removesuffix("_c") for name in names)
        if name not in told and not name.endswith(endings)
    ]
    assert names
    assert missing == []


def test_every_reason_for_passing_through_is_told() -> None:
    reasons = {
        reason
        for _, text in sources("core/intercept")
        for assigned in re.findall(r"pass_reason = ([^;]*);", text)
        for reason in re.findall(r'"([^"]+)"', assigned)
    }
    assert reasons
    assert reasons - first_column("docs/guide/calls.md") == set()


def test_every_variable_of_the_runtime_is_told() -> None:
    used = {
        name
        for _, text in sources("core", "toolkit/forebay")
        for name in re.findall(r'(?:getenv|environment)\("(FOREBAY_\w+)"\)', text)
    }
    assert used
    assert used - first_column("docs/formats/report.md") == set()
