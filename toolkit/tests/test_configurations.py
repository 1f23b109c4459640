"""Files of configurations: what they declare, what is refused, and how they are applied."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from conftest import Forebay, read_json
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.apply import FORMATS, apply
from forebay.configurations import Configuration, choose, load, sections_toml
from forebay.errors import ForebayError

EXAMPLE = """
version = 1

[about]
tool = "by hand"

[configuration.best]
description = "8 aggregators"
hints = { cb_nodes = 8, cb_buffer_size = "16MiB", forebay_compress = false }

[[configuration.best.file]]
path = "/scratch/run/*.h5"
striping_factor = 4
striping_unit = "1MiB"

[configuration.best.file.cache]
mode = "enable"

[configuration.mpi-16]
engine = "mpi"
environment = { OMP_NUM_THREADS = 2 }
hints = { cb_nodes = 16, cb_buffer_size = "16MiB", romio_cb_write = "disable" }
"""


@pytest.fixture
def example(tmp_path: Path) -> Path:
    path = tmp_path / "configurations.toml"
    path.write_text(EXAMPLE)
    return path


def test_what_a_file_declares(example: Path) -> None:
    found = load(example)
    assert list(found) == ["default", "stock", "best", "mpi-16"]
    best = found["best"]
    assert best.hints == {"cb_nodes": "8", "cb_buffer_size": "16MiB", "forebay_compress": "false"}
    assert best.sections[0]["cache"] == {"mode": "enable"}
    assert (best.stock, found["mpi-16"].stock) == (False, True)
    assert found["mpi-16"].environment == {"OMP_NUM_THREADS": "2"}
    assert found["mpi-16"].hints["cb_buffer_size"] == "16777216"  # stock MPIs read no units


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("version = 2", "has version 2, and this command reads 1"),
        ("version = true", "has version True"),
        ("", "has version None"),
        ("version = 1\nextra = 1", "'extra' is not known"),
        ("version = 1\nconfiguration = 1", "no table"),
        ("version = 1\n[configuration.default]", "Forebay's own name"),
        ('version = 1\n[configuration."a b"]', "the name holds more than"),
        ("version = 1\n[configuration.a]\nhint = {}", "'hint' is not known"),
        ("version = 1\n[configuration.a]\nengine = 'x'", "engine is 'x'"),
        ("version = 1\n[configuration.a]\nhints = { a = 1.5 }", "no text or number"),
        ("version = 1\n[configuration.a]\nhints = { a = 'b;c' }", "holds ';'"),
        ("version = 1\n[configuration.a]\nenvironment = { 'A$(b)' = 1 }", "no name of a variable"),
        ("version = 1\n[configuration.a]\nfile = 1", "no [[configuration.a.file]]"),
        ("version = 1\n[[configuration.a.file]]\nx = 1", "has no path"),
        ("version = 1\n[[configuration.a.file]]\npath = 'a'\nx = 1.5", "no text, number"),
        ("version = 1\n[[configuration.a.file]]\npath = 'a'\nx = [[2020-01-01]]", "no text"),
        (
            "version = 1\n[configuration.a]\nengine = 'mpi'\n[[configuration.a.file]]\npath = 'a'",
            "for Forebay alone",
        ),
        ("version = ", "is no TOML"),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(ForebayError) as refused:
        load(path)
    assert complaint in refused.value.message


def test_an_unknown_name_lists_the_known_ones(example: Path) -> None:
    with pytest.raises(ForebayError) as refused:
        choose(["best", "worst"], example)
    assert "worst" in refused.value.message
    assert "default, stock, best, mpi-16" in refused.value.advice


keys = st.text('abcdefghijklmnopqrstuvwxyz_ .é"', min_size=1).filter(
    lambda key: key not in ("path", "cache")
)
values = st.one_of(
    st.text(st.characters(codec="utf-8")),
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.lists(st.lists(st.integers(0, 2**40), min_size=2, max_size=2)),
)


@settings(deadline=None)
@given(
    st.lists(st.dictionaries(keys, values, max_size=5), max_size=4),
    st.dictionaries(keys, st.text()),
)
def test_sections_are_written_as_they_were_read(
    tables: list[dict[str, object]], cache: dict[str, str]
) -> None:
    sections = [{"path": "*.h5", **table, "cache": cache} for table in tables]
    written = tomllib.loads(sections_toml(Configuration("c", sections=sections)))
    assert written.get("file", []) == sections


def test_hints_win_over_sections_as_in_the_environment(example: Path) -> None:
    content = tomllib.loads(sections_toml(load(example)["best"]))
    assert [section["path"] for section in content["file"]] == ["/scratch/run/*.h5", "*"]
    assert content["file"][1]["cb_nodes"] == "8"


def test_a_shell_gets_the_variables_and_the_intent_file(example: Path) -> None:
    found = apply(load(example)["best"], "sh", Path())
    assert re.fullmatch(r"cat > best-[0-9a-f]{8}\.toml <<'EOF'", found.lines[0])
    file = found.lines[0].split()[2]
    assert "export FOREBAY_HINTS='cb_nodes=8;cb_buffer_size=16MiB;forebay_compress=false'" in (
        found.lines
    )
    assert found.lines[-1] == f'export FOREBAY_INTENT="$PWD"/{file}'
    assert found.use == ["forebay run -- COMMAND"]
    assert found.undo[2:] == [f"rm {file}", "start it without Forebay: COMMAND"]


def test_the_stock_mpi_gets_its_hints_and_no_forebay(example: Path) -> None:
    found = apply(load(example)["mpi-16"], "slurm", Path())
    assert re.fullmatch(r"cat > mpi-16-[0-9a-f]{8}\.romio <<'EOF'", found.lines[0])
    assert found.lines[1:5] == [
        "cb_nodes 16",
        "cb_buffer_size 16777216",
        "romio_cb_write disable",
        "EOF",
    ]
    assert "export OMPI_MCA_io_ompio_num_aggregators=16" in found.lines
    assert "export OMPI_MCA_fcoll=individual" in found.lines
    assert "export OMP_NUM_THREADS=2" in found.lines
    assert found.lines[-1] == "srun ./program"


# Whatever a value is; and none.
BEFORE = ["/my own/romio.hints", "a 'b\" $(touch made) }\\ \nc", "=", "", None]


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("again", [1, 2])
@pytest.mark.parametrize("shape", ["sh", "romio"])
def test_undoing_gives_back_what_a_shell_had_before(
    example: Path, tmp_path: Path, before: str | None, again: int, shape: str
) -> None:
    """Also where the lines are read twice, and beside a file of the configuration's name."""
    place = tmp_path / "here"
    place.mkdir()
    (place / "mpi-16.romio").write_text("of the user\n")
    found = apply(load(example)["mpi-16"], shape, Path())
    use = found.lines if shape == "sh" else found.use[:-1]
    show = 'printf "%s\\0" "${ROMIO_HINTS-none}" "${OMP_NUM_THREADS-none}"'
    undo = [line for line in found.undo if not line.startswith("start")]
    if shape == "romio":
        undo = undo[:1]  # the file is there by --write alone
    script = "\n".join(["set -eu", *use * again, show, *undo * again, show])
    environ = {"PATH": os.environ["PATH"]} | ({} if before is None else {"ROMIO_HINTS": before})
    script = script.replace("\nrm ", "\nrm -f ")
    done = subprocess.run(
        ["sh", "-c", script], cwd=place, env=environ, capture_output=True, text=True, check=True
    )
    given, threads, back, left = done.stdout.split("\0")[:-1]
    assert given.startswith(f"{place}/mpi-16")
    assert (threads, left) == ("2" if shape == "sh" else "none", "none")
    assert back == ("none" if before is None else before)
    assert done.stderr == ""
    assert {path.name: path.read_text() for path in place.iterdir()} == {
        "mpi-16.romio": "of the user\n"
    }


