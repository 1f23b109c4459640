"""Goal: the page of what a trace costs says what the results say.

Method: results that are made up here, the page read back. Nothing is measured.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import results
import toolkit_pages
import tracing_page
from tracing_runs import PROGRAMS


def leave(output: Path, added_ns: float, share: float, report_s: float, rounds: int = 5) -> None:
    for number in range(rounds):
        factor = 1 + number / 100
        call = {"plain_ns": 400.0, "added_ns": added_ns * factor}
        run = {
            "calls": 1000,
            "untraced_s": 2.0,
            "traced_s": 2.5 * factor,
            "share_of_wall": share * factor,
        }
        document: dict[str, Any] = {
            "file_system": "ext4",
            "libc_calls": {"pread_of_a_byte": call, "open_and_close": call},
            "mpi_calls": {"mpich": {"MPI_File_write_at": call}},
            "programs": {workload.name: run for workload in PROGRAMS},
            "million": {
                "calls": 1_000_100,
                "report": {"seconds": report_s * factor, "peak_bytes": 5 << 20},
                "report_bytes": 50_000,
                "characterise": {"seconds": 2.0, "peak_bytes": 4 << 20},
            },
            "stolen_share": 0.01,
            "environment": {"mpi": {}},
        }
        path = output / "results" / f"tracing-{number}.json"
        results.store(path, document, toolkit_pages.SCRIPT)


def lines_with(text: str, word: str) -> list[str]:
    return [line for line in text.splitlines() if word in line]


@pytest.mark.parametrize(
    ("added_ns", "share", "report_s", "verdict"),
    [(100.0, 0.005, 5.0, "met"), (200.0, 0.02, 11.0, "**missed**")],
)
def test_each_bar_has_its_verdict(
    tmp_path: Path, added_ns: float, share: float, report_s: float, verdict: str
) -> None:
    leave(tmp_path, added_ns, share, report_s)
    text = tracing_page.write(tmp_path).read_text()
    (call,) = lines_with(text, "mpich: `MPI_File_write_at`")
    assert call.endswith(f"| {verdict} |")
    assert f"{added_ns * 1.02:.0f} [{added_ns:.0f}, {added_ns * 1.04:.0f}]" in call
    (run,) = lines_with(text, "| `multipart` |")
    assert run.endswith(f"| {verdict} |")
    assert "1.27 [" in run
    (report,) = lines_with(text, "`forebay report`")
    assert report.endswith(f"| {verdict}, met |")


def test_each_processor_has_its_own_nanoseconds(tmp_path: Path) -> None:
    leave(tmp_path, 100.0, 0.005, 5.0, rounds=2)
    path = tmp_path / "results" / "tracing-1.json"
    document = json.loads(path.read_text())
    document["experiment"]["cpu"] = "Another"
    path.write_text(json.dumps(document))
    text = tracing_page.write(tmp_path).read_text()
    assert "### Another" in text
    one, other = lines_with(text, "mpich: `MPI_File_write_at`")
    assert "| 100 [100, 100] |" in one
    assert "| 101 [101, 101] |" in other


def test_two_calls_have_no_bar(tmp_path: Path) -> None:
    leave(tmp_path, 200.0, 0.005, 5.0)
    (line,) = lines_with(tracing_page.write(tmp_path).read_text(), "open_and_close")
    assert line.endswith("| - |")


def test_rounds_without_a_call_leave_it_to_the_others(tmp_path: Path) -> None:
    leave(tmp_path, 100.0, 0.005, 5.0)
    path = tmp_path / "results" / "tracing-4.json"
    document = json.loads(path.read_text())
    call = {"plain_ns": 100.0, "added_ns": 460.0}
    document["libc_calls"] = {"fscanf_of_a_word": call, **document["libc_calls"]}
    path.write_text(json.dumps(document))
    text = tracing_page.write(tmp_path).read_text()
    (line,) = lines_with(text, "fscanf_of_a_word")
    assert "| 460 [460, 460] |" in line
    assert line.endswith("| **missed** |")
    (old,) = lines_with(text, "pread_of_a_byte")
    assert "102 [100, 104]" in old


def test_without_results_it_says_so(tmp_path: Path) -> None:
    text = tracing_page.write(tmp_path).read_text()
    assert text.count("Not measured.") == 3
