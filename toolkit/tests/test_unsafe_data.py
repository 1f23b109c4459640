"""`forebay run` with a write-behind cache: what the cache did is told, and data that is in no file
when the run ends is never passed over."""

import json
import random
import shlex
import time
from pathlib import Path

import pytest
import xxhash
from conftest import Forebay, read_json, result_of
from made_logs import BLOCK, native_directory

from forebay.records import Record
from forebay.unsafe_data import Unsafe, left_in_logs

PIECES = ("forebay-cache", "forebay-leave-log")


@pytest.fixture
def environ(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The library's stand-in and the real forebay-cache, together."""
    built = native_directory()
    if built is None:
        pytest.skip("forebay-cache is not built")
    native = tmp_path / "native"
    native.mkdir()
    for name in PIECES:
        (native / name).symlink_to(built / name)
    library = Path(environ["FOREBAY_LIBRARY_DIR"]) / "libforebay.so"
    (native / library.name).symlink_to(library)
    return {**environ, "FOREBAY_LIBRARY_DIR": str(native)}


@pytest.fixture
def dying(environ: dict[str, str], tmp_path: Path) -> list[str]:
    """A program that writes ten blocks to a log in a directory "local", and is killed."""
    local = tmp_path / "local"
    local.mkdir(mode=0o700)
    source = tmp_path / "source"
    source.write_bytes(random.Random(1).randbytes(10 * BLOCK))
    program = Path(environ["FOREBAY_LIBRARY_DIR"]) / "forebay-leave-log"
    return [
        str(program), "--local", str(local), "--file", str(tmp_path / "out.dat"),
        "--data", str(source), "--block", str(BLOCK), "--committed-blocks", "10",
        "--made", str(int(time.time()) + 3600),  # Whenever this program starts, not before it.
    ]  # fmt: skip


@pytest.fixture
def dying_elsewhere(dying: list[str], tmp_path: Path) -> list[str]:
    """The same on a host "node9", whose logs are where no hint leads."""
    far = tmp_path / "far"
    far.mkdir(mode=0o700)
    words = (str(far) if word == str(tmp_path / "local") else word for word in dying)
    return [*words, "--host", "node9"]


def test_what_a_killed_program_left_is_told_with_the_way_to_recover_it(
    forebay: Forebay, dying: list[str], tmp_path: Path
) -> None:
    hint = f"e10_cache_path={tmp_path / 'local'}"
    answer = forebay("run", "--hint", hint, "--json", "r.json", "--", *dying)
    assert answer.code == 137
    file = tmp_path / "out.dat"
    assert f"{file} is not complete" in answer.errors
    assert "in 1 write-behind log only" in answer.errors
    assert f"forebay cache recover {file}" in answer.errors
    (log,) = read_json(tmp_path / "r.json")["unsafe_logs"]
    assert log["complete_bytes"] == 10 * BLOCK

    recovered = forebay("cache", "recover", str(file))
    assert recovered.code == 0, recovered.errors
    assert file.read_bytes() == (tmp_path / "source").read_bytes()


def test_logs_of_emulated_nodes_are_found_too(
    forebay: Forebay, dying: list[str], tmp_path: Path
) -> None:
    local = tmp_path / "local"
    node = local / "node-3"
    node.mkdir(mode=0o700)
    answer = forebay(
        "run", "--hint", f"forebay_cache_path={local}", "--json", "r.json", "--",
        *(str(node) if word == str(local) else word for word in dying),
    )  # fmt: skip
    assert f"{tmp_path / 'out.dat'} is not complete" in answer.errors
    (log,) = read_json(tmp_path / "r.json")["unsafe_logs"]
    assert Path(log["path"]).is_relative_to(node)


def test_a_mark_of_the_opening_leads_to_logs_that_nothing_else_does(
    forebay: Forebay, dying: list[str], tmp_path: Path
) -> None:
    far = tmp_path / "elsewhere"
    far.mkdir()
    file = far / "out.dat"
    mark = json.dumps({"version": 1, "path": str(file), "log_path": str(tmp_path / "local")})
    name = f"1-1-{xxhash.xxh64_hexdigest(mark.encode())}.cached"
    words = [str(file) if word == str(tmp_path / "out.dat") else word for word in dying]
    marking = f'printf %s "$1" > "$FOREBAY_REPORT_DIR/{name}"; shift; exec "$@"'
    unmarked = forebay("run", "--quiet", "--", *words, "--log", "log-0")
    assert str(file) not in unmarked.errors, "or the mark is not what leads there"
    answer = forebay("run", "--quiet", "--", "bash", "-c", marking, "-", mark, *words)
    assert f"{file} is not complete" in answer.errors, "also where no summary is wanted"


@pytest.mark.parametrize("fails", ["always", "when notices are looked at", "in mid-line"])
def test_where_nobody_can_look_that_is_told(
    forebay: Forebay, dying: list[str], environ: dict[str, str], tmp_path: Path, fails: str
) -> None:
    tool = Path(environ["FOREBAY_LIBRARY_DIR"]) / "forebay-cache"
    real = shlex.quote(str(tool.resolve()))
    tool.unlink()
    does = {
        "always": "exit 1",
        "when notices are looked at": f'case "$*" in *--file*) exit 1;; esac; exec {real} "$@"',
        "in mid-line": "printf '{\"event'; exit 1",
    }
    tool.write_text(f"#!/bin/sh\n{does[fails]}\n")
    tool.chmod(0o755)
    hint = f"e10_cache_path={tmp_path / 'local'}"
    answer = forebay(
        "run", "--hint", hint, "--hint", "e10_cache=enable", "--json", "r.json", "--", *dying
    )
    assert answer.code == 137
    assert "whether more is left in write-behind logs is not known" in answer.errors
    result = read_json(tmp_path / "r.json")
    (why,) = result["unsafe_unseen"]
    assert why
    assert len(result["unsafe_logs"]) == (1 if fails.startswith("when") else 0)


@pytest.mark.parametrize("how", ["unreadable", "lost"])
def test_a_log_of_which_nothing_can_be_had_is_told(
    forebay: Forebay, dying: list[str], tmp_path: Path, how: str
) -> None:
    does = {
        "unreadable": 'for s in "$0"/*/log-0/segment-*; do head -c 8192 /dev/urandom | '
        'dd of="$s" conv=notrunc status=none; done',
        "lost": 'rm -r "$0"/*/log-0',
    }
    words = shlex.join([*dying, "--log", "log-0"])
    hint = f"e10_cache_path={tmp_path / 'local'}"
    answer = forebay(
        "run", "--hint", hint, "--json", "r.json", "--",
        "bash", "-c", f"{words}; {does[how]}; exit 1", str(tmp_path / "local"),
    )  # fmt: skip
    result = read_json(tmp_path / "r.json")
    if how == "lost":
        assert f"{tmp_path / 'out.dat'} lacks what was in 1 write-behind log" in answer.errors
        assert [notice["name"] for notice in result["unsafe_lost"]] == ["log-0"]
    else:
        assert "log-0 cannot be read" in answer.errors
        assert result["unsafe_unseen"]


def test_logs_where_only_a_notice_leads_are_found_too(
    forebay: Forebay, dying: list[str], tmp_path: Path
) -> None:
    answer = forebay("run", "--json", "r.json", "--", *dying)
    assert f"{tmp_path / 'out.dat'} is not complete" in answer.errors
    (log,) = read_json(tmp_path / "r.json")["unsafe_logs"]
    assert Path(log["path"]).is_relative_to(tmp_path / "local")


def test_an_intent_file_says_where_logs_are_too(
    forebay: Forebay, dying: list[str], tmp_path: Path
) -> None:
    intent = tmp_path / "job.toml"
    intent.write_text(
        f'[[file]]\npath = "*"\n[file.cache]\nmode = "enable"\npath = "{tmp_path / "local"}"\n'
    )
    answer = forebay("run", "--intent", intent, "--", *dying)
    assert "is not complete" in answer.errors


def test_logs_of_earlier_runs_are_not_this_ones(
    forebay: Forebay,
    dying: list[str],
    environ: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forebay("run", "--", *dying)
    monkeypatch.setenv("FOREBAY_LIBRARY_DIR", environ["FOREBAY_LIBRARY_DIR"])
    variables = {"FOREBAY_HINTS": f"e10_cache=enable;e10_cache_path={tmp_path / 'local'}"}
    found = left_in_logs(variables, [], failed=False, since_unix_s=0).here
    (mine,) = [log for log in found if log["path"].startswith(str(tmp_path))]
    after = mine["made_unix_s"] + 1
    assert left_in_logs(variables, [], failed=False, since_unix_s=after) == Unsafe()


def test_logs_on_other_hosts_are_told_with_their_names(
    forebay: Forebay, dying_elsewhere: list[str], tmp_path: Path
) -> None:
    answer = forebay(
        "run", "--json", "r.json", "--hint", "e10_cache=enable", "--", *dying_elsewhere
    )  # fmt: skip
    file = tmp_path / "out.dat"
    assert f"{file} lacks what is in write-behind logs on node9" in answer.errors
    assert f"on each: forebay cache recover --partial {file}" in answer.errors
    (notice,) = read_json(tmp_path / "r.json")["unsafe_elsewhere"]
    assert notice["host"] == "node9"


def test_where_logs_are_here_and_elsewhere_each_host_recovers_its_own(
    forebay: Forebay, dying: list[str], dying_elsewhere: list[str], tmp_path: Path
) -> None:
    both = f"{shlex.join([*dying_elsewhere, '--log', 'log-9'])}; {shlex.join(dying)}"
    hint = f"e10_cache_path={tmp_path / 'local'}"
    answer = forebay("run", "--hint", hint, "--", "bash", "-c", both)
    file = tmp_path / "out.dat"
    assert f"Bring them there: forebay cache recover --partial {file}" in answer.errors
    assert f"{file} lacks what is in write-behind logs on node9" in answer.errors
    assert "--lost" not in answer.errors, "nothing is protected"


def test_where_a_host_may_be_rebuilt_that_is_told_and_the_advice_keeps_it_so(
    forebay: Forebay, dying: list[str], dying_elsewhere: list[str], tmp_path: Path
) -> None:
    both = f"{shlex.join([*dying_elsewhere, '--log', 'log-9', '--protected'])}; {shlex.join(dying)}"
    hint = f"e10_cache_path={tmp_path / 'local'}"
    answer = forebay("run", "--hint", hint, "--", "bash", "-c", both)
    file = tmp_path / "out.dat"
    assert f"forebay cache recover --lost NODE {file}" in answer.errors
    recovered = forebay("cache", "recover", "--json", "--partial", file, tmp_path / "local")
    (entry,) = result_of(recovered)["files"]
    assert (entry["logs"], entry["kept_logs"]) == (1, 1)
    assert file.read_bytes() == (tmp_path / "source").read_bytes()


def test_a_run_without_a_cache_that_went_well_is_not_looked_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("forebay.cache.survey", None)
    records: list[Record] = []
    assert left_in_logs({"FOREBAY_HINTS": "cb_nodes=2"}, records, False, 0.0) == Unsafe()


def test_the_summary_tells_what_the_cache_did(forebay: Forebay, program: list[str]) -> None:
    answer = forebay("run", "--", *program, "out.dat", "--cached")
    assert "write-behind cache: took 1.0 MiB, wrote 600.0 KiB to the file" in answer.errors
    assert "calls waited 2.00 s for it" in answer.errors
