"""Goal: what is planted in a run is found, with the seconds that are known, and what is not there
is not.

Method: runs of which every call is known, with hints, openings and stripes.
"""

import errno
import os
from pathlib import Path

import pytest
from made_runs import MIB, MadeRun

from forebay import filesystem
from forebay.evaluate.in_force import NOT_REPORTED
from forebay.report import asked_hints, contents
from forebay.report.findings import Finding

KB = 1000
FILES = 100


@pytest.fixture
def run(tmp_path: Path) -> MadeRun:
    return MadeRun(tmp_path / "run")


def finding(run: MadeRun, key: str) -> Finding | None:
    found = contents.examine(run.trace()).findings
    return next((each for each in found if each.key == key), None)


def small_files(run: MadeRun, stripes: list[tuple[int, int] | None], open_ms: float) -> None:
    """Files of 300 KB, read one after another: an opening, 1 ms to read, a close of 0.1 ms."""
    first = len(run.files)
    run.files += [f"/scratch/small/{first + place}" for place in range(len(stripes))]
    run.stripes = [*(run.stripes or [None] * first), *stripes]
    for place in range(first, first + len(stripes)):
        start = place * 8
        run.posix("open", start, open_ms, file=place)
        run.posix("read", start + open_ms, 1, 300 * KB, file=place, offset=0)
        run.posix("close", start + open_ms + 1, 0.1, file=place)


def test_small_files_on_many_servers_are_found(run: MadeRun) -> None:
    small_files(run, [(MIB, 48)] * FILES, open_ms=4)
    found = finding(run, "small-files-striped")
    assert found is not None
    assert found.title == "Small files on many servers: 100 on 48 each"
    assert found.confidence == "low"
    assert found.seconds == pytest.approx(FILES * 4.1e-3 * 47 / 48)
    assert "lfs" not in found.advice  # they are on ext4, as far as the trace tells


def test_waiting_for_what_was_written_is_not_laid_to_the_servers_of_small_files(
    run: MadeRun,
) -> None:
    small_files(run, [(MIB, 48)] * FILES, open_ms=4)
    for place in range(len(run.files) - FILES, len(run.files)):
        run.posix("write", place * 8 + 6, 0.1, 300 * KB, file=place, offset=0)
    found = finding(run, "small-files-striped")
    assert found is not None
    assert found.seconds == pytest.approx(FILES * 4e-3 * 47 / 48)


def test_ranks_that_open_small_files_together_wait_for_each_other(run: MadeRun) -> None:
    run.ranks = run.processes = 2
    small_files(run, [(MIB, 48)] * FILES, open_ms=4)
    for place in range(len(run.files) - FILES, len(run.files)):
        for rank in range(2):
            run.mpi("open", place * 8, 5, process=rank, file=place)
    found = finding(run, "small-files-striped")
    assert found is not None
    assert found.seconds == pytest.approx(FILES * 2 * 5e-3 * 47 / 48 / 2)
    assert "took with waiting in MPI_File_open 1000.0 ms" in found.evidence[1]


def test_the_line_for_small_files_is_for_lustre_and_a_shell(run: MadeRun) -> None:
    small_files(run, [(MIB, 48)] * FILES, open_ms=4)
    run.files = [name.replace("small", "so small") for name in run.files]
    run.file_systems = ["lustre"] * len(run.files)
    found = finding(run, "small-files-striped")
    assert found is not None
    assert found.advice.startswith("Try one stripe ")
    assert "made: lfs setstripe -c 1 '/scratch/so small'. " in found.advice


def test_small_files_are_measured_by_those_with_one_stripe(run: MadeRun) -> None:
    small_files(run, [(MIB, 48)] * FILES, open_ms=4)
    small_files(run, [(MIB, 1)] * 20, open_ms=1)
    found = finding(run, "small-files-striped")
    assert found is not None
    assert found.confidence == "medium"
    assert found.seconds == pytest.approx(FILES * 3e-3)
    assert "took 2.1 ms each (median of 20)" in found.evidence[2]


@pytest.mark.parametrize(
    "stripes", [[(MIB, 1)] * FILES, [None] * FILES, [(MIB, 48)] * 10 + [None] * 90]
)
def test_files_with_one_stripe_or_few_with_many_are_no_finding(
    run: MadeRun, stripes: list[tuple[int, int] | None]
) -> None:
    small_files(run, stripes, open_ms=4)
    assert finding(run, "small-files-striped") is None


