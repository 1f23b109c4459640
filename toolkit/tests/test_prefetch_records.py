"""What was read ahead: which runs preload the library for it, and what is told of its records."""

import json
from pathlib import Path

import pytest
import xxhash
from conftest import Forebay, read_json
from rich.console import Console

from forebay import prefetch_records

READS = '[[file]]\npath = "*.dat"\nwillneed = [[0, 0]]\n'


def record(**values: object) -> dict[str, object]:
    """A whole record, as the runtime writes one (docs/formats/report.md)."""
    numbers = dict.fromkeys(prefetch_records._SUMS + prefetch_records._KNOWN_TO_SOME, 0)
    return {
        "version": 2,
        "path": "/data/a.dat",
        **numbers,
        "openings": 1,
        "has_unseen_reads": False,
        "memory_peak": 0,
        "gap_found": 0,
        "latency_seconds": 0.0,
        "bytes_per_second": 0.0,
        "stopped": "",
        **values,
    }


def leave(directory: Path, *records: dict[str, object], ending: str = "reads") -> None:
    """Writes them as the runtime does."""
    for number, values in enumerate(records):
        content = json.dumps(values).encode()
        digest = xxhash.xxh64_hexdigest(content)
        (directory / f"12-{number}-{digest}.{ending}").write_bytes(content)


def test_openings_of_a_file_are_added_up(tmp_path: Path) -> None:
    leave(
        tmp_path,
        record(reads=10, bytes_asked=100, bytes_served=50, memory_peak=8, latency_seconds=0.5),
        record(reads=5, bytes_asked=100, bytes_served=100, memory_peak=6, latency_seconds=0.2),
        record(path="/data/b.dat", stopped="the file was changed"),
    )
    first, second = sorted(prefetch_records.load(tmp_path).files, key=lambda file: file.path)
    assert (first.openings, first.totals["reads"], first.memory_peak) == (2, 15, 8)
    assert (first.share_served, first.latency_seconds) == (0.75, 0.2)
    assert (second.latency_seconds, second.stopped) == (None, ["the file was changed"])


def test_a_record_tells_of_the_openings_that_it_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(tmp_path, record(openings=1200, stopped="it was opened for writing"), record(openings=0))
    assert "/data/a.dat  not read ahead, 1200 openings" in shown(tmp_path, capsys)


def test_openings_of_further_files_are_told_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "it was opened for writing"
    further: dict[str, object] = {
        "version": 1, "openings": 998_000, "reads": 40, "bytes_asked": 4096, "kernel_reads": 40,
        "kernel_stalls": 1, "kernel_seconds": 0.5, "stopped": why,
    }  # fmt: skip
    leave(tmp_path, further, further | {"openings": 976}, further | {"openings": -1},
          ending="left-alone")  # fmt: skip
    told = shown(tmp_path, capsys)
    assert "... and 998 976 openings of further files that were not read ahead" in told
    assert "by the kernel: 80 calls, 8.0 KiB" in told
    assert f"why, of the first: {why}" in told
    assert "record left out" in told
    loaded = prefetch_records.load(tmp_path)
    assert not loaded.is_empty
    in_json = prefetch_records.as_json(loaded)["prefetch"]["left_alone"]
    assert sorted(each["openings"] for each in in_json) == [976, 998_000]


def test_a_gap_that_was_found_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    between = record(bytes_between=1 << 20)
    leave(tmp_path, {**between, "gap_found": 64 << 10}, {**between, "gap_found": 256 << 10})
    prefetch_records.show(Console(width=200), prefetch_records.load(tmp_path))
    assert 'of gaps (gap = "256KiB" in the intent file' in capsys.readouterr().out


