"""A rewritten command must start the same program with the same words, its ranks must see the
variables, and the launcher must not see the preload. Rewriting is checked as a pure function on
random commands, then once by each real launcher."""

import os
import re
import stat
import subprocess
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Launchers, allowing_root
from hypothesis import given
from hypothesis import strategies as st

from forebay.errors import ForebayError
from forebay.job import records_directory
from forebay.launcher import (
    Dialect,
    dialect_of_version,
    identify,
    joined_preload,
    rewrite,
    spans_hosts,
)

OURS = "/opt/forebay/libforebay.so"
VARIABLES = {"FOREBAY_MODE": "engine", "FOREBAY_HINTS": "cb_nodes=2;cb_config_list=*:1,b:2"}

word = st.text("abc019._/=-", min_size=1, max_size=8).filter(
    lambda w: w not in ("-x", "-env", "-genv") and not w.startswith("--export")
)
context = st.lists(word, min_size=1, max_size=5)
contexts = st.lists(context, min_size=1, max_size=4)


def joined(parts: list[list[str]]) -> list[str]:
    command = ["mpiexec", *parts[0]]
    for part in parts[1:]:
        command += [":", *part]
    return command


def without(argv: list[str], option: str, values: int) -> list[str]:
    """argv without each `option` and the `values` words after it."""
    rest = list(argv)
    while option in rest:
        at = rest.index(option)
        del rest[at : at + 1 + values]
    return rest


@given(contexts)
def test_hydra_gets_each_variable_once_for_all_executables(parts: list[list[str]]) -> None:
    command = joined(parts)
    launch = rewrite(command, Dialect.HYDRA, VARIABLES, {"HOME": "/h"}, OURS)
    assert without(launch.argv, "-genv", 2) == command
    head = launch.argv[1 : 1 + 9]
    assert head[2::3] == [*VARIABLES.values(), OURS]
    assert launch.environment == {"HOME": "/h"}


@given(contexts)
def test_open_mpi_gets_each_variable_in_every_context(parts: list[list[str]]) -> None:
    command = joined(parts)
    launch = rewrite(command, Dialect.OPENMPI, VARIABLES, {"HOME": "/h"}, OURS)
    assert without(launch.argv, "-x", 1) == command
    for name, value in {**VARIABLES, "LD_PRELOAD": OURS}.items():
        assert launch.argv.count(f"{name}={value}") == len(parts)
    assert launch.environment == {"HOME": "/h"}


@given(contexts)
def test_srun_exports_the_preload_to_every_component_and_keeps_the_rest(
    parts: list[list[str]],
) -> None:
    command = joined(parts)
    launch = rewrite(command, Dialect.SRUN, VARIABLES, {"HOME": "/h"}, OURS)
    exports = [part for part in launch.argv if part.startswith("--export=")]
    assert [part for part in launch.argv if part not in exports] == command
    assert exports == [f"--export=ALL,FOREBAY_MODE,FOREBAY_HINTS,LD_PRELOAD={OURS}"] * len(parts)
    assert launch.environment == {"HOME": "/h", **VARIABLES}


@given(context)
def test_without_a_launcher_the_command_is_untouched_and_its_environment_set(
    command: list[str],
) -> None:
    launch = rewrite(command, Dialect.DIRECT, VARIABLES, {"HOME": "/h"}, OURS)
    assert launch.argv == command
    assert launch.environment == {"HOME": "/h", **VARIABLES, "LD_PRELOAD": OURS}


@pytest.mark.parametrize("dialect", list(Dialect))
def test_the_users_preload_stays_and_comes_first(dialect: Dialect) -> None:
    environ = {"LD_PRELOAD": "/usr/lib/libdarshan.so"}
    launch = rewrite(["mpiexec", "-n", "2", "./a"], dialect, {}, environ, OURS)
    both = f"/usr/lib/libdarshan.so:{OURS}"
    if dialect is Dialect.DIRECT:
        assert launch.environment["LD_PRELOAD"] == both
    else:
        assert launch.environment == environ
        assert any(part.endswith(both) for part in launch.argv)


@pytest.mark.parametrize(
    ("existing", "expected"),
    [("", OURS), ("a.so b.so", f"a.so:b.so:{OURS}"), (f"{OURS}:a.so", f"{OURS}:a.so")],
)
def test_the_preload_is_appended_once(existing: str, expected: str) -> None:
    assert joined_preload(existing, OURS) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            "mpiexec -genv LD_PRELOAD t.so -n 2 ./a",
            f"mpiexec -genv LD_PRELOAD t.so:{OURS} -n 2 ./a",
        ),
        ("mpiexec -genv LD_PRELOAD=t.so ./a", f"mpiexec -genv LD_PRELOAD=t.so:{OURS} ./a"),
        (
            "mpiexec -n 1 -env LD_PRELOAD t.so ./a : ./b",
            f"mpiexec -genv LD_PRELOAD {OURS} -n 1 -env LD_PRELOAD t.so:{OURS} ./a : ./b",
        ),
    ],
)
def test_a_preload_given_to_hydra_is_kept(command: str, expected: str) -> None:
    launch = rewrite(command.split(), Dialect.HYDRA, {}, {}, OURS)
    assert launch.argv == expected.split()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("mpirun -x LD_PRELOAD=t.so ./a", f"mpirun -x LD_PRELOAD=t.so:{OURS} ./a"),
        ("mpirun -x LD_PRELOAD ./a", f"mpirun -x LD_PRELOAD=env.so:{OURS} ./a"),
        (
            "mpirun --mca mca_base_env_list A=1 ./a",
            f"mpirun --mca mca_base_env_list A=1;LD_PRELOAD=env.so:{OURS} ./a",
        ),
    ],
)
def test_a_preload_given_to_open_mpi_is_kept(command: str, expected: str) -> None:
    launch = rewrite(command.split(), Dialect.OPENMPI, {}, {"LD_PRELOAD": "env.so"}, OURS)
    assert launch.argv == expected.split()


