"""The MPI launchers that are installed here, and what each says of itself."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from forebay import launcher
from forebay.launcher import Dialect


@dataclass(frozen=True)
class InstalledLauncher:
    """One launcher on PATH."""

    path: Path
    dialect: Dialect
    version: str


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
