"""`forebay doctor`: what is here, whether it works, and how to repair what does not."""

import enum
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from forebay import (
    filesystem,
    gluster_mount,
    installed_launchers,
    job,
    launcher,
    leftovers,
    log_place,
    mpi_probe,
    native,
    records,
)
from forebay.installed_launchers import InstalledLauncher
from forebay.launcher import Dialect, Launch
from forebay.leftovers import Leftover
from forebay.settings import Settings, runtime_variables
from forebay.units import show_bytes

_PROBE_RANKS = 2
_PROBE_TIMEOUT_S = 60
# Collective buffers of one node live there.
_SHARED_MEMORY_LEAST = 64 * 1024 * 1024


# Of several nodes, as core/storage/layout.cpp has it.
_KEEPING_OLD_BYTES = frozenset({gluster_mount.TYPE, "fuse.sshfs"})


class Level(enum.Enum):
    """How a check ended."""

    OK = "ok"
    INFO = "info"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True)
class Check:
    """One finding. `fix` is empty unless something is wrong."""

    area: str
    level: Level
    finding: str
    fix: str = ""


def examine(path: Path) -> list[Check]:
    """All checks, in the order in which they are shown."""
    path = path.absolute()
    return [
        *_library(),
        *_mpis(path),
        *_path(path),
        *_left_over(path),
        *_local(),
        *_machine(),
    ]


def _library() -> Iterable[Check]:
    area = "library"
    preload = native.find(native.PRELOAD)
    if preload is None:
        yield Check(
            area,
            Level.FAILURE,
            f"{native.PRELOAD} is not installed",
            "Build it with 'make build' or 'pip install .', or set FOREBAY_LIBRARY_DIR.",
        )
        return
    yield Check(area, Level.OK, f"{native.PRELOAD}: {preload}")
    yield _preloads(preload)
    for mpi, name in native.BACK_ENDS.items():
        back_end = preload.with_name(name)
        if back_end.is_file():
            yield _loads(back_end, mpi)
        elif mpi != "abi":
            yield Check(
                area,
                Level.WARNING,
                f"no back end for {mpi} ({name})",
                f"If you use {mpi}, install its development package and build again.",
            )


def _preloads(preload: Path) -> Check:
    """Whether the loader takes the object into a process that has nothing to do with MPI."""
    environ = {**os.environ, launcher.PRELOAD_VARIABLE: str(preload)}
    done = subprocess.run(
        ["cat", "/proc/self/maps"], env=environ, capture_output=True, text=True, check=False
    )
    if preload.name in done.stdout and not done.stderr:
        return Check("library", Level.OK, "preloading works")
    why = done.stderr.strip() or "the loader left it out without a word"
    return Check(
        "library",
        Level.FAILURE,
        f"preloading does not work: {why}",
        "The object must be built for this machine and lie on a file system that is not mounted "
        "noexec; a loader of another C library (musl) may ignore it.",
    )


