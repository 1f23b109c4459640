"""Goal: a file whose name is no UTF-8 is a file like any other, to every command that meets it.

Method: the commands as a user types them, with such names for what a program reads and writes and
for what they make themselves; a program that is really traced; a stand-in for what is measured.
"""

import json
import os
import shutil
import tomllib
from pathlib import Path

import pytest
from conftest import Forebay, read_json
from made_runs import MIB, MadeRun
from test_configure_command import WORDS, traced
from test_trace_command import REAL_LIBRARY

from forebay.report import contents
from forebay.trace.directory import Trace

NAME = os.fsdecode(b"\xff\xfe")
OTHER = os.fsdecode(b"\xfe\xff")
REPLACED = "\ufffd\ufffd"
CONTENT = b"x" * 300_000


def _read_bytes(trace: Trace) -> dict[int, int]:
    """What was read of each file, by its number."""
    table = trace.table("posix")
    read: dict[int, int] = {}
    for call, file, result in zip(
        *(table[name].to_pylist() for name in ("call", "file", "result")), strict=True
    ):
        if call == "read":
            read[file] = read.get(file, 0) + result
    return read


@pytest.mark.skipif(
    not (REAL_LIBRARY / "libforebay-trace.so").is_file(),
    reason="libforebay-trace.so is not built (make build, or set FOREBAY_LIBRARY_DIR)",
)
def test_what_a_program_reads_is_traced_told_and_exported(forebay: Forebay, tmp_path: Path) -> None:
    Path(NAME).write_bytes(CONTENT)
    Path(OTHER).write_bytes(CONTENT[:1000])
    whole = len(CONTENT) + 1000
    trace = Path(f"{NAME}.trace")
    library = {"FOREBAY_LIBRARY_DIR": str(REAL_LIBRARY)}
    answer = forebay("trace", "-o", trace, "--", "cat", NAME, OTHER, **library)
    assert (answer.code, len(answer.output)) == (0, whole), answer.errors
    assert answer.errors.startswith(f"{REPLACED}.trace: ")
    files = Trace(trace).table("files").to_pylist()
    read = {files[file]["path_bytes"]: size for file, size in _read_bytes(Trace(trace)).items()}
    paths = [os.fsencode(tmp_path / name) for name in (NAME, OTHER)]
    assert read == {paths[0]: len(CONTENT), paths[1]: 1000}
    assert Trace(trace).run.command == ["cat", REPLACED, REPLACED]

    answer = forebay("characterise", "app", trace, "--json", f"{NAME}.json")
    assert answer.code == 0, answer.errors
    assert f"/{REPLACED}" in answer.output
    found = read_json(Path(f"{NAME}.json"))
    phases = found["layers"]["posix"]["phases"]
    assert {Path(phase["series"]).name for phase in phases} == {REPLACED}
    assert sum(phase["bytes"] for phase in phases) == whole

    answer = forebay("report", trace, "-o", f"{NAME}.html", "--json", "report.json")
    assert answer.code == 0, answer.errors
    assert f"/{REPLACED}" in Path(f"{NAME}.html").read_text("utf-8")
    assert read_json(Path("report.json"))["funnel"]["posix"]["read_bytes"] == whole

    answer = forebay("export", trace, "--perfetto", f"{NAME}.perfetto")
    assert answer.code == 0, answer.errors
    drawn = json.loads(Path(f"{NAME}.perfetto").read_text("utf-8"))["traceEvents"]
    assert str(tmp_path / REPLACED) in {each.get("args", {}).get("file") for each in drawn}

    answer = forebay("export", trace, "--darshan", f"{NAME}.darshan")
    assert answer.code == 0, answer.errors
    answer = forebay("import", f"{NAME}.darshan", "-o", f"{NAME}.again")
    assert answer.code == 0, answer.errors
    again = Trace(Path(f"{NAME}.again"))
    # PyDarshan reads no log with other names than UTF-8, but files that look alike are two.
    assert sorted(_read_bytes(again).values()) == [1000, len(CONTENT)]
    shown = again.table("files")["path"].to_pylist()
    assert [shown[file] for file in _read_bytes(again)] == 2 * [str(tmp_path / REPLACED)]