def test_lines_that_are_a_file_are_used_by_the_name_it_gets(example: Path) -> None:
    best = load(example)["best"]
    found = apply(best, "intent", Path(), Path("my intent.toml"))
    assert found.use == ["forebay run --intent 'my intent.toml' -- COMMAND"]
    assert found.undo == ["rm 'my intent.toml'"]
    found = apply(best, "romio", Path(), Path("/else where/hints"))
    assert found.use[1] == "export ROMIO_HINTS='/else where/hints'"
    assert found.undo[1] == "rm '/else where/hints'"
    found = apply(best, "romio", Path(), Path("-hints"))
    assert (found.use[1], found.undo[1]) == ('export ROMIO_HINTS="$PWD"/./-hints', "rm ./-hints")


def test_romio_gets_what_it_knows_and_hears_what_is_left_out(example: Path) -> None:
    found = apply(load(example)["best"], "romio", Path())
    assert found.lines[:2] == ["cb_nodes 8", "cb_buffer_size 16777216"]
    assert "# not ROMIO's: forebay_compress" in found.lines


def test_striping_is_set_for_the_directory_of_the_files(example: Path) -> None:
    found = apply(load(example)["best"], "lfs", Path())
    # The layout before is shown first: setstripe replaces it, and undoing removes any.
    assert found.lines == [
        "lfs getstripe -d /scratch/run", "lfs setstripe -c 4 -S 1048576 /scratch/run",
    ]  # fmt: skip
    assert found.undo[0] == "lfs setstripe -d /scratch/run"
    assert "set that again" in found.undo[1]
    by_name = Configuration("c", sections=[{"path": "*.h5", "stripe_width": 2}])
    assert apply(by_name, "lfs", Path("a b")).lines[1:] == ["lfs setstripe -c 2 'a b'"]


