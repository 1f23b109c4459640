"""Goal: the page of [ARCHER]'s experiments says what the results say.

Method: results that are made up here, the page read back. Nothing is measured.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import results
import striping_page
import striping_runs
import toolkit_pages
from measuring import FOREBAY, STOCK, MeasuringError
from striping_figures import array_claims, collect_array, collect_files, files_claims
from striping_runs import ALL, BYTES, LARGE, ONE, TASKS, TOGETHER, Case, cases

Rate = Callable[[Case], float]
"""Bytes a second of a case."""


def leave_array(output: Path, rate: Rate, rounds: int = 5, identical: bool = True) -> None:
    for number in range(rounds):
        runs = [
            {
                **vars(case),
                "seconds": case.processes * BYTES / rate(case) * (1 + number / 100),
                "identical": identical,
            }
            for case in cases()
        ]
        store(output, f"striping-{number}", runs)


def leave_files(output: Path, small: float, large: float, rounds: int = 5) -> None:
    """So many times as long over all bricks as on one."""
    for number in range(rounds):
        runs = [
            {
                "layout": layout,
                "data": data,
                "task": task,
                "seconds": (1 + number / 100)
                * (1 if layout == ONE else large if data == LARGE else small),
            }
            for data, task in TASKS
            for layout in (ONE, ALL)
        ]
        store(output, f"files-{number}", runs)


def store(output: Path, stem: str, runs: list[dict[str, Any]]) -> None:
    document = {"stolen_share": 0.0, "runs": runs, "environment": {"mpi": {}}}
    results.store(output / "results" / f"{stem}.json", document, toolkit_pages.SCRIPT)


def as_published(case: Case) -> float:
    """Collective I/O scales with servers, independent I/O falls with processes."""
    engine = 1.1 if case.engine == FOREBAY else 1.0
    if case.call == TOGETHER:
        return case.servers * 1e6 * engine
    return 0.5e6 / case.processes


def verdicts(output: Path, stem: str) -> list[str]:
    rounds = toolkit_pages.stored_rounds(output, stem)
    if stem == "files":
        return [claim.verdict for claim in files_claims(collect_files(rounds))]
    return [claim.verdict for claim in array_claims(collect_array(rounds), STOCK)]


def test_what_is_as_published_is_reproduced(tmp_path: Path) -> None:
    leave_array(tmp_path, as_published)
    leave_files(tmp_path, small=4, large=1.5)
    assert set(verdicts(tmp_path, "striping")) == {"reproduced"}
    assert set(verdicts(tmp_path, "files")) == {"reproduced"}
    page = striping_page.write(tmp_path).read_text()
    assert "| 48, 8, `write_all` | 1.10 [1.10, 1.10] | more |" in page
    assert "| 48, 4, `write` | 1.00 [1.00, 1.00] | no difference |" in page
    assert "All files of all runs are right, byte for byte." in page
    read = "| small files, read | 1.02 [1.00, 1.04] | 4.08 [4.00, 4.16] | 4.00 [4.00, 4.00] |"
    assert read in page
    assert (tmp_path / "striping.svg").is_file()


def test_no_difference_is_not_shown_either_way(tmp_path: Path) -> None:
    leave_array(tmp_path, lambda case: 1e6)
    assert set(verdicts(tmp_path, "striping")) == {"not shown"}


def test_what_is_otherwise_is_not_reproduced(tmp_path: Path) -> None:
    leave_array(tmp_path, lambda case: 1e12 / as_published(case))
    leave_files(tmp_path, small=1.5, large=4)
    assert set(verdicts(tmp_path, "striping")) == {"not reproduced"}
    assert verdicts(tmp_path, "files") == ["reproduced"] * 2 + ["not reproduced"] * 2


def test_four_rounds_show_nothing(tmp_path: Path) -> None:
    leave_array(tmp_path, as_published, rounds=4)
    leave_files(tmp_path, small=4, large=1.5, rounds=4)
    for stem in ("striping", "files"):
        assert set(verdicts(tmp_path, stem)) == {"too few rounds"}


def test_a_wrong_file_stands_out(tmp_path: Path) -> None:
    leave_array(tmp_path, as_published, identical=False)
    assert "**Some files are not as they should be.**" in striping_page.write(tmp_path).read_text()


def test_without_results_nothing_is_claimed(tmp_path: Path) -> None:
    page = striping_page.write(tmp_path).read_text()
    assert page.count("Not measured.") == 2
    assert "reproduced" not in page


def test_files_are_written_read_and_packed_on_both_layouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(striping_runs, "FILES", 3)
    monkeypatch.setattr(striping_runs, "FILE_BYTES", 1000)
    monkeypatch.setattr(striping_runs, "_glusterfs_version", lambda: "none")
    mounts = {layout: tmp_path / str(number) for number, layout in enumerate((ONE, ALL))}
    for mount in mounts.values():
        mount.mkdir()
    measured = striping_runs.measure_files(mounts, random.Random(1))
    assert {(run["layout"], run["data"], run["task"]) for run in measured["runs"]} == {
        (layout, data, task) for layout in (ONE, ALL) for data, task in TASKS
    }
    assert all(list(mount.iterdir()) == [] for mount in mounts.values())


def test_a_damaged_file_ends_the_measurement(tmp_path: Path) -> None:
    directory = tmp_path / "files"
    content = bytes(range(256)) * 4
    striping_runs._write(directory, LARGE, content)
    (directory / "file").write_bytes(content[::-1])
    with pytest.raises(MeasuringError, match="not what was written"):
        striping_runs._read(directory, LARGE, content)
    with pytest.raises(MeasuringError, match="another one in the archive"):
        striping_runs._tar(directory, LARGE, content)