def test_large_files_on_many_servers_are_no_finding(run: MadeRun) -> None:
    run.files, run.stripes = [], []
    for place in range(20):
        run.files.append(f"/scratch/large/{place}")
        run.stripes.append((MIB, 48))
        run.posix("open", 10 * place, 4, file=place)
        run.posix("read", 10 * place + 4, 5, 64 * MIB, file=place, offset=0)
    assert finding(run, "small-files-striped") is None


def test_small_files_that_cost_no_more_are_no_finding(run: MadeRun) -> None:
    small_files(run, [(MIB, 48)] * FILES, open_ms=1)
    small_files(run, [(MIB, 1)] * 20, open_ms=1)
    assert finding(run, "small-files-striped") is None


def hinted(run: MadeRun, asked: dict[str, str], in_force: dict[str, str], **opening: str) -> None:
    """One rank writes 300 ms collectively and 100 ms for itself, and reads 50 ms."""
    run.ranks = run.processes = 1
    run.hints = [asked, in_force]
    run.openings = [{"hints_asked": 0} | opening]
    place = {"opening": 0, "hints": 1}
    run.mpi("write_all", 100, 300, MIB, collective=True, **place)
    run.mpi("write", 500, 100, MIB, collective=False, **place)
    run.mpi("read", 700, 50, MIB, collective=False, **place)


@pytest.mark.parametrize(
    ("asked", "in_force", "seconds"),
    [
        ({"cb_nodes": "8"}, {"cb_nodes": "1"}, 0.3),
        ({"romio_ds_write": "enable"}, {"romio_ds_write": "disable"}, 0.1),
        ({"ind_rd_buffer_size": "4MiB"}, {"ind_rd_buffer_size": "65536"}, 0.05),
        ({"striping_factor": "4"}, {"cb_nodes": "1"}, 0.45),
        ({"cb_node": "4", "cb_nodes": "8"}, {"cb_nodes": "1"}, 0.3),
    ],
)
def test_hints_that_are_not_in_force_are_found_with_the_calls_they_were_for(
    run: MadeRun, asked: dict[str, str], in_force: dict[str, str], seconds: float
) -> None:
    hinted(run, asked, in_force)
    found = finding(run, "hints-not-in-force")
    assert found is not None
    assert found.seconds == pytest.approx(seconds)
    assert found.confidence == "low"
    assert found.title.endswith(": " + ", ".join(asked))
    key = next(iter(asked))
    assert found.evidence[0].startswith(
        f"{key}: asked {asked[key]}, in force {in_force.get(key, NOT_REPORTED)}; its "
    )


@pytest.mark.parametrize(
    ("asked", "in_force", "opening"),
    [
        ({"cb_buffer_size": "1MiB"}, {"cb_buffer_size": "1048576"}, {}),
        ({"romio_cb_write": "true"}, {"romio_cb_write": "enable"}, {}),
        # What is of no effect by itself, or for another engine than the one that is there.
        ({"access_style": "read_once"}, {"cb_nodes": "1"}, {}),
        ({"forebay_cache": "enable", "e10_cache": "enable"}, {"cb_nodes": "1"}, {}),
        # Open MPI's own library tells of no hints at all.
        ({"cb_nodes": "8"}, {}, {}),
        # Forebay tells of what it has, and knows some hints by other names.
        ({"e10_cache": "enable"}, {"cb_nodes": "1"}, {"mode": "engine"}),
    ],
)
def test_hints_that_hold_or_of_which_nothing_is_told_are_no_finding(
    run: MadeRun, asked: dict[str, str], in_force: dict[str, str], opening: dict[str, str]
) -> None:
    hinted(run, asked, in_force, **opening)
    assert finding(run, "hints-not-in-force") is None


@pytest.mark.parametrize(
    ("asked", "in_force", "opening", "state", "reason"),
    [
        ("cb_nodes", {"cb_nodes": "8", "romio_ds_write": "automatic"}, {}, "in force", ""),
        ("cb_nodes", {"cb_nodes": "1"}, {}, "not in force", ""),
        # It gives back what it was given, known or not.
        ("cb_nodes", {"cb_nodes": "8"}, {}, "not recorded", "the MPI does not tell"),
        ("cb_nodes", {}, {}, "not recorded", "the MPI does not tell"),
        (
            "striping_factor",
            {"striping_factor": "8", "cb_nodes": "1"},
            {},
            "not recorded",
            "the file",
        ),
        ("e10_cache_threads", {"cb_nodes": "1"}, {}, "not recorded", "it is for Forebay"),
        ("cb_nodes", {"cb_nodes": "8"}, {"mode": "engine"}, "in force", ""),
        ("e10_cache_threads", {"forebay_cache_threads": "8"}, {"mode": "engine"}, "in force", ""),
        ("e10_cache_threads", {"cb_nodes": "8"}, {"mode": "engine"}, "not recorded", ""),
    ],
)
def test_each_hint_that_was_asked_for_is_told_with_what_became_of_it(
    run: MadeRun,
    asked: str,
    in_force: dict[str, str],
    opening: dict[str, str],
    state: str,
    reason: str,
) -> None:
    hinted(run, {asked: "8", "access_style": "read_once"}, in_force, **opening)
    (told,) = asked_hints.of(run.trace())
    assert (told.setting.key, told.setting.asked, told.setting.state) == (asked, "8", state)
    assert told.setting.reason.startswith(reason)
    assert bool(told.setting.reason) == bool(reason)
    assert told.paths == run.files[:1]