def _loads(library: Path, mpi: str) -> Check:
    """Whether a back end finds all that it is linked with. Without its MPI it is of no use, and of
    no harm: whether a program can have that MPI is asked of the launchers."""
    script = "import ctypes, os, sys; ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)"
    done = subprocess.run(
        [sys.executable, "-c", script, str(library)], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return Check("library", Level.OK, f"{library.name} loads")
    lines = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
    why = lines[0].removeprefix("OSError: ")
    missing = why.partition(":")[0]
    if missing in installed_launchers.SONAMES[mpi]:
        return Check(
            "library",
            Level.INFO,
            f"{library.name} is for programs that bring {missing}, which the loader finds nowhere "
            "by itself",
        )
    return Check(
        "library",
        Level.FAILURE,
        f"{library.name} does not load: {why}",
        "Install the library it names, or put its directory on LD_LIBRARY_PATH.",
    )


def _mpis(path: Path) -> Iterable[Check]:
    area = "MPI"
    found = installed_launchers.find()
    if not found and shutil.which("srun") is None:
        yield Check(
            area,
            Level.FAILURE,
            "no MPI launcher on PATH",
            "Load your site's MPI module, or install one (Debian: apt-get install mpich).",
        )
    preload = native.find(native.PRELOAD)
    for one in found:
        family = one.family
        served = native.find(native.BACK_ENDS[family])
        said = f"{one.path}: {one.version}"
        if served is None or preload is None:
            yield Check(
                area,
                Level.WARNING,
                f"{said}, which no back end serves",
                f"Build Forebay with {family}'s development package installed.",
            )
            continue
        yield Check(area, Level.OK, f"{said}, served by {served.name}")
        soname = one.library()
        if soname is None:
            yield Check(
                area,
                Level.WARNING,
                f"the loader finds no library of {family}: not tried",
                "Put the MPI library's directory on LD_LIBRARY_PATH (its module does).",
            )
        else:
            yield _probe(one, soname, preload, path)
    for one in found:
        yield from _standard_abi(one, preload, path)
    if shutil.which("srun"):
        yield Check(area, Level.INFO, "srun is here; not tried, as it would start a job")


def _standard_abi(one: InstalledLauncher, preload: Path | None, path: Path) -> Iterable[Check]:
    """The library of MPI 5's standard ABI that is installed with a launcher, if there is one."""
    area = "MPI"
    prefix = one.path.resolve().parent.parent
    library = next(iter(sorted((prefix / "lib").glob("libmpi_abi.so.*"))), None)
    if library is None:
        return
    served = native.find(native.BACK_ENDS["abi"])
    said = f"{library}: the standard ABI"
    if served is None or preload is None:
        yield Check(
            area,
            Level.INFO,
            f"{said}, which no back end serves",
            f"To have one, build Forebay with -DFOREBAY_MPI_ABI_ROOT={prefix}.",
        )
        return
    yield Check(area, Level.OK, f"{said}, served by {served.name}")
    yield _probe(one, str(library), preload, path)


def _probe(one: InstalledLauncher, soname: str, preload: Path, path: Path) -> Check:
    """Runs the probe program, with the MPI library `soname`, by this launcher through Forebay, on
    `path`."""
    area = "MPI"
    directory = filesystem.existing_part(path)
    if not directory.is_dir():
        directory = directory.parent
    if not os.access(directory, os.W_OK):
        directory = Path(tempfile.gettempdir())
    target = directory / f".forebay-probe-{uuid.uuid4().hex}"
    options = ["--oversubscribe"] if one.dialect is Dialect.OPENMPI else []
    command = [str(one.path), *options, "-n", str(_PROBE_RANKS)]
    command += [sys.executable, mpi_probe.__file__, soname, str(target)]
    environ = dict(os.environ)
    if os.geteuid() == 0:  # the probe is ours, and harmless
        environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    try:
        with job.records_directory(shared=False) as left:
            variables = runtime_variables(Settings(), "engine", left, environ)
            launch: Launch = launcher.rewrite(
                command, one.dialect, variables, environ, str(preload)
            )
            outcome = job.run_captured(launch, _PROBE_TIMEOUT_S)
            seen = records.load(left).records
    finally:
        target.unlink(missing_ok=True)
    name = one.path.name
    if outcome.exit_code != 0:
        why = "it did not end" if outcome.timed_out else f"exit status {outcome.exit_code}"
        lines = outcome.error_tail.strip().splitlines()[-3:]
        return Check(
            area,
            Level.FAILURE,
            f"a program of {_PROBE_RANKS} ranks fails through Forebay by {name}: "
            + "; ".join([why, *lines]),
            f"See whether it runs alone: {' '.join(command)}",
        )
    if not any(record.mode == "engine" for record in seen):
        return Check(
            area,
            Level.FAILURE,
            f"a program started by {name} runs, but Forebay does not see its files",
            "The preload did not reach the ranks: check that the launcher is the one of this MPI, "
            "and that nothing in between clears LD_PRELOAD.",
        )
    return Check(area, Level.OK, f"a program of {_PROBE_RANKS} ranks writes and reads by {name}")


def _path(path: Path) -> Iterable[Check]:
    area = "path"
    mount = filesystem.mount_of(path)
    existing = filesystem.existing_part(path)
    usage = shutil.disk_usage(existing)
    yield Check(
        area,
        Level.OK,
        f"{path}: {mount.type} mounted on {mount.point}, {show_bytes(usage.free)} free",
    )
    if not os.access(existing, os.W_OK):
        yield Check(
            area, Level.WARNING, f"{existing} is not writable", "Choose a directory of your own."
        )
    stripe = filesystem.stripe_of(path)
    if stripe is not None:
        count = f"{stripe.count} servers" if stripe.count > 0 else "all servers"
        yield Check(
            area,
            Level.OK,
            f"striped: {show_bytes(stripe.size)} over {count} ({stripe.told_by})",
        )
        if mount.type == "lustre" and stripe.count == 1:
            yield Check(
                area,
                Level.WARNING,
                "one Lustre stripe: a shared file is written to one server only",
                f"For large shared files: lfs setstripe -c -1 {existing}",
            )
    elif mount.type == "lustre":
        yield Check(
            area,
            Level.WARNING,
            "the stripe layout is not known",
            "Put 'lfs' (package lustre-client) on PATH.",
        )
    elif mount.type == gluster_mount.TYPE and (bricks := gluster_mount.layout(Path(mount.point))):
        yield Check(area, Level.OK, f"GlusterFS: {bricks}")
    else:
        yield Check(area, Level.INFO, "not striped, as far as can be told")
    if mount.type.startswith("nfs"):
        yield Check(
            area,
            Level.WARNING,
            "NFS gives processes on several nodes no common view of a file: there, Forebay leaves "
            "files to the MPI library",
            "Write shared files to a parallel file system; on NFS, one node at a time is served.",
        )
    if mount.type in _KEEPING_OLD_BYTES:
        yield Check(
            area,
            Level.INFO,
            f"clients of {mount.type.removeprefix('fuse.')} keep what they have read for a while: "
            "files of ranks on several nodes are left to the MPI library",
        )


def _left_over(path: Path) -> Iterable[Check]:
    existing = filesystem.existing_part(path)
    directory = existing if existing.is_dir() else existing.parent
    maybe = leftovers.in_directory(directory)
    if directory != leftovers.SHARED_MEMORY:
        maybe += leftovers.in_directory(leftovers.SHARED_MEMORY)
    if maybe:
        yield Check(
            "path",
            Level.WARNING,
            f"{_listed(maybe)}: of a program that is running, or left by one that was killed",
            f"If none is running that uses them: {_removal(maybe)}",
        )
    sure = [*leftovers.orphaned_buffers(), *leftovers.orphaned_readers()]
    if sure:
        yield Check(
            "node-local",
            Level.WARNING,
            f"{_listed(sure)}: left in memory by a program that was killed",
            _removal(sure),
        )
    traces = leftovers.orphaned_traces()
    if traces:
        yield Check(
            "node-local",
            Level.WARNING,
            f"{_listed(traces)}: for a forebay-pages that was killed",
            "rmdir " + " ".join(shlex.quote(str(one.path)) for one in traces),
        )


_SHOWN_LEFTOVERS = 4


def _listed(found: list[Leftover]) -> str:
    shown = [f"{one.path} ({one.what})" for one in found[:_SHOWN_LEFTOVERS]]
    hidden = len(found) - len(shown)
    return ", ".join([*shown, *([f"and {hidden} more"] if hidden else [])])


def _removal(found: list[Leftover]) -> str:
    return "rm -r " + " ".join(shlex.quote(str(one.path)) for one in found)


def _local() -> Iterable[Check]:
    found = filesystem.local_paths()
    for local in found:
        yield Check(
            "node-local",
            Level.OK if local.writable else Level.INFO,
            f"{local.path}: {local.type}, {show_bytes(local.free)} of {show_bytes(local.total)} "
            f"free{'' if local.writable else ', not writable'}",
        )
        if local.path == "/dev/shm" and local.free < _SHARED_MEMORY_LEAST:
            yield Check(
                "node-local",
                Level.FAILURE,
                f"/dev/shm has {show_bytes(local.free)} free: ranks of a node share buffers there",
                "Remove what is left over in /dev/shm, or give the container more "
                "(docker run --shm-size=1g).",
            )
    place = log_place.best(found)
    if place is not None:
        yield Check("node-local", Level.INFO, log_place.describe(place, found))


def _machine() -> Iterable[Check]:
    area = "machine"
    others = [p for p in re.split(r"[:\s]+", os.environ.get("LD_PRELOAD", "")) if p]
    for other in others:
        note = "; both measure MPI-IO, times contain the other's" if "darshan" in other else ""
        yield Check(area, Level.INFO, f"{other} is preloaded already and stays first{note}")
    mode = os.environ.get("FOREBAY_MODE")
    if mode == "off":
        yield Check(
            area,
            Level.WARNING,
            "FOREBAY_MODE=off is set: linked programs leave Forebay out",
            "unset FOREBAY_MODE",
        )
    enforce = Path("/sys/fs/selinux/enforce")
    if enforce.exists() and enforce.read_text().strip() == "1":
        yield Check(
            area,
            Level.INFO,
            "SELinux enforces: programs that change their domain on start ignore preloads",
        )
    if native.find("forebay-testbedfs", "bin") is None:
        yield Check(area, Level.INFO, "the testbed is not installed (needs libfuse3-dev to build)")
    elif not Path("/dev/fuse").exists():
        yield Check(area, Level.INFO, "the testbed needs /dev/fuse, which is not here")
    else:
        yield Check(area, Level.OK, "the testbed is installed ('forebay testbed up --help')")


def healthy(checks: Iterable[Check]) -> bool:
    """Whether nothing failed; warnings do not count."""
    return all(check.level is not Level.FAILURE for check in checks)


def as_json(checks: list[Check]) -> dict[str, Any]:
    """The document of `forebay doctor --json`."""
    return {
        "version": 1,
        "healthy": healthy(checks),
        "checks": [
            {
                "area": check.area,
                "level": check.level.value,
                "finding": check.finding,
                "fix": check.fix,
            }
            for check in checks
        ],
    }


_MARKS = {
    Level.OK: ("ok  ", "green"),
    Level.INFO: ("    ", "dim"),
    Level.WARNING: ("warn", "yellow"),
    Level.FAILURE: ("FAIL", "bold red"),
}


def show(console: Console, checks: list[Check]) -> None:
    """Prints the findings by area, each failure with its fix."""
    area = ""
    for check in checks:
        if check.area != area:
            area = check.area
            console.print(Text(area, style="bold"))
        mark, style = _MARKS[check.level]
        console.print(Text.assemble("  ", (mark, style), " ", check.finding), soft_wrap=True)
        if check.fix:
            console.print(Text(f"       {check.fix}", style="cyan"), soft_wrap=True)
    failures = sum(check.level is Level.FAILURE for check in checks)
    warnings = sum(check.level is Level.WARNING for check in checks)
    warned = f"{warnings} warning{'s' if warnings != 1 else ''}"
    if failures:
        console.print(Text(f"{failures} to repair, {warned}", style="bold red"))
    else:
        console.print(Text(f"all works, {warned}", style="green"))