def test_files_of_one_directory_are_not_striped_in_two_ways() -> None:
    """As `configure` writes it for large files beside small ones."""
    large = {"path": "/s/out.*", "striping_factor": "8", "striping_unit": "4MiB"}
    small = {"path": "/s/log.*", "striping_factor": "1"}
    with pytest.raises(ForebayError) as caught:
        apply(Configuration("best", sections=[large, small]), "lfs", Path())
    assert "/s/out.* by '-c 8 -S 4194304' and /s/log.* by '-c 1'" in caught.value.message
    assert "directories of their own" in caught.value.advice
    apart = [large, small | {"path": "/s/logs/log.*"}, large | {"path": "/s/more.*"}]
    found = apply(Configuration("best", sections=apart), "lfs", Path())
    assert found.lines[2:] == ["lfs setstripe -c 8 -S 4194304 /s", "lfs setstripe -c 1 /s/logs"]


def test_a_shell_that_reads_the_lines_does_what_they_say(tmp_path: Path) -> None:
    """Whatever the names of directories and the values are."""
    name, count = "/s/a\nb $(touch made) 'c", "$(touch made)"
    striped = Configuration("c", sections=[{"path": f"{name}/*", "striping_factor": count}])
    lines = tmp_path / "lines.sh"
    lines.write_text(apply(striped, "lfs", Path()).text())
    shell = f'lfs() {{ for word; do printf "%s\\0" "$word"; done; }}; . {lines}'
    done = subprocess.run(
        ["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    words = ["getstripe", "-d", name, "setstripe", "-c", count, name]
    assert (done.stdout.split("\0")[:-1], done.stderr) == (words, "")
    assert [path.name for path in tmp_path.iterdir()] == [lines.name]


@pytest.mark.parametrize(
    ("configuration", "shape"),
    [
        (Configuration("c", stock=True, hints={"cb_nodes": "1"}), "intent"),
        (Configuration("c", environment={"A": "1"}, hints={"cb_nodes": "1"}), "intent"),
        (Configuration("c"), "intent"),
        (Configuration("c", hints={"forebay": "disable"}), "romio"),
        (Configuration("c", hints={"cb_nodes": "1"}), "lfs"),
        (Configuration("c"), "pdf"),
    ],
)
def test_a_format_that_cannot_say_it_refuses(configuration: Configuration, shape: str) -> None:
    with pytest.raises(ForebayError):
        apply(configuration, shape, Path())


@pytest.mark.parametrize("shape", FORMATS)
def test_the_command_prints_the_lines_and_changes_nothing(
    forebay: Forebay, example: Path, tmp_path: Path, shape: str
) -> None:
    answer = forebay("apply", "best", "--format", shape, "--json", "a.json")
    assert answer.code == 0, answer.errors
    assert "nothing was changed" in answer.errors
    assert "# undo" in answer.output
    content = read_json(tmp_path / "a.json")
    assert content["lines"] == answer.output.splitlines()[: len(content["lines"])]
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"configurations.toml", "a.json", "runtime"}


def test_the_lines_are_written_once(forebay: Forebay, example: Path, tmp_path: Path) -> None:
    words = ["apply", "best", "--format", "intent", "--write", "best.toml"]
    assert forebay(*words).code == 0
    first = (tmp_path / "best.toml").read_text()
    assert tomllib.loads(first)["version"] == 1
    again = forebay(*words)
    assert again.code == 2
    assert "is there already" in again.errors
    assert (tmp_path / "best.toml").read_text() == first


def test_the_name_of_a_directory_is_written_as_it_is(forebay: Forebay, tmp_path: Path) -> None:
    striped = tmp_path / "s.toml"
    striped.write_text("version = 1\n[configuration.s]\nhints = { striping_factor = 2 }\n")
    words = ["--format", "lfs", "--directory", os.fsdecode(b"/d\xff"), "--write", "s.sh"]
    answer = forebay("apply", "s", "--file", striped, *words)
    assert answer.code == 0, answer.errors
    assert b"lfs setstripe -c 2 '/d\xff'" in (tmp_path / "s.sh").read_bytes()
