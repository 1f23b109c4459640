"""`forebay characterise system`: what is measured, kept, merged and refused.

Method: a stand-in for fio answers at once, so that whole campaigns take a second; the real fio, the
real MPIs and real names are tried on small files in test_system_probes.py. What the document says
is read back by the reader that report and configure use.
"""

import io
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from conftest import Forebay
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from forebay import filesystem, system_file
from forebay.characterise.system import campaign, mpi_probes, place, results, system_report
from forebay.characterise.system.campaign import Campaign, Outcome, SystemOptions
from forebay.characterise.system.fio import FioError, rate_of
from forebay.characterise.system.probes import Probe, ProbeError, Sizes
from forebay.characterise.system.results import Results
from forebay.characterise.system.sample import LIMITS, METADATA, Sample, subject
from forebay.characterise.system.scale import Scale
from forebay.characterise.system.schedule import LEAST_ROUNDS, Schedule, planned_quick
from forebay.characterise.system.workspace import PREFIX, Sizing
from forebay.errors import ForebayError
from forebay.evaluate import background
from forebay.filesystem import Mount
from forebay.trace.directory import checksum

KIB, MIB = 1 << 10, 1 << 20

FAKE_FIO = """#!/bin/sh
case "$1" in
  --version) echo fio-3.99; exit;;
  --enghelp) echo "psync libaio"; exit;;
esac
for word; do
  case "$word" in
    --output=*) out=${word#*=};;
    --rw=*) operation=${word#*=}; operation=${operation#rand};;
    --direct=1) direct=1;;
  esac
done
if [ -n "$direct" ] && [ -n "$FAKE_FIO_FAILS" ]; then
  echo "fio: this device is on fire" >&2; exit 1
fi
echo "note: a line of words" > "$out"
echo '{"jobs": [{"error": 0, "'$operation'": {"io_bytes": 5000000, "runtime": 10}}]}' >> "$out"
"""

TINY = Scale(
    name="quick",
    rounds=4,
    run_s=0.01,
    sizing=Sizing(MIB, 1.0),
    sizes=Sizes((64 * KIB,), (64 * KIB,), (4 * KIB,), (64 * KIB,)),
    pieces=(KIB,),
    names_s=0.001,
    powers=False,
    limited=False,
)


