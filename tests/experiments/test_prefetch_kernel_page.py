"""Goal: the page that compares with the kernel's read-ahead says what the results say, and what the
page cache holds is told.

Method: results that are made up here, the page read back; a file of known size, read.
"""

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from read_page import parts

import kernel_page
from analysis_runs import COMPUTE_US
from forebay.characterise.system.page_cache import bytes_in_page_cache
from kernel_runs import (
    EXACT,
    JOINED,
    KERNEL,
    MERCURY,
    PAGES,
    PAGES_JOINED,
    SHARED,
    WRONG,
    WRONG_PAGES,
)
from page_cache import PeakPages

NEEDED = 120_000_000  # bytes; 0.30 s at 400 MB/s


def leave(
    output: Path,
    number: int,
    seconds: dict[str, float],
    subject: kernel_page.Subject = kernel_page.KERNEL_PAGE,
    processes: Collection[int] = (1, 2, 4, 8),
    without: Collection[str] = (),
) -> None:
    """One round, `without` some cases: `seconds` of some, 4 of all others; 0.2 s outside of
    reads."""
    runs: list[dict[str, Any]] = [
        {
            "kind": kind,
            "processes": count,
            "case": case.name,
            "bytes": NEEDED,
            "reads": 525,
            "seconds": seconds.get(case.name, 4.0),
            "seconds_in_reads": seconds.get(case.name, 4.0) - 0.2,
            "requests": 2500,
            "bytes_served": NEEDED * 2 if case.intent is None or case is MERCURY else NEEDED,
            "page_cache_peak": 0 if case is EXACT else 16 << 20,
            **({"prefetch": [{"memory_peak": 8 << 20}]} if case.intent is not None else {}),
        }
        for kind in COMPUTE_US
        for count, cases in subject.cases.items()
        if count in processes
        for case in cases
        if case.name not in without
    ]
    (output / "results").mkdir(exist_ok=True)
    (output / "results" / f"{subject.stem}-{number}.json").write_text(
        json.dumps(
            {
                "date": "2026-11-21T23:00:00+00:00",
                "kernel": "6.18",
                "cores": 2,
                "load_average": 0.5,
                "commit": "abcdef0",
                "runs": runs,
            }
        )
    )


def test_each_scenario_is_judged_by_the_bars(tmp_path: Path) -> None:
    for number, time in enumerate((0.30, 0.31, 0.33, 0.40, 0.90)):
        leave(
            tmp_path,
            number,
            {EXACT.name: time, SHARED.name: 1.0, WRONG.name: 4.5, KERNEL[-1].name: 1.2},
        )
    found = parts(kernel_page.write(tmp_path).read_text())
    assert list(found) == [
        f"{kind}, {processes}"
        for processes in ("one process", "2 processes", "4 processes", "8 processes")
        for kind in ("compute-bound", "I/O-bound")
    ]
    alone = found["I/O-bound, one process"]
    assert alone[EXACT.name] == ["0.33 [0.30, 0.90]", "2500", "120", "0", "8"]
    assert alone["time / what nobody can beat"] == ["at most 1.15", "1.10", "met"]
    assert alone["kernel, 128 KiB / Forebay"] == ["at least 6", "12.12", "met"]
    best = "best of the kernel (16 MiB) / Forebay"
    assert alone[best] == ["at least 4", "3.64", "missed"]
    assert alone["published method / Forebay, bytes"] == ["at least 2", "2.00", "met"]
    assert alone["memory and page cache / 8 MiB a process"] == ["at most 1", "1.00", "met"]
    assert alone["wrong extents / no hints"] == ["at most 1.1", "1.12", "missed"]
    held = "through the page cache: held there / 8 MiB a process"
    assert alone[held] == ["at most 1", "2.00", "missed"]
    read = "through the page cache: bytes read / bytes needed"
    assert alone[read] == ["at most 1.05", "1.00", "met"]
    shared = found["compute-bound, 4 processes"]
    assert EXACT.name not in shared
    assert shared["kernel, 128 KiB / Forebay"] == ["at least 6", "4.00", "missed"]
    assert shared["memory and page cache / 8 MiB a process"] == ["at most 1", "0.75", "met"]
    assert shared[held] == ["at most 1", "0.50", "met"]


def test_older_rounds_of_several_processes_are_judged_through_the_page_cache(
    tmp_path: Path,
) -> None:
    for number in range(5):
        leave(tmp_path, number, {PAGES.name: 2.0}, without=[SHARED.name])
    found = parts(kernel_page.write(tmp_path).read_text())["compute-bound, 4 processes"]
    assert found["kernel, 128 KiB / Forebay"] == ["at least 6", "2.00", "missed"]
    assert found[SHARED.name] == ["not measured yet", "", "", "", ""]


def test_a_bar_that_nobody_can_reach_is_missed_and_says_so(tmp_path: Path) -> None:
    for number in range(5):
        leave(tmp_path, number, {EXACT.name: 0.33, KERNEL[-1].name: 0.9, WRONG.name: 4.0})
    found = parts(kernel_page.write(tmp_path).read_text())["I/O-bound, one process"]
    assert found["best of the kernel (16 MiB) / Forebay"] == [
        "at least 4",
        "2.73",
        "missed: 3.00 is the most that anybody can reach",
    ]
    assert (tmp_path / "kernel.svg").read_text().count("what nobody can beat") == 1