def test_a_size_with_a_unit_is_not_in_force_where_the_mpi_knows_none(run: MadeRun) -> None:
    hinted(run, {"cb_buffer_size": "1MiB"}, {"cb_buffer_size": "1MiB", "cb_nodes": "1"})
    (told,) = asked_hints.of(run.trace())
    assert (told.setting.state, told.setting.observed) == ("not in force", ("1",))


def test_a_hint_that_one_view_had_is_no_finding(run: MadeRun) -> None:
    hinted(run, {"cb_nodes": "8"}, {"cb_nodes": "1"})
    run.hints.append({"cb_nodes": "8"})
    run.mpi("write_all", 800, 50, MIB, collective=True, opening=0, hints=2)
    assert finding(run, "hints-not-in-force") is None


def test_striping_is_judged_by_the_file_where_that_is_known(run: MadeRun) -> None:
    run.stripes = [(65536, 4)]
    hinted(run, {"striping_factor": "4", "striping_unit": "1048576"}, {"striping_factor": "1"})
    found = finding(run, "hints-not-in-force")
    assert found is not None
    assert found.title.endswith(": striping_unit")
    assert found.evidence[0].startswith("striping_unit: asked 1048576, in force 65536;")


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENOTDIR])
def test_names_that_are_not_there_are_found(run: MadeRun, number: int) -> None:
    for turn in range(20):
        run.posix("open", 10 * turn, 2, errno=number, result=-1)
    found = contents.examine(run.trace()).findings
    assert [each.key for each in found] == ["not-there"]
    assert found[0].seconds == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("number", "told", "advice"),
    [
        (errno.EEXIST, "EEXIST (File exists)", "such as a lock"),
        (errno.EACCES, "EACCES (Permission denied)", "Give the program access"),
        (errno.EMFILE, "EMFILE (Too many open files)", "ulimit -n"),
        (errno.ENOSPC, "ENOSPC (No space left on device)", "Free some space"),
        (errno.EIO, "EIO (Input/output error)", "why it is tried again"),
    ],
)
def test_calls_that_fail_are_told_by_their_error(
    run: MadeRun, number: int, told: str, advice: str
) -> None:
    for turn in range(20):
        run.posix("open", 10 * turn, 2, errno=number, result=-1)
    run.posix("stat", 300, 2, errno=number, result=-1)
    found = contents.examine(run.trace()).findings
    assert [each.key for each in found] == [f"failed-{told.split()[0].lower()}"]
    assert found[0].title == f"20 openings and 1 look-up failed with {told}"
    assert found[0].seconds == pytest.approx(0.042)
    assert advice in found[0].advice


def test_a_call_that_fails_once_is_no_finding(run: MadeRun) -> None:
    run.posix("open", 0, 50, errno=errno.EACCES, result=-1)
    assert contents.examine(run.trace()).findings == []


OLD, OTHER = 0, 1  # files


@pytest.mark.parametrize(
    ("flags", "between", "spared"),
    [
        (os.O_RDONLY, [], 19),
        (os.O_CREAT | os.O_WRONLY | os.O_APPEND, [], 19),
        (os.O_CREAT | os.O_WRONLY | os.O_TRUNC, [], 0),
        (os.O_CREAT | os.O_WRONLY | os.O_EXCL, [], 0),
        (os.O_CREAT | os.O_WRONLY, [("unlink", OLD, -1)], 0),
        (os.O_CREAT | os.O_WRONLY, [("rename", OTHER, OLD)], 0),  # away
        (os.O_RDONLY, [("rename", OLD, OTHER)], 0),  # onto it
        (os.O_RDONLY, [("unlink", OTHER, -1)], 19),
    ],
)
def test_openings_of_a_file_that_is_a_new_one_each_time_are_needed(
    run: MadeRun, flags: int, between: list[tuple[str, int, int]], spared: int
) -> None:
    run.files.append("/scratch/other")
    for turn in range(20):
        run.posix("open", 10 * turn, 2, argument=flags)
        for call, file, argument in between:
            run.posix(call, 10 * turn + 5, 0.01, file=file, argument=argument)
    found = finding(run, "opened-again")
    assert round(0 if found is None else found.seconds / 0.002) == spared