def shown(directory: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What is told of the records in `directory`."""
    prefetch_records.show(Console(width=200), prefetch_records.load(directory))
    return capsys.readouterr().out


def test_reads_that_went_to_the_kernel_are_told_with_their_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = record(requests=9, reads=1200, kernel_reads=1101, kernel_stalls=7, kernel_seconds=3.1)
    leave(tmp_path, wrong)
    told = shown(tmp_path, capsys)
    assert "0 waited more than 1 ms" in told
    assert "by the kernel: 1 101 calls, 7 took more than 1 ms, 3.10 s in all" in told


def test_what_is_not_known_is_not_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unknown = dict.fromkeys(("stalls", "seconds_waited", "bytes_unused"), None)
    leave(tmp_path, record(requests=9, reads=100, kernel_reads=100, **unknown))
    told = shown(tmp_path, capsys)
    assert "waited" not in told
    assert "for nothing" not in told
    assert "by the kernel: 100 calls" in told
    (file,) = prefetch_records.as_json(prefetch_records.load(tmp_path))["prefetch"]["files"]
    assert (file["stalls"], file["bytes_unused"], file["kernel_reads"]) == (None, None, 100)
    leave(tmp_path, record(requests=9, bytes_unused=1 << 20))
    assert "at least 1.0 MiB of it for nothing" in shown(tmp_path, capsys)


def test_reads_that_are_not_seen_are_said_to_be_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = dict.fromkeys(prefetch_records._KNOWN_TO_SOME, None)
    leave(tmp_path, record(requests=9, has_unseen_reads=True, **unknown))
    told = shown(tmp_path, capsys)
    assert "reads by C streams or mappings: not seen" in told
    assert "reads: 0" not in told


def test_a_file_that_could_not_be_read_ahead_has_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(tmp_path, record(reads=3, kernel_reads=3, stopped="no memory is left"))
    told = shown(tmp_path, capsys)
    assert "/data/a.dat  not read ahead" in told
    assert "why: no memory is left" in told
    assert "fetched" not in told


def test_what_had_been_declared_is_told_of_what_was_followed(tmp_path: Path) -> None:
    read = {"bytes_asked": 1000, "bytes_planned": 500, "bytes_asked_declared": 100}
    leave(tmp_path, record(bytes_unfollowed=800, **read))
    (file,) = prefetch_records.load(tmp_path).files
    assert file.share_declared == 0.5


def test_records_that_are_not_whole_are_named(tmp_path: Path) -> None:
    leave(tmp_path, record(version=3), {"version": 2}, record())
    (tmp_path / "12-9-0000000000000000.reads").write_text("{}")
    (tmp_path / ".12-9-0000000000000000.reads").write_text("being written")
    loaded = prefetch_records.load(tmp_path)
    assert len(loaded.files) == 1
    assert len(loaded.rejected) == 3


def test_only_a_run_whose_intent_speaks_of_reads_preloads_for_them(
    forebay: Forebay, tmp_path: Path
) -> None:
    (tmp_path / "reads.toml").write_text(READS)
    (tmp_path / "hints.toml").write_text('[[file]]\npath = "*"\ncb_nodes = 2\n')
    tell = ["--", "sh", "-c", "echo $LD_PRELOAD"]
    assert "libforebay-posix.so" in forebay("run", "--intent", "reads.toml", *tell).output
    assert "libforebay-posix.so" not in forebay("run", "--intent", "hints.toml", *tell).output
    assert "libforebay-posix.so" not in forebay("run", *tell).output
    observed = forebay("run", "--observe", "--intent", "reads.toml", *tell)
    assert "libforebay-posix.so" not in observed.output


def test_the_summary_tells_what_was_read_ahead(forebay: Forebay, tmp_path: Path) -> None:
    (tmp_path / "reads.toml").write_text(READS)
    staged = tmp_path / "staged"
    staged.mkdir()
    leave(
        staged,
        record(
            reads=4, reads_served=2, bytes_asked=4096, bytes_asked_declared=1024, bytes_served=2048,
            bytes_fetched=8192, bytes_refetched=4096, bytes_planned=2048, plans_given_up=1,
            helper_cpu_seconds=0.25,
        ),
    )  # fmt: skip
    answer = forebay(
        "run", "--json", "r.json", "--intent", "reads.toml",
        "--", "sh", "-c", f'cp {staged}/*.reads "$FOREBAY_REPORT_DIR"',
    )  # fmt: skip
    assert answer.code == 0
    assert "50% of the bytes from memory" in answer.errors
    assert "the reads were not those foreseen" in answer.errors
    assert "different bytes of it: 4.0 KiB; fetched again: 4.0 KiB" in answer.errors
    assert "of what was read, 25% had been declared" in answer.errors
    assert "processor time of reading ahead: 250.0 ms" in answer.errors
    assert "no MPI file was seen" not in answer.errors
    (file,) = read_json(tmp_path / "r.json")["prefetch"]["files"]
    assert (file["path"], file["reads"]) == ("/data/a.dat", 4)
    assert (file["bytes_unique"], file["share_declared"]) == (4096, 0.25)


def test_the_summary_tells_of_processes_that_gave_up(forebay: Forebay, tmp_path: Path) -> None:
    (tmp_path / "reads.toml").write_text(READS)
    staged = tmp_path / "staged"
    staged.mkdir()
    why = "nothing was read ahead any more: a file was opened or closed for more than 3 s"
    given_up = [{"version": 1, "process": process, "stopped": why} for process in (4711, 4712)]
    leave(staged, *given_up, {"version": 1, "process": "4713", "stopped": why}, ending="gave-up")
    answer = forebay(
        "run", "--json", "r.json", "--intent", "reads.toml",
        "--", "sh", "-c", f'cp {staged}/*.gave-up "$FOREBAY_REPORT_DIR"',
    )  # fmt: skip
    assert answer.code == 0
    assert f"2 processes: {why}" in answer.errors
    assert "process is no whole number" in answer.errors
    assert "no MPI file was seen" not in answer.errors
    told = read_json(tmp_path / "r.json")["prefetch"]["gave_up"]
    assert sorted(each["process"] for each in told) == [4711, 4712]
    assert {each["stopped"] for each in told} == {why}


def test_mistakes_of_a_file_that_nothing_was_read_of_are_told(
    forebay: Forebay, tmp_path: Path
) -> None:
    (tmp_path / "reads.toml").write_text(READS)
    staged = tmp_path / "staged"
    staged.mkdir()
    wrong = {"version": 1, "path": "/data/a.dat", "mistakes": ["r.toml:3: wrong", "and 2 more"]}
    leave(staged, wrong, {**wrong, "mistakes": ["r.toml:3: wrong", "r.toml:9: also"]},
          {**wrong, "mistakes": [3]}, {**wrong, "mistakes": "all"}, ending="mistakes")  # fmt: skip
    answer = forebay(
        "run", "--json", "r.json", "--intent", "reads.toml",
        "--", "sh", "-c", f'cp {staged}/*.mistakes "$FOREBAY_REPORT_DIR"',
    )  # fmt: skip
    assert answer.code == 0
    assert "/data/a.dat  not read ahead" in answer.errors
    assert answer.errors.count("intent file, r.toml:3: wrong") == 1
    assert "no MPI file was seen" not in answer.errors
    prefetch = read_json(tmp_path / "r.json")["prefetch"]
    (file,) = prefetch["files"]
    assert sorted(file["mistakes"]) == ["and 2 more", "r.toml:3: wrong", "r.toml:9: also"]
    assert len(prefetch["rejected"]) == 2