def test_few_rounds_give_no_plain_verdict(tmp_path: Path) -> None:
    leave(tmp_path, 0, {})
    found = parts(kernel_page.write(tmp_path).read_text())
    assert found["I/O-bound, 4 processes"]["bytes read / bytes needed"][2] == (
        "met, by fewer than 5 rounds"
    )


def test_a_page_without_results_has_no_table_and_no_picture(tmp_path: Path) -> None:
    assert parts(kernel_page.write(tmp_path).read_text()) == {}
    assert not list(tmp_path.glob("*.svg"))


def texts(picture: Path) -> list[str]:
    """What is written in a picture, in its order."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text())


def test_pictures_show_requests_by_case_and_by_processes(tmp_path: Path) -> None:
    leave(tmp_path, 0, {})
    page = kernel_page.write(tmp_path).read_text()
    assert page.index("kernel-processes.svg") < page.index("kernel.svg")
    by_case, by_processes = (texts(tmp_path / f"kernel{more}.svg") for more in ("", "-processes"))
    assert by_case.count("2500") >= 30  # each case of each scenario has one, and axes may
    assert "requests at the server" in by_case
    assert by_processes.count("requests at the server") == len(COMPUTE_US)
    assert by_processes.count(PAGES.name) == 1
    assert by_processes.count(EXACT.name) == 1  # of one process alone
    assert {"1", "2", "4", "8", *COMPUTE_US} <= set(by_processes)


def test_one_number_of_processes_makes_no_picture_by_it(tmp_path: Path) -> None:
    leave(tmp_path, 0, {}, processes=[4])
    page = kernel_page.write(tmp_path).read_text()
    assert list(parts(page)) == ["compute-bound, 4 processes", "I/O-bound, 4 processes"]
    assert "kernel.svg" in page
    assert not (tmp_path / "kernel-processes.svg").exists()


def test_a_throttled_disk_has_bars_of_its_own(tmp_path: Path) -> None:
    subject = kernel_page.EXT4_PAGE
    for number in range(5):
        seconds = {EXACT.name: 1.0, KERNEL[2].name: 1.8, PAGES.name: 3.0, PAGES_JOINED.name: 1.5}
        seconds |= {WRONG.name: 4.6, SHARED.name: 1.2, JOINED.name: 0.9}
        leave(tmp_path, number, seconds, subject)
    page = kernel_page.write(tmp_path, subject)
    assert page.name == "ext4.md"
    assert "300 operations a second" in page.read_text()
    found = parts(page.read_text())
    best = "best of the kernel (4 MiB) / Forebay"
    assert found["I/O-bound, one process"][best] == ["at least 1.5", "1.80", "met"]
    said = f"{best}, gap = 256 KiB"
    assert found["I/O-bound, one process"][said] == ["at least 1.5", "2.00", "met"]
    shared = found["I/O-bound, 4 processes"]
    assert shared[f"{best}, shared memory"] == ["at least 1.5", "1.50", "met"]
    assert shared[f"{best}, through the page cache"] == ["at least 1.5", "0.60", "missed"]
    joined = f"{best}, through the page cache, gap = 256 KiB"
    assert shared[joined] == ["at least 1.5", "1.20", "missed"]
    for name, part in found.items():
        assert part["wrong extents / no hints"] == ["at most 1.1", "1.15", "missed"], name
    assert "MB read at the device" in (tmp_path / "ext4.svg").read_text()


@pytest.mark.parametrize("subject", kernel_page.SUBJECTS, ids=lambda subject: str(subject.stem))
def test_wrong_hints_that_older_rounds_lack_are_not_measured_yet(
    tmp_path: Path, subject: kernel_page.Subject
) -> None:
    for number in range(5):
        leave(tmp_path, number, {}, subject, without=[WRONG.name, WRONG_PAGES.name])
    found = parts(kernel_page.write(tmp_path, subject).read_text())
    assert len(found) == 2 * len(subject.cases)
    for part in found.values():
        assert part[WRONG.name] == ["not measured yet", "", "", "", ""]
        assert part["wrong extents / no hints"] == ["at most 1.1", "", "not measured yet"]
        assert part["memory and page cache / 8 MiB a process"][2] != "not measured yet"
        assert (WRONG_PAGES.name in part) == (
            "wrong extents, through the page cache / no hints" in part
        )
    assert WRONG.name not in (tmp_path / f"{subject.stem}.svg").read_text()


def test_little_memory_is_judged_by_the_same_bars(tmp_path: Path) -> None:
    leave(tmp_path, 0, {}, kernel_page.MEMORY_PAGE)
    page = kernel_page.write(tmp_path, kernel_page.MEMORY_PAGE).read_text()
    assert "a quarter of its size" in page
    assert len(parts(page)) == 8


def test_what_the_page_cache_holds_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(1 << 20))
    with file.open("rb") as opened:
        try:
            assert bytes_in_page_cache(opened.fileno()) == 1 << 20
        except OSError as error:
            pytest.skip(f"the kernel does not tell: {error}")
    with PeakPages(file) as pages:
        pass
    assert pages.peak == 1 << 20