def test_a_new_file_that_is_opened_again_is_a_finding_of_its_part(run: MadeRun) -> None:
    """Made anew ten times, and each time opened twice more."""
    for turn in range(10):
        for place, flags in enumerate((os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0, 0)):
            run.posix("open", 30 * turn + 10 * place, 2, argument=flags)
    found = finding(run, "opened-again")
    assert found is not None
    assert (found.seconds, found.confidence) == (pytest.approx(0.04), "high")
    assert found.evidence[0].startswith("20 of 30 such calls")
    assert found.evidence[-1].startswith("not counted: 9 more that made a file anew")


def counted(run: MadeRun, mpi_s: float, posix_s: float, ranks: int) -> None:
    """A log of a shared file, 72 MiB of which become 288, beside one that is moved as asked."""
    run.ranks = run.processes = ranks
    run.files.append("/scratch/plain")
    run.run = {"origin": {"kind": "darshan"}}
    shapes = [(0, 72 * MIB, 288 * MIB, mpi_s, posix_s), (1, MIB, MIB, 0.1, 0.1)]
    sizes = [f"ACCESS{place}_{word}" for place in range(1, 5) for word in ("ACCESS", "COUNT")]
    run.counters = {
        "mpi_io": [
            {"rank": -1, "file": file, "MPIIO_COLL_WRITES": 9, "MPIIO_BYTES_WRITTEN": up,
             "MPIIO_F_WRITE_TIME": above} | {f"MPIIO_{name}": 0 for name in sizes}
            for file, up, _, above, _ in shapes
        ],
        "posix": [
            {"rank": -1, "file": file, "POSIX_WRITES": 9, "POSIX_BYTES_WRITTEN": down,
             "POSIX_F_WRITE_TIME": below} | {f"POSIX_{name}": 0 for name in sizes}
            for file, _, down, _, below in shapes
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("mpi_s", "ranks", "process_s", "confidence"),
    [
        (3.6, 4, 4 * 0.3, "low"),  # were all ranks waiting while POSIX moves them
        (0.7, 4, 0.75 * 0.7, "medium"),  # their part of what there is of MPI-IO
        (0.7, 1, 0.3, "medium"),  # nobody waits for another
    ],
)
def test_amplification_is_bounded_by_counters_where_there_are_no_calls(
    run: MadeRun, mpi_s: float, ranks: int, process_s: float, confidence: str
) -> None:
    counted(run, mpi_s, 0.4, ranks)
    report = contents.examine(run.trace())
    (found,) = report.findings
    assert (found.key, found.confidence, found.prove) == ("amplification", confidence, True)
    assert found.seconds == pytest.approx(process_s / ranks)
    assert found.evidence[0] == (
        "288.0 MiB written by POSIX, 72.0 MiB by MPI-IO, in 400.0 ms of all processes"
    )
    assert "300.0 ms of all processes in POSIX" in found.evidence[1]
    assert report.lines == ["forebay compare -- mpiexec -n 4 './a b'"]
    assert report.as_json()["funnel"]["source"] == "counters"


@pytest.mark.parametrize(
    ("lost", "is_found"), [("DXT_POSIX", True), ("POSIX", False), ("MPI-IO", False)]
)
def test_counters_count_where_calls_are_missing_and_they_are_not(
    run: MadeRun, lost: str, is_found: bool
) -> None:
    counted(run, 3.6, 0.4, 4)
    run.posix("write", 0, 10, MIB, within=None)
    run.run |= {"losses": {lost: None}}
    assert (finding(run, "amplification") is not None) == is_found


def test_lustres_attribute_is_read_as_its_header_says() -> None:
    """lov_user_md_v1: magic, pattern, 16 bytes of the object, stripe size, stripe count, first."""
    blob = bytes.fromhex("d00bd10b 01000000") + bytes(16) + bytes.fromhex("00001000 3000 0000")
    stripe = filesystem.parsed_lov(blob)
    assert (stripe.size, stripe.count) == (MIB, 48)
    with pytest.raises(ValueError, match="layout of magic 0xbd60bd0"):
        filesystem.parsed_lov(bytes.fromhex("d00bd60b") + blob[4:])
