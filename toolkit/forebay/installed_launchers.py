"""The MPI launchers that are installed here, and what each says of itself."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from forebay import launcher
from forebay.launcher import Dialect

#: The libraries of each MPI that a back end is linked with. In a job the program has loaded its
#: own.
SONAMES = {
    "mpich": ("libmpich.so.12", "libmpi.so.12"),
    "openmpi": ("libmpi.so.40",),
    "abi": ("libmpi_abi.so.1",),
}
_FAMILIES = {Dialect.HYDRA: "mpich", Dialect.OPENMPI: "openmpi"}


@dataclass(frozen=True)
class InstalledLauncher:
    """One launcher on PATH."""

    path: Path
    dialect: Dialect
    version: str

    @property
    def family(self) -> str:
        """Of SONAMES."""
        return _FAMILIES[self.dialect]

    def library(self) -> str | None:
        """The library of its MPI that the loader finds by itself; None if it finds none."""
        return next((name for name in SONAMES[self.family] if _loadable(name)), None)


def _loadable(soname: str) -> bool:
    script = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", script, soname], capture_output=True, check=False)
    return done.returncode == 0


def find() -> list[InstalledLauncher]:
    """Every launcher on PATH, each once however many names or copies it has in its directory."""
    found: dict[tuple[Path, str], InstalledLauncher] = {}
    names = ["mpiexec", "mpirun"]
    names += [f"{n}.{mpi}" for mpi in ("mpich", "hydra", "openmpi") for n in names[:2]]
    for name in names:
        where = shutil.which(name)
        if where is None:
            continue
        text = launcher.version_text(where)
        dialect = launcher.dialect_of_version(text)
        if dialect is not None:
            version = _version_of(text, dialect)
            one = InstalledLauncher(Path(where), dialect, version)
            found.setdefault((Path(where).resolve().parent, version), one)
    return list(found.values())


def _version_of(text: str, dialect: Dialect) -> str:
    match = re.search(r"Version:?\s+([\w.]+)|\)\s+([\d.]+\w*)", text)
    number = next((part for part in match.groups() if part), "") if match else ""
    name = "MPICH" if dialect is Dialect.HYDRA else "Open MPI"
    return f"{name} {number}".strip()
