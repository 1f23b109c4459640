"""Goal: the page of real programs that read says what the results say.

Method: results that are made up here, the page read back. Nothing is measured.
"""

import json
from pathlib import Path

import pytest
from read_page import parts

import readers_page
import readers_runs
from readers_runs import ALL, APART, BY_NAME, FOREBAY, WARM, WRONG, Reader

DECLARED = 40_000_000  # bytes; 0.10 s at 400 MB/s


def leave(
    output: Path,
    reader: Reader,
    number: int,
    seconds: dict[str, float],
    processes: tuple[int, ...] = (1,),
) -> None:
    """One round: `seconds` of some cases, 3 of all others."""
    intents = (Path("exact"), Path("apart"), Path("wrong"))
    stem = "reader" if processes == (1,) else "together"
    runs = [
        {
            "case": name,
            "processes": count,
            "bytes": 51_200_000,
            "seconds": seconds.get(name, 3.0),
            "requests": 1600,
            "bytes_served": DECLARED,
            **({"prefetch": [{"memory_peak": 8 << 20}]} if name in (FOREBAY, APART, WRONG) else {}),
        }
        for count in processes
        for name in (case.name for case in readers_runs.cases_of(reader, count, *intents))
    ]
    (output / "results").mkdir(exist_ok=True)
    (output / "results" / f"{stem}-{reader.name}-{number}.json").write_text(
        json.dumps(
            {
                "reader": reader.name,
                "date": "2026-11-22T06:00:00+00:00",
                "kernel": "6.18",
                "cores": 2,
                "load_average": 0.5,
                "commit": "abcdef0",
                "bytes_declared": DECLARED,
                "runs": runs,
            }
        )
    )


def test_each_reader_is_judged_by_its_bar(tmp_path: Path) -> None:
    for number, time in enumerate((0.5, 0.6, 0.7, 0.8, 2.0)):
        leave(tmp_path, BY_NAME["uproot"], number, {FOREBAY: time, WARM: 0.4, WRONG: 3.4})
        leave(tmp_path, BY_NAME["memmap"], number, {FOREBAY: time, WARM: 0.05})
    page = readers_page.write(tmp_path).read_text()
    found = parts(page)
    assert found["uproot"][FOREBAY] == ["0.70 [0.50, 2.00]", "1600", "40", "8"]
    assert found["uproot"]["kernel, 128 KiB / Forebay"] == ["at least 4", "4.29", "met"]
    assert found["uproot"]["wrong extents / no hints"] == ["at most 1.1", "1.13", "missed"]
    assert found["uproot"]["Forebay, gap = 0: bytes read / bytes declared"][1:] == ["1.00", "met"]
    assert found["uproot"]["memory / 8 MiB"] == ["at most 1", "1.00", "met"]
    assert found["numpy.memmap"]["kernel, 128 KiB / Forebay"] == ["at least 5", "4.29", "missed"]
    assert "nobody can beat is 0.40 s" in page
    assert "nobody can beat is 0.10 s" in page
    assert page.index("readers.svg") < page.index("## uproot")


def test_several_processes_are_judged_by_the_same_bar(tmp_path: Path) -> None:
    leave(tmp_path, BY_NAME["uproot"], 0, {})
    for number in range(5):
        times = {FOREBAY: 0.5, WARM: 0.9, WRONG: 3.6}
        leave(tmp_path, BY_NAME["uproot"], number, times, (2, 4))
    found = parts(readers_page.write(tmp_path).read_text())["uproot"]
    assert found[f"4, {FOREBAY}"] == ["0.50 [0.50, 0.50]", "1600", "40"]
    assert found["2 processes: kernel, 128 KiB / Forebay"] == ["at least 4", "6.00", "met"]
    assert found["4 processes: wrong extents / no hints"] == ["at most 1.1", "1.20", "missed"]
    assert f"8, {FOREBAY}" not in found


def test_small_files_have_no_wrong_extents(tmp_path: Path) -> None:
    leave(tmp_path, BY_NAME["tar"], 0, {FOREBAY: 3.1})
    (found,) = parts(readers_page.write(tmp_path).read_text()).values()
    assert WRONG not in found
    assert found["right extents / no hints"][1] == "1.03"


def test_results_of_readers_whose_names_begin_alike_are_kept_apart(tmp_path: Path) -> None:
    leave(tmp_path, BY_NAME["uproot-mapped"], 0, {})
    assert list(parts(readers_page.write(tmp_path).read_text())) == ["uproot, mapping"]


@pytest.mark.parametrize("reader", ALL, ids=lambda reader: str(reader.name))
def test_every_reader_is_there_and_told_of(reader: Reader) -> None:
    assert (readers_runs.READERS / reader.script).is_file()
    assert readers_page.ABOUT[reader.name]


def test_a_page_without_results_has_no_table_and_no_picture(tmp_path: Path) -> None:
    assert parts(readers_page.write(tmp_path).read_text()) == {}
    assert not (tmp_path / "readers.svg").exists()