def test_an_app_file_gets_the_variables_through_open_mpis_list() -> None:
    launch = rewrite(
        ["mpirun", "--app", "f"], Dialect.OPENMPI, {"FOREBAY_MODE": "engine"}, {}, OURS
    )
    assert launch.argv == ["mpirun", "--app", "f"]
    assert launch.environment == {
        "OMPI_MCA_mca_base_env_list": f"FOREBAY_MODE=engine;LD_PRELOAD={OURS}"
    }


def test_several_hints_and_an_app_file_are_refused_with_a_way_out() -> None:
    with pytest.raises(ForebayError) as caught:
        rewrite(["mpirun", "--app", "f"], Dialect.OPENMPI, VARIABLES, {}, OURS)
    assert "--intent" in caught.value.advice


def test_srun_keeps_what_the_user_exports() -> None:
    command = ["srun", "--export=PATH,LD_PRELOAD=t.so", "-n", "2", "./a"]
    launch = rewrite(command, Dialect.SRUN, {"FOREBAY_MODE": "engine"}, {}, OURS)
    assert launch.argv == [
        "srun", f"--export=PATH,FOREBAY_MODE,LD_PRELOAD=t.so:{OURS}", "-n", "2", "./a",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("mpiexec.openmpi (OpenRTE) 4.1.4", Dialect.OPENMPI),
        ("mpirun (Open MPI) 5.0.3", Dialect.OPENMPI),
        ("prterun (PRRTE) 3.0.5", Dialect.OPENMPI),
        ("HYDRA build details:\n    Version: 4.0.2", Dialect.HYDRA),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.9", Dialect.HYDRA),
        ("some other launcher 1.0", None),
    ],
)
def test_the_launchers_family_is_read_from_its_version(text: str, dialect: Dialect | None) -> None:
    assert dialect_of_version(text) is dialect


@pytest.mark.parametrize("name", ["python3", "./mpiexec_results.sh", "sh", "mpirunner"])
def test_other_programs_are_no_launchers(name: str) -> None:
    assert identify([name, "x"]) is Dialect.DIRECT


def test_a_launcher_that_does_not_tell_needs_the_mpi_named(tmp_path: Path) -> None:
    launcher = tmp_path / "mpiexec"
    launcher.write_text("#!/bin/sh\nexit 1\n")
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(ForebayError) as caught:
        identify([str(launcher), "./a"])
    assert "--mpi" in caught.value.advice
    assert identify([str(launcher), "./a"], "openmpi") is Dialect.OPENMPI


@pytest.mark.parametrize(
    ("command", "dialect", "environ", "expected"),
    [
        ("mpiexec -n 2 ./a", Dialect.HYDRA, {}, False),
        ("mpiexec -f hosts ./a", Dialect.HYDRA, {}, True),
        ("mpirun --host a,b ./a", Dialect.OPENMPI, {}, True),
        ("mpirun ./a", Dialect.OPENMPI, {"SLURM_NNODES": "4"}, True),
        ("mpirun ./a", Dialect.OPENMPI, {"SLURM_NNODES": "1"}, False),
        ("mpiexec ./a", Dialect.HYDRA, {"HYDRA_HOST_FILE": "hosts"}, True),
        ("srun ./a", Dialect.SRUN, {}, True),
    ],
)
def test_records_go_to_a_shared_place_where_ranks_may_be_elsewhere(
    command: str, dialect: Dialect, environ: dict[str, str], expected: bool
) -> None:
    assert spans_hosts(command.split(), dialect, environ) is expected


def test_a_place_where_records_cannot_be_left_is_told_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "cwd", lambda: tmp_path / "gone")
    with pytest.raises(ForebayError) as caught, records_directory(shared=True):
        pytest.fail("there is no such directory")
    assert "all nodes share" in caught.value.advice


# Prints what a rank sees, and how often the preload occurs in the environment of its parent, which
# is the launcher or the launcher's helper.
LOOK = (
    'printf "%s %s %s\\n" "$FOREBAY_MODE" "$LD_PRELOAD" '
    "$(tr '\\0' '\\n' < /proc/$PPID/environ | grep -c ^LD_PRELOAD=)"
)


@pytest.mark.mpi
@pytest.mark.parametrize("mpi", ["hydra", "openmpi"])
def test_a_real_launcher_gives_the_variables_to_its_ranks_alone(
    mpi: str, fake_library: Path
) -> None:
    launcher = getattr(Launchers, mpi)
    if launcher is None:
        pytest.skip(f"no launcher of {mpi}")
    preload = str(fake_library / "libforebay.so")
    environ = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"} | allowing_root()
    several = ["--oversubscribe"] if mpi == "openmpi" else []
    command = [launcher, *several, "-n", "1", "sh", "-c", LOOK, ":", "-n", "1", "sh", "-c", LOOK]
    dialect = identify(command)
    launch = rewrite(command, dialect, {"FOREBAY_MODE": "engine"}, environ, preload)
    done = subprocess.run(
        launch.argv, env=launch.environment, capture_output=True, text=True, timeout=TIMEOUT_S,
        check=True,
    )  # fmt: skip
    assert re.findall(r"^engine .*$", done.stdout, re.MULTILINE) == [f"engine {preload} 0"] * 2
