"""Goal: the load of a program's file systems is looked at without leaving anything, and a verdict
says where it was uneven. What a probe takes is the machine's, and not asserted."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Forebay, read_json
from made_campaigns import evaluation
from rich.console import Console

from forebay import filesystem
from forebay.evaluate import evaluation_report, storage_probe, stored
from forebay.evaluate.campaign import write_json
from forebay.evaluate.evaluation import Evaluation
from forebay.evaluate.storage_probe import StorageLoad
from forebay.filesystem import Mount

QUIET, BUSY = StorageLoad("/scratch", 0.002, 0.001), StorageLoad("/scratch", 0.09, 0.001)


def test_a_probe_writes_and_reads_and_leaves_nothing(tmp_path: Path) -> None:
    (load,) = storage_probe.probe([tmp_path])
    assert load.path == str(tmp_path)
    assert load.write_s is not None
    assert load.write_s > 0
    assert load.read_s is not None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("refused", [os.O_TMPFILE, os.O_DIRECT, os.O_TMPFILE | os.O_DIRECT])
def test_where_files_need_names_or_take_no_direct_access_they_are_removed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    """As NFS and FUSE answer."""
    real, names = os.open, []

    def opened(path: Path, flags: int, mode: int = 0o777) -> int:
        if any(flags & each == each for each in (os.O_TMPFILE, os.O_DIRECT) if refused & each):
            raise OSError(22, os.strerror(22))
        names.append(Path(path).name)
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", opened)
    (load,) = storage_probe.probe([tmp_path])
    assert load.read_s is not None
    assert list(tmp_path.iterdir()) == []
    if refused & os.O_TMPFILE:
        assert names[-1].startswith(".forebay-probe-")


@pytest.mark.parametrize(("kind", "syncs"), [("ext4", 0), ("fuse.any", 4), ("lustre", 4)])
def test_writes_are_synced_but_on_disks_of_this_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, syncs: int
) -> None:
    if filesystem.mount_of(tmp_path).type == "tmpfs":
        pytest.skip("memory may take no O_DIRECT")
    synced: list[int] = []
    monkeypatch.setattr(filesystem, "mount_of", lambda path: Mount(str(path), kind, "x"))
    monkeypatch.setattr(storage_probe, "_LIMIT_S", 60.0)
    monkeypatch.setattr(os, "fsync", synced.append)
    storage_probe.probe([tmp_path])
    assert len(synced) == syncs


def test_a_probe_that_is_broken_off_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "O_TMPFILE", 0)  # a directory cannot be opened for writing
    monkeypatch.setattr(os, "pwrite", interrupted)
    with pytest.raises(KeyboardInterrupt):
        storage_probe.probe([tmp_path])
    assert list(tmp_path.iterdir()) == []


def test_places_that_are_full_or_gone_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    assert storage_probe.probe([tmp_path / "gone"]) == []
    monkeypatch.setattr(os, "pwrite", full)
    assert storage_probe.probe([tmp_path]) == []
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_begun_after_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_probe, "_LIMIT_S", 0.0)
    assert storage_probe.probe([tmp_path]) == [StorageLoad(str(tmp_path), None, None)]


def test_one_place_of_each_file_system_is_probed_and_none_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("few", "many", "most", "memory"):
        (tmp_path / name).mkdir()
    counts = {"few": 1, "many": 2, "most": 3, "memory": 9}

    def mount_of(path: Path) -> Mount:
        return Mount(str(path), "tmpfs" if path.name == "memory" else "lustre", "server")

    monkeypatch.setattr(filesystem, "mount_of", mount_of)
    paths = [f"{tmp_path}/{name}/{n}" for name, count in counts.items() for n in range(count)]
    assert storage_probe.places_of(paths) == [tmp_path / "most", tmp_path / "many"]


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        (QUIET, BUSY, True),
        (BUSY, QUIET, True),
        (QUIET, QUIET, False),
        (QUIET, replace(QUIET, read_s=0.0029), False),  # too short to be noticed
        (BUSY, replace(BUSY, write_s=0.2), False),
        (QUIET, replace(QUIET, read_s=None), True),  # the limit was over
        (QUIET, StorageLoad("/other", 9.0, 9.0), False),
    ],
)
def test_loads_are_uneven_where_one_is_several_times_the_other(
    one: StorageLoad, other: StorageLoad, differ: bool
) -> None:
    assert storage_probe.uneven([one], [other]) == (["/scratch"] if differ else [])


def with_loads(busy_blocks: int) -> Evaluation:
    """Of 12 blocks, those in which the storage was loaded beside the candidate 'best'."""
    found = evaluation()
    found.runs = [
        replace(
            run,
            storage_before=[
                BUSY if run.configuration == "best" and run.block <= busy_blocks else QUIET
            ],
        )
        for run in found.runs
    ]
    return found


def test_a_verdict_says_that_loads_were_uneven(tmp_path: Path) -> None:
    found = with_loads(5)
    best, same = found.verdict("best"), found.verdict("same")
    assert best is not None
    assert same is not None
    assert best.reasons == (
        "/scratch was loaded otherwise beside one run than beside the other in 5 of 12 blocks: a "
        "quieter time needs fewer runs",
    )
    assert same.reasons == ()
    write_json(found.as_json(), tmp_path / "e.json")
    read = stored.load(tmp_path / "e.json")
    assert read.given["best"] == best
    assert read.runs[0].storage_before == found.runs[0].storage_before
    console = Console(record=True, width=200, file=(tmp_path / "o").open("w"))
    evaluation_report.show(console, found)
    assert best.reasons[0] in console.export_text()


def test_a_block_or_two_among_many_are_not_worth_a_word() -> None:
    verdict = with_loads(2).verdict("best")
    assert verdict is not None
    assert verdict.reasons == ()


def test_a_campaign_looks_at_the_storage_beside_each_run(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    answer = forebay(
        "evaluate", "--configs", "default,stock", "-n", "2", "--json", "e.json",
        "--", *program, "data/out.dat",
    )  # fmt: skip
    assert answer.code == 0, answer.output + answer.errors
    runs = read_json(tmp_path / "e.json")["runs"]
    loads = [load for run in runs for at in ("before", "after") for load in run[f"storage_{at}"]]
    on_disk = filesystem.mount_of(tmp_path).type not in ("tmpfs", "ramfs")
    assert {load["path"] for load in loads} == ({str(tmp_path / "data")} if on_disk else set())
    assert len(loads) == (2 * len(runs) if on_disk else 0)
    assert list((tmp_path / "data").iterdir()) == [tmp_path / "data" / "out.dat"]