@pytest.mark.skipif(
    not (REAL_LIBRARY / "libforebay-posix.so").is_file(),
    reason="libforebay-posix.so is not built (make build, or set FOREBAY_LIBRARY_DIR)",
)
def test_what_a_program_reads_is_recorded_shown_and_replayed(
    forebay: Forebay, tmp_path: Path
) -> None:
    sizes = {NAME: 2 * MIB, OTHER: 3 * MIB}
    for name, size in sizes.items():
        Path(name).write_bytes(CONTENT * 12)
        os.truncate(name, size)
    # The C library compares names by characters, in a locale that has some.
    surroundings = {"FOREBAY_LIBRARY_DIR": str(REAL_LIBRARY), "LC_ALL": "C.UTF-8"}
    command = ["--", "cat", *sizes]
    answer = forebay("run", "--record", "--intent-out", f"{NAME}.toml", *command, **surroundings)
    assert (answer.code, len(answer.output)) == (0, sum(sizes.values())), answer.errors
    sections = tomllib.loads(Path(f"{NAME}.toml").read_text("utf-8"))["file"]
    assert {s["path"]: s["willneed"] for s in sections} == {
        f"{tmp_path}/\\xff\\xfe": [[0, 2 * MIB]],
        f"{tmp_path}/\\xfe\\xff": [[0, 3 * MIB]],
    }

    answer = forebay("intent", "show", f"{NAME}.toml")
    assert answer.code == 0, answer.errors
    assert f"{tmp_path}/\\xff\\xfe" in answer.output

    words = ["--intent", f"{NAME}.toml", "--json", "replay.json"]
    answer = forebay("run", *words, *command, **surroundings)
    assert (answer.code, len(answer.output)) == (0, sum(sizes.values())), answer.errors
    records = read_json(Path("replay.json"))["prefetch"]["records"]
    assert sorted(record["bytes_asked"] for record in records) == sorted(sizes.values())


@pytest.mark.skipif(
    not (REAL_LIBRARY / "libforebay-trace.so").is_file(),
    reason="libforebay-trace.so is not built (make build, or set FOREBAY_LIBRARY_DIR)",
)
def test_a_trace_that_is_named_after_its_program_is_made(forebay: Forebay, tmp_path: Path) -> None:
    program = shutil.which("true")
    assert program is not None
    (tmp_path / NAME).symlink_to(program)
    answer = forebay("trace", "--", f"./{NAME}", FOREBAY_LIBRARY_DIR=str(REAL_LIBRARY))
    assert answer.code == 0, answer.errors
    assert Trace(tmp_path / f"{NAME}.trace").run.complete


def test_a_command_that_writes_such_a_file_is_evaluated(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    command = [*program, f"out{NAME}", "--obey"]
    words = ["--configs", "default,stock", "-n", "2", "--json", f"{NAME}.json"]
    answer = forebay("evaluate", *words, "--", *command)
    assert answer.code == 0, answer.output + answer.errors
    assert read_json(tmp_path / f"{NAME}.json")["command"] == command
    answer = forebay("report", f"{NAME}.json", "-o", f"{NAME}.html", "--json", "told.json")
    assert answer.code == 0, answer.errors
    assert "fake_program.py" in (tmp_path / f"{NAME}.html").read_text("utf-8")
    assert set(read_json(tmp_path / "told.json")["verdicts"]) == {"stock"}


def test_a_command_that_writes_such_a_file_is_configured(
    forebay: Forebay, program: list[str], tmp_path: Path
) -> None:
    command = [*program, f"out{NAME}", "--obey", "--best", "cb_nodes=2"]
    # The trace is of this very command, as far as a trace can tell.
    shown = [word.replace(NAME, REPLACED) for word in command]
    trace = traced(tmp_path, command=shown)
    answer = forebay("configure", trace, *WORDS, "--max-runs", "16", "--", *command)
    assert answer.code == 0, answer.output + answer.errors
    assert "of another command" not in answer.output
    assert not (tmp_path / f"out{NAME}").exists()
    with (tmp_path / "configurations.toml").open("rb") as file:
        best = tomllib.load(file)["configuration"]["best"]
    assert best["hints"]["cb_nodes"] == "2"
    assert read_json(tmp_path / "s.json")["command"] == command
    answer = forebay("report", "s.json", "-o", "s.html", "--json", "told.json")
    assert answer.code == 0, answer.errors
    assert read_json(tmp_path / "told.json")["command"] == command


def test_a_command_that_cannot_be_told_is_not_given_to_copy(tmp_path: Path) -> None:
    for name, word, lines in (("a", "data", 1), ("b", REPLACED, 0)):
        run = MadeRun(tmp_path / name, ranks=1, run={"command": ["./program", word]})
        run.mpi("write", 0, 500, MIB, offset=0)
        run.posix("pread", 0, 200, 4 * MIB, offset=0, within="mpi")
        run.posix("pwrite", 200, 200, 4 * MIB, offset=0, within="mpi")
        found = contents.examine(run.trace())
        assert any(finding.prove for finding in found.findings)
        assert len(found.lines) == lines
        assert sum("no line to copy" in each for each in found.caveats) == 1 - lines