def program(directory: Path, name: str, text: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(text)
    (directory / name).chmod(stat.S_IRWXU)


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake fio first on PATH, no MPI, and no waiting for the background."""
    program(tmp_path / "bin", "fio", FAKE_FIO)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(mpi_probes, "find", lambda *_: (None, "there is none"))
    monkeypatch.setattr(background, "WINDOW_S", 0.0)
    monkeypatch.setattr(campaign, "_MEMORY_BYTES", MIB)


def measure(
    paths: list[Path],
    out: Path,
    processes: int = 1,
    again: bool = False,
    rounds: int | None = None,
) -> Outcome:
    options = SystemOptions(paths, out, 3, TINY, again, processes, rounds)
    return Campaign(options, Console(file=io.StringIO())).run()


def directory(tmp_path: Path, name: str = "data") -> Path:
    made = tmp_path / name
    made.mkdir()
    return made


def test_a_campaign_leaves_a_file_that_the_report_reads_and_nothing_else(tmp_path: Path) -> None:
    where = directory(tmp_path)
    outcome = measure([where], tmp_path / "system.json", processes=2)
    assert not outcome.interrupted
    system = system_file.load(tmp_path / "system.json")
    assert system.host == os.uname().nodename
    known = {(limit.level, limit.mode, limit.operation) for limit in system.limits}
    in_memory = place.examine(where).in_memory
    expected = {("file system", "warm", "read"), ("file system", "warm", "write")}
    if not in_memory:
        expected |= {("file system", "cold", "read"), ("file system", "fsync", "write")}
    assert expected | {("memory", "copy", "copy")} <= known
    together = [limit for limit in system.limits if limit.processes == 2 and limit.path]
    assert {limit.files for limit in together} == {"own", "shared"}
    assert all(limit.median == 5e8 for limit in system.limits if limit.path)
    assert {rate.operation for rate in system.metadata} == set(system_file.ON_NAMES)
    told = system.document
    assert told["checksum"] == checksum(told)
    assert [entry["samples"][-1][0] for entry in told["limits"]] == [0] * len(told["limits"])
    assert {len(entry["samples"]) for entry in told[LIMITS] + told[METADATA]} == {4}
    assert told["campaigns"][0]["complete"] is True
    assert told["campaigns"][0]["tools"] == {"fio": "3.99"}
    assert told["places"][0]["path"] == str(where.resolve())
    assert list(where.iterdir()) == []


def test_files_are_a_small_part_of_what_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = directory(tmp_path)
    free = place.LEAST_BYTES * place.FREE_SHARE
    usage = type("Usage", (), {"total": 10 * free, "free": free})
    monkeypatch.setattr(place.shutil, "disk_usage", lambda _: usage)
    found = place.examine(where)
    assert place.most_bytes(found) == free // place.FREE_SHARE
    assert place.written_bytes_most(place.most_bytes(found)) < free / 5
    usage.free = free - place.FREE_SHARE  # type: ignore[attr-defined]
    with pytest.raises(ForebayError, match="free; measuring takes") as told:
        place.examine(where)
    assert told.value.exit_code == 1


def test_without_fio_the_rest_is_measured_and_it_is_said_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign.fio, "find", lambda _: None)
    outcome = measure([directory(tmp_path)], tmp_path / "system.json")
    assert any("no fio" in note and "apt-get install fio" in note for note in outcome.notes)
    system = system_file.load(tmp_path / "system.json")
    assert {limit.level for limit in system.limits} == {"memory"}
    assert system.metadata
    assert system.document["campaigns"][0]["notes"] == outcome.notes


def test_a_measurement_that_fails_is_named_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FIO_FAILS", "1")
    monkeypatch.setattr(campaign.place.Place, "in_memory", False)
    monkeypatch.setattr(campaign.workspace, "_takes_direct", lambda _: True)
    outcome = measure([directory(tmp_path)], tmp_path / "system.json")
    assert any("direct" in note and "this device is on fire" in note for note in outcome.notes)
    system = system_file.load(tmp_path / "system.json")
    assert "direct" not in {limit.mode for limit in system.limits}
    assert "fsync" in {limit.mode for limit in system.limits}


def test_a_further_campaign_is_merged_into_the_file(tmp_path: Path) -> None:
    where, out = directory(tmp_path), tmp_path / "system.json"
    measure([where], out)
    with pytest.raises(ForebayError, match="is there already"):
        measure([where], out)
    measure([], out, again=True)
    told = system_file.load(out).document
    assert len(told["campaigns"]) == 2
    assert len(told["places"]) == 1
    for entry in told[LIMITS]:
        assert [sample[0] for sample in entry["samples"]] == [0] * 4 + [1] * 4
        assert entry["bytes_per_second"]["coverage"] >= 0.95
    assert [rate["campaign"] for rate in told[LIMITS][0]["by_campaign"]] == [0, 1]


def test_a_file_of_another_host_is_added_to_with_a_word(tmp_path: Path) -> None:
    where, out = directory(tmp_path), tmp_path / "system.json"
    measure([where], out)
    document = json.loads(out.read_text()) | {"host": "elsewhere"}
    out.write_text(json.dumps(document | {"checksum": checksum(document)}))
    outcome = measure([], out, again=True)
    assert any("was measured on elsewhere, and this is on" in note for note in outcome.notes)
    told = system_file.load(out).document
    assert told["host"] == "elsewhere"
    assert told["campaigns"][1]["host"] == os.uname().nodename


def test_a_file_of_another_processor_is_added_to_with_a_word(tmp_path: Path) -> None:
    where, out = directory(tmp_path), tmp_path / "system.json"
    measure([where], out)
    document = json.loads(out.read_text())
    document["campaigns"][0]["environment"]["cpu"] = "Z80"
    out.write_text(json.dumps(document | {"checksum": checksum(document)}))
    outcome = measure([], out, again=True)
    (note,) = [note for note in outcome.notes if "Z80" in note]
    assert f"was measured on {os.uname().nodename} with Z80, and this is on one of" in note
    outcome = measure([], out, again=True)  # What was measured on the other is still among it.
    assert any(" and Z80, and this is on one of" in note for note in outcome.notes)


def test_what_was_written_by_hand_stays(tmp_path: Path) -> None:
    out = tmp_path / "system.json"
    rate = {"median": 5.0, "low": 4.0, "high": 6.0}
    entry = {
        "level": "network", "operation": "write", "mode": "transfer", "size_bytes": 7,
        "bytes_per_second": rate,
    }  # fmt: skip
    document = {"format": "forebay system", "version": 1, "host": "h", "limits": [entry]}
    out.write_text(json.dumps(document))
    measure([directory(tmp_path)], out, again=True)
    (network,) = [limit for limit in system_file.load(out).limits if limit.level == "network"]
    assert (network.size_bytes, network.median) == (7, 5.0)


class _Interrupting:
    """Measures at once, until Ctrl-C comes in a run."""

    label = "an interrupted one"
    scales = spare = False

    def __init__(self, runs: int) -> None:
        self._left = runs

    def run(self, seconds: float, seed: int) -> list[Sample]:
        if self._left == 0:
            raise KeyboardInterrupt
        self._left -= 1
        entry = {"level": "memory", "operation": "copy", "mode": "copy", "size_bytes": 1}
        return [Sample(subject(LIMITS, entry), 100.0 + self._left)]


@pytest.mark.parametrize(("finished", "kept"), [(5, True), (3, False)])
def test_an_interruption_keeps_finished_rounds_if_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: int, kept: bool
) -> None:
    where, out = directory(tmp_path), tmp_path / "system.json"
    tried = 1
    monkeypatch.setattr(Campaign, "_probes", lambda _: [_Interrupting(tried + finished)])
    outcome = measure([where], out, rounds=9)
    assert outcome.interrupted
    assert list(where.iterdir()) == []
    assert out.exists() is kept
    if kept:
        told = system_file.load(out).document
        assert told["campaigns"][0]["rounds"] == finished
        assert told["campaigns"][0]["complete"] is False
        assert len(told[LIMITS][0]["samples"]) == finished


def test_an_interruption_while_files_are_prepared_removes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = directory(tmp_path)
    seen = []

    def interrupt(_path: Path) -> bool:
        seen.extend(where.iterdir())
        raise KeyboardInterrupt

    monkeypatch.setattr(campaign.workspace, "_takes_direct", interrupt)
    monkeypatch.setattr(campaign.place.Place, "in_memory", False)
    outcome = measure([where], tmp_path / "system.json")
    assert (outcome.interrupted, outcome.document) == (True, None)
    assert [path.name.startswith(PREFIX) for path in seen] == [True]
    assert list(where.iterdir()) == []


@pytest.mark.parametrize("name", ["a b:c%d$jobnum", os.fsdecode(b"caf\xe9")])
def test_paths_with_blanks_colons_and_no_utf_8_are_measured(tmp_path: Path, name: str) -> None:
    where = directory(tmp_path, name)
    measure([where], tmp_path / "system.json")
    limits = system_file.load(tmp_path / "system.json").limits
    shown = name.encode(errors="surrogateescape").decode(errors="replace")
    assert {Path(limit.path).name for limit in limits if limit.path} == {shown}
    assert list(where.iterdir()) == []


FAKE_LFS = """#!/bin/sh
if [ "$1" = getstripe ]; then [ "$3" = -S ] && echo 1048576 || echo 4; exit; fi
echo "$@" >> "$0.log"
"""


def test_striping_is_measured_where_it_can_be_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", "lfs", FAKE_LFS)
    lustre = Mount(str(tmp_path), "lustre", "mgs:/scratch")
    monkeypatch.setattr(filesystem, "mount_of", lambda _: lustre)
    measure([directory(tmp_path)], tmp_path / "system.json", processes=2)
    asked = (tmp_path / "bin" / "lfs.log").read_text().splitlines()
    assert [re.sub(r" \S+$", "", line) for line in asked] == [
        "setstripe -c 1 -S 1048576",
        "setstripe -c -1 -S 1048576",
    ]
    system = system_file.load(tmp_path / "system.json")
    shared = [limit for limit in system.limits if limit.files == "shared"]
    assert {limit.stripe_count for limit in shared} == {0, 1, 4}
    assert {rate.stripe_count for rate in system.metadata if rate.operation == "tar"} == {0, 1, 4}


def test_striping_that_is_refused_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", "lfs", "#!/bin/sh\necho 'lfs: not allowed' >&2\nexit 1\n")
    lustre = Mount(str(tmp_path), "lustre", "mgs:/scratch")
    monkeypatch.setattr(filesystem, "mount_of", lambda _: lustre)
    outcome = measure([directory(tmp_path)], tmp_path / "system.json")
    assert any("cannot be striped: lfs: not allowed" in note for note in outcome.notes)


def test_tables_show_each_level_and_how_it_moves(tmp_path: Path) -> None:
    out = tmp_path / "system.json"
    measured = Results()
    limit = {"level": "file system", "path": "/s", "operation": "read", "mode": "cold"}
    for number, rate in enumerate((1e6, 2e6, 3e6, 4e6)):
        measured.add(Sample(subject(LIMITS, {**limit, "size_bytes": MIB}), rate), number)
    first = measured.document("h", {"start": "at night"}, [])
    measured = Results(first)
    for number in range(4):
        measured.add(Sample(subject(LIMITS, {**limit, "size_bytes": MIB}), 9e6), number)
    results.write(measured.document("h", {"start": "by day"}, []), out)
    shown = io.StringIO()
    system_report.show(Console(file=shown, width=200), system_file.load(out).document)
    text = shown.getvalue()
    assert "File system: /s" in text
    assert "unsteady" in text
    assert "2.4 MiB/s, 8.6 MiB/s" in text  # 2.5 and 9 million bytes
    assert "at night, by day" in text
    narrow = io.StringIO()
    system_report.show(Console(file=narrow, width=120), system_file.load(out).document)
    assert "unsteady" in narrow.getvalue()
    assert "…" not in narrow.getvalue()


def test_a_full_table_fits_into_80_columns(tmp_path: Path) -> None:
    """As of --full: what is the same in all rows is said once, above them."""
    measured = Results()
    common = {"level": "file system", "path": "/s", "operation": "write"}
    for mode, processes, order, files in (
        ("direct", 1, "random", "own"),
        ("direct", 16, "sequential", "shared"),
        ("fsync", 16, "sequential", "own"),
    ):
        keys = common | {"mode": mode, "processes": processes, "order": order, "files": files}
        for number, rate in enumerate((140.4 * MIB, 900 * MIB, 888.8 * MIB, 1023 * MIB)):
            size = {"size_bytes": 256 << 10}
            measured.add(Sample(subject(LIMITS, keys | size), rate), number)
    shown = io.StringIO()
    document = measured.document("h", {"start": "at night"}, [])
    system_report.show(Console(file=shown, width=80), document)
    text = shown.getvalue()
    assert "…" not in text
    assert "File system: /s, requests of 256.0 KiB" in text
    rows = [line.split() for line in text.splitlines() if line.startswith("write")]
    assert [row[1:3] for row in rows] == [["direct", "1"], ["direct", "16"], ["fsync", "16"]]
    assert [row[-1] for row in rows] == ["*"] * 3
    assert "* unsteady: the range is more than half of the median" in " ".join(text.split())


BAD_PATHS = {
    "not there": "is not there",
    "a file": "is no directory",
    "/proc/self": "holds no data",
    "/sys": "holds no data",
}


@pytest.mark.parametrize("name", BAD_PATHS)
def test_what_cannot_be_measured_is_refused_before_anything_is(
    forebay: Forebay, tmp_path: Path, name: str
) -> None:
    (tmp_path / "a file").touch()
    answer = forebay("characterise", "system", tmp_path, name)
    assert answer.code == 2
    assert BAD_PATHS[name] in answer.errors
    assert not (tmp_path / "system.json").exists()
    assert not list(tmp_path.glob(f"{PREFIX}*"))


def test_a_place_that_is_not_writable_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place.os, "access", lambda *_: False)
    with pytest.raises(ForebayError, match="is not writable"):
        place.examine(tmp_path)


def test_wrong_usage_and_a_missing_file_have_their_words(forebay: Forebay) -> None:
    for words, said in (
        ((), "there is no PATH"),
        ((".", "--quick", "--full"), "exclude each other"),
        (("--show",), "is not there"),
        ((".", "--rounds", "3"), "is not in the range x>=4"),
        ((".", "-o", "no/such/system.json"), "there is no directory"),
    ):
        answer = forebay("characterise", "system", *words)
        assert answer.code == 2
        assert said in " ".join(answer.errors.split())


def test_an_empty_launcher_is_told(forebay_process: Forebay) -> None:
    """In a process of its own, where the MPIs are looked for."""
    answer = forebay_process("characterise", "system", ".", "--launcher", "")
    assert answer.code == 2
    assert "--launcher is empty" in answer.errors


class _Slow:
    label, scales, spare = "slow", True, False

    def run(self, seconds: float, seed: int) -> list[Sample]:
        raise ProbeError("not run")


def scheduled(count: int, beside_s: float) -> tuple[Schedule, list[int]]:
    listed: list[Probe] = [_Slow() for _ in range(count)]
    schedule = Schedule(listed, rounds=6, run_s=1.5)
    for number in range(count):
        schedule.took(number, 0.1 + beside_s, told_s=0.1)
    return schedule, list(range(count))


@given(st.integers(1, 200), st.floats(0, 3), st.floats(0, 100))
def test_a_quick_campaign_fits_into_five_minutes_or_is_refused(
    count: int, beside_s: float, spent_s: float
) -> None:
    schedule, numbers = scheduled(count, beside_s)
    if LEAST_ROUNDS * count * (beside_s + 0.25) + spent_s > 290:
        with pytest.raises(ForebayError, match="--quick is for five minutes"):
            planned_quick(schedule, numbers, spent_s, paths=2)
        return
    planned_quick(schedule, numbers, spent_s, paths=2)
    assert LEAST_ROUNDS <= schedule.rounds <= 6
    assert 0.25 <= schedule.run_s <= 1.5
    assert spent_s + schedule.rounds * schedule.round_s(numbers) <= 291


def test_rounds_are_given_up_before_runs_get_too_short() -> None:
    schedule, numbers = scheduled(60, 0.5)
    planned_quick(schedule, numbers, 20.0, paths=1)
    assert schedule.rounds == 5
    few, numbers = scheduled(20, 0.3)
    planned_quick(few, numbers, 20.0, paths=1)
    assert (few.rounds, few.run_s) == (6, 1.5)


def test_measurements_that_can_be_spared_go_first() -> None:
    schedule, numbers = scheduled(33, 1.7)
    with pytest.raises(ForebayError, match="five minutes"):
        planned_quick(schedule, numbers, 60.0, paths=1)
    for number in range(8):
        schedule.probes[number].spare = True  # type: ignore[misc]
    assert planned_quick(schedule, numbers, 60.0, paths=1) == numbers[8:]


RATES = st.lists(st.floats(1, 1e12), min_size=4, max_size=40)


@given(RATES, RATES)
def test_merged_samples_are_all_there_and_their_summary_is_in_order(
    first: list[float], second: list[float]
) -> None:
    entry = {"level": "memory", "operation": "copy", "mode": "copy", "size_bytes": 8}
    document: dict[str, Any] | None = None
    for rates in (first, second):
        measured = Results(document)
        for rate in rates:
            measured.add(Sample(subject(LIMITS, entry), rate), 1.0)
        document = measured.document("h", {"start": "now"}, [])
    assert document is not None
    (limit,) = document[LIMITS]
    told = limit["bytes_per_second"]
    assert len(limit["samples"]) == len(first) + len(second)
    assert told["least"] <= told["low"] <= told["median"] <= told["high"] <= told["most"]
    assert told["coverage"] >= 0.95
    assert document["checksum"] == checksum(json.loads(json.dumps(document)))


@given(st.text())
def test_an_answer_of_fio_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(FioError):
        rate_of(text, "read")


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"error": 28, "write": {"io_bytes": 1, "runtime": 1}}, "No space left"),
        ({"error": 0, "write": {"io_bytes": 0, "runtime": 1}}, "moved nothing"),
        ({"error": 0, "read": {"io_bytes": 1, "runtime": 1}}, "no answer"),
    ],
)
def test_what_fio_says_of_a_failure_is_handed_on(job: dict[str, Any], said: str) -> None:
    words = "fio: pid=3, err=28/file:filesetup.c:223, func=write, error=No space left on device\n"
    with pytest.raises(FioError, match=said):
        rate_of(words + json.dumps({"jobs": [job]}), "write")
