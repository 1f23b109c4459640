"""How a command starts its ranks, and how variables are made to reach the ranks alone.

A preload must not reach the launcher's own helpers (proxies, orted, ssh): each launcher has its own
way to give a variable to the ranks only. Where the command has no launcher in front (one process, a
script that calls a launcher itself), the variables go into its environment and are inherited.
"""

import enum
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from forebay.errors import ForebayError

PRELOAD_VARIABLE = "LD_PRELOAD"


class Dialect(enum.Enum):
    """The launcher families whose options differ."""

    DIRECT = "direct"  # no launcher: the command's own environment
    HYDRA = "hydra"  # MPICH, Intel MPI, MVAPICH
    OPENMPI = "openmpi"  # Open MPI's ORTE (4) and PRRTE (5)
    SRUN = "srun"


@dataclass(frozen=True)
class Launch:
    """What to execute: the rewritten command and the whole environment to give it."""

    argv: list[str]
    environment: dict[str, str]


_LAUNCHER_NAME = re.compile(r"(mpiexec|mpirun|orterun|prterun)([.-].+)?")
_VERSION_TIMEOUT_S = 20


def version_text(launcher: str) -> str:
    """What `launcher --version` prints; empty where it does not start."""
    try:
        answer = subprocess.run(
            [launcher, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout + answer.stderr


def dialect_of_version(text: str) -> Dialect | None:
    """The family that prints `text` as its version; None if it is none that we know."""
    if re.search(r"Open MPI|OpenRTE|PRRTE|prterun", text):
        return Dialect.OPENMPI
    if re.search(r"HYDRA|Intel\(R\) MPI|MVAPICH", text):
        return Dialect.HYDRA
    return None


def identify(command: Sequence[str], mpi: str = "auto") -> Dialect:
    """The launcher in front of `command`. `mpi` (auto, mpich, openmpi) decides where the launcher's
    version does not tell. Raises ForebayError where nothing tells."""
    name = Path(command[0]).name
    if name == "srun":
        return Dialect.SRUN
    if not _LAUNCHER_NAME.fullmatch(name):
        return Dialect.DIRECT
    if shutil.which(command[0]) is None:
        raise ForebayError(
            f"'{command[0]}' is not an executable on PATH",
            "Load your site's MPI module, or install an MPI; 'forebay doctor' says what is here.",
            exit_code=127,
        )
    dialect = dialect_of_version(version_text(command[0]))
    if dialect is not None:
        return dialect
    if mpi != "auto":
        return Dialect.OPENMPI if mpi == "openmpi" else Dialect.HYDRA
    raise ForebayError(
        f"'{command[0]}' does not say which MPI it belongs to",
        f"Check that '{command[0]} --version' works, or name the MPI: --mpi mpich | openmpi. "
        f"For a launcher of another kind, put 'env' before it: its ranks then inherit the preload.",
    )


def joined_preload(existing: str, library: str) -> str:
    """`library` after what is preloaded already, so that the user's own preload stays first."""
    parts = [part for part in re.split(r"[:\s]+", existing) if part]
    if library in parts:
        return ":".join(parts)
    return ":".join([*parts, library])


def rewrite(
    command: Sequence[str],
    dialect: Dialect,
    variables: Mapping[str, str],
    environ: Mapping[str, str],
    preload: str | None = None,
) -> Launch:
    """`command` such that its ranks, and with a launcher only they, see `variables` and have
    `preload` in LD_PRELOAD after what the user preloads. A value the user gives on the command line
    for one of `variables` wins."""
    wanted = dict(variables)
    if preload is not None:
        wanted[PRELOAD_VARIABLE] = joined_preload(environ.get(PRELOAD_VARIABLE, ""), preload)
    if not wanted:
        return Launch(list(command), dict(environ))
    if dialect is Dialect.DIRECT:
        return Launch(list(command), {**environ, **wanted})
    if dialect is Dialect.HYDRA:
        return Launch(_hydra(command, wanted, preload), dict(environ))
    if dialect is Dialect.OPENMPI:
        return _openmpi(command, wanted, environ, preload)
    return _srun(command, wanted, environ, preload)


def _appended(name: str, value: str, preload: str | None) -> str:
    """The user's own `value` for `name`, with our library added if it is the preload."""
    if name == PRELOAD_VARIABLE and preload is not None:
        return joined_preload(value, preload)
    return value


def _hydra(command: Sequence[str], wanted: Mapping[str, str], preload: str | None) -> list[str]:
    """-genv holds for every executable of an MPMD command; a local -env overrides it."""
    rest = list(command[1:])
    given: set[str] = set()
    for i, word in enumerate(rest[:-1]):
        if word not in ("-genv", "-env", "--genv", "--env"):
            continue
        name, equals, value = rest[i + 1].partition("=")
        if name not in wanted:
            continue
        if equals:
            rest[i + 1] = f"{name}={_appended(name, value, preload)}"
        elif i + 2 < len(rest):
            rest[i + 2] = _appended(name, rest[i + 2], preload)
        if "genv" in word:
            given.add(name)
    options = [
        part
        for name, value in wanted.items()
        if name not in given
        for part in ("-genv", name, value)
    ]
    return [command[0], *options, *rest]


_ENV_LIST = "mca_base_env_list"


def _openmpi(
    command: Sequence[str],
    wanted: Mapping[str, str],
    environ: Mapping[str, str],
    preload: str | None,
) -> Launch:
    """-x belongs to one application context, so it is repeated after every ':'. Open MPI refuses -x
    together with the MCA parameter mca_base_env_list, and gives -x to no context of an --app file:
    in these two cases the list carries the variables."""
    segments = _split(command)
    if any(word in ("--app", "-app") for word in command) or f"OMPI_MCA_{_ENV_LIST}" in environ:
        if "-x" in command:
            raise ForebayError(
                "Open MPI cannot take variables both by -x and by its list for an --app file",
                "Put the -x variables into OMPI_MCA_mca_base_env_list, separated by ';'.",
            )
        key = f"OMPI_MCA_{_ENV_LIST}"
        return Launch(list(command), {**environ, key: _listed(environ.get(key, ""), wanted)})
    for i, word in enumerate(command[:-2]):
        if word in ("--mca", "-mca", "--gmca", "-gmca") and command[i + 1] == _ENV_LIST:
            rewritten = list(command)
            rewritten[i + 2] = _listed(command[i + 2], wanted)
            return Launch(rewritten, dict(environ))
    argv: list[str] = [command[0]]
    for number, segment in enumerate(segments):
        words = segment[1:] if number == 0 else segment
        if number > 0:
            argv.append(":")
        argv += _openmpi_context(words, wanted, environ, preload)
    return Launch(argv, dict(environ))


def _openmpi_context(
    words: list[str], wanted: Mapping[str, str], environ: Mapping[str, str], preload: str | None
) -> list[str]:
    rest = list(words)
    given: set[str] = set()
    for i, word in enumerate(rest[:-1]):
        if word != "-x":
            continue
        name, equals, value = rest[i + 1].partition("=")
        if name in wanted:
            inherited = value if equals else environ.get(name, wanted[name])
            rest[i + 1] = f"{name}={_appended(name, inherited, preload)}"
            given.add(name)
    options = [
        part
        for name, value in wanted.items()
        if name not in given
        for part in ("-x", f"{name}={value}")
    ]
    return options + rest


def _listed(existing: str, wanted: Mapping[str, str]) -> str:
    if any(";" in value for value in wanted.values()):
        raise ForebayError(
            "several hints do not fit into Open MPI's list of variables, which ';' separates",
            "Put the hints into an intent file and name it with --intent.",
        )
    own = [f"{name}={value}" for name, value in wanted.items()]
    return ";".join([*([existing] if existing else []), *own])


def _srun(
    command: Sequence[str],
    wanted: Mapping[str, str],
    environ: Mapping[str, str],
    preload: str | None,
) -> Launch:
    """--export separates by ',', which hints may contain: values other than the preload travel in
    srun's environment, where they mean nothing, and are only named. A heterogeneous job repeats the
    option after every ':'."""
    plain = {name: value for name, value in wanted.items() if name != PRELOAD_VARIABLE}
    argv: list[str] = [command[0]]
    for number, segment in enumerate(_split(command)):
        if number > 0:
            argv.append(":")
        words = segment[1:] if number == 0 else segment
        argv += _srun_component(words, plain, wanted.get(PRELOAD_VARIABLE), environ, preload)
    return Launch(argv, {**environ, **plain})


def _srun_component(
    words: list[str],
    plain: Mapping[str, str],
    preload_value: str | None,
    environ: Mapping[str, str],
    preload: str | None,
) -> list[str]:
    rest: list[str] = []
    asked = environ.get("SRUN_EXPORT_ENV", environ.get("SLURM_EXPORT_ENV", "ALL"))
    skip = False
    for i, word in enumerate(words):
        if skip:
            skip = False
        elif word.startswith("--export="):
            asked = word.removeprefix("--export=")
        elif word == "--export" and i + 1 < len(words):
            asked, skip = words[i + 1], True
        else:
            rest.append(word)
    items = [item for item in asked.split(",") if item not in ("", "NONE", "NIL")]
    for item in items:
        name, equals, value = item.partition("=")
        if name == PRELOAD_VARIABLE and equals and preload is not None:
            preload_value = joined_preload(value, preload)
    items = [item for item in items if item.partition("=")[0] != PRELOAD_VARIABLE]
    items += [name for name in plain if not any(i.partition("=")[0] == name for i in items)]
    if preload_value is not None:
        items.append(f"{PRELOAD_VARIABLE}={preload_value}")
    return ["--export=" + ",".join(items), *rest]


def _split(command: Sequence[str]) -> list[list[str]]:
    """The contexts of an MPMD command, which ':' separates."""
    segments: list[list[str]] = [[]]
    for word in command:
        if word == ":":
            segments.append([])
        else:
            segments[-1].append(word)
    return segments


_HOST_OPTIONS = frozenset(
    f"{dashes}{name}"
    for dashes in ("-", "--")
    for name in ("H", "f", "host", "hosts", "hostfile", "machine", "machinefile")
)


# Set by batch systems (PBS, LSF, Grid Engine), or by users for Hydra and Open MPI.
_HOST_VARIABLES = (
    "PBS_NODEFILE",
    "LSB_DJOB_HOSTFILE",
    "PE_HOSTFILE",
    "HYDRA_HOST_FILE",
    "OMPI_MCA_orte_default_hostfile",
    "PRTE_MCA_prte_default_hostfile",
)


def spans_hosts(command: Sequence[str], dialect: Dialect, environ: Mapping[str, str]) -> bool:
    """Whether ranks may run on other machines, so that records need a shared directory."""
    if dialect is Dialect.SRUN:
        return True
    for name in ("SLURM_JOB_NUM_NODES", "SLURM_NNODES"):
        if environ.get(name, "1") not in ("", "1"):
            return True
    if any(name in environ for name in _HOST_VARIABLES):
        return True
    return dialect is not Dialect.DIRECT and any(word in _HOST_OPTIONS for word in command)
