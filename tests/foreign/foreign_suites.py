"""Runs other people's MPI-IO tests stock and under Forebay, and says where the outcomes differ.

    foreign_suites.py --library build/lib/libforebay.so [--mpi mpich|openmpi] [--work DIR] SUITE...

See README.md for the suites and what they need.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

SECONDS_MAX = 90

# Debian's source packages, from a sources list of our own: the system's has no deb-src lines.
SOURCES = "deb-src http://deb.debian.org/debian bookworm main\n"


@dataclass(frozen=True)
class Mpi:
    name: str

    def compiler(self, language: str) -> str:
        return {"c": "mpicc", "f77": "mpif77", "f90": "mpif90"}[language] + "." + self.name

    def launch(self, ranks: int) -> list[str]:
        if self.name == "mpich":
            return ["mpiexec.mpich", "-n", str(ranks)]
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return ["mpirun.openmpi", *root, "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]


@dataclass(frozen=True)
class Test:
    """One program of a suite: good if it ends with 0 and, where `passes` is set, prints that."""

    name: str
    ranks: int
    command: list[str]
    folder: Path
    passes: str = ""
    environment: dict[str, str] = field(default_factory=dict)


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> None:
    """A step of a build; its output is kept beside what it made."""
    with (folder / "build.log").open("a") as log:
        print("+", *command, file=log, flush=True)
        subprocess.run(
            command,
            cwd=folder,
            env=os.environ | (environment or {}),
            stdout=log,
            stderr=subprocess.STDOUT,
            check=True,
        )


def debian_source(package: str, work: Path) -> Path:
    """The unpacked upstream source of a Debian package."""
    folder = work / package
    if (folder / "unpacked").exists():
        return folder
    apt = work / "apt"
    (apt / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (apt / "sources.list").write_text(SOURCES)
    configuration = apt / "apt.conf"
    configuration.write_text(
        f'Dir::Etc::sourcelist "{apt}/sources.list";\n'
        'Dir::Etc::sourceparts "-";\n'
        f'Dir::State::lists "{apt}/lists";\n'
    )
    environment = {"APT_CONFIG": str(configuration)}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    run(["apt-get", "update"], apt, environment)
    run(["apt-get", "source", "--download-only", package], folder, environment)
    (archive,) = folder.glob("*.orig.tar.*")
    run(["tar", "xf", archive.name, "--strip-components=1"], folder)
    (folder / "unpacked").touch()
    return folder


def copy_for(mpi: Mpi, source: Path) -> Path:
    """A copy of a source tree to build with `mpi` in."""
    folder = source.with_name(f"{source.name}-{mpi.name}")
    if not folder.exists():
        shutil.copytree(source, folder, symlinks=True)
    return folder


def mpich_tests(mpi: Mpi, work: Path) -> Iterator[Test]:
    """MPICH's own tests of MPI-IO: C and Fortran (mpif.h, use mpi)."""
    source = debian_source("mpich", work)
    root = copy_for(mpi, source / "test" / "mpi")
    if not (root / "config.status").exists():
        # mtest's Fortran calls with any type of buffer.
        flags = {"FFLAGS": "-fallow-argument-mismatch", "FCFLAGS": "-fallow-argument-mismatch"}
        compilers = {
            "CC": mpi.compiler("c"),
            "MPICC": mpi.compiler("c"),
            "F77": mpi.compiler("f77"),
            "MPIF77": mpi.compiler("f77"),
            "FC": mpi.compiler("f90"),
            "MPIFC": mpi.compiler("f90"),
        }
        options = ["--with-mpi=/usr", "--disable-cxx", "--disable-spawn", "--disable-threads"]
        run(["./configure", *options], root, compilers | flags)
        # The mtest modules take turns in one folder, so no parallel make.
        for part in ("dtpools", "util", "io", "f77/io", "f90/io"):
            # What one MPI cannot build (a nonblocking collective, a large count) is left out.
            subprocess.run(["make", "-k", "-C", part], cwd=root, capture_output=True, check=False)
    for part in ("io", "f77/io", "f90/io"):
        for line in (root / part / "testlist").read_text().splitlines():
            words = line.split("#")[0].split()
            if len(words) < 2 or any(word.startswith("mem=") for word in words):
                continue
            program = root / part / words[0]
            arguments = [word.removeprefix("arg=") for word in words[2:] if word.startswith("arg=")]
            if program.exists():
                yield Test(
                    f"mpich/{part}/{words[0]}",
                    int(words[1]),
                    [str(program), *arguments],
                    root / part,
                    "No Errors" if words[0] != "simple_collective" else "",
                )


def romio_tests(mpi: Mpi, work: Path) -> Iterator[Test]:
    """ROMIO's tests, which need nothing but an MPI."""
    source = debian_source("mpich", work)
    root = copy_for(mpi, source / "src" / "mpi" / "romio" / "test")
    named = """simple:4 psimple:4 async:4 async-multiple:4 atomicity:4 coll_test:4 coll_perf:4
        creat_excl:4 excl:4 file_info:4 i_noncontig:2 noncontig:2 noncontig_coll:2
        noncontig_coll2:4 shared_fp:4 ordered_fp:4 split_coll:4 error:1 status:1 perf:4
        large_array:2"""
    plain = """aggregation2:4 hindexed:4 types_with_zeros:2 darray_read:4 big_extents:4"""
    listed = [(word, "-fname") for word in named.split()] + [(word, "") for word in plain.split()]
    for word, option in [*listed, ("aggregation1:4", "-f")]:
        name, ranks = word.split(":")
        program = root / name
        if not program.exists():
            command = [mpi.compiler("c"), "-w", "-O1", f"{name}.c", "-o", name]
            subprocess.run(command, cwd=root, capture_output=True, check=False)
        if not program.exists() or name == "large_array":  # Needs 4 GiB of disk.
            continue
        arguments = [option] if option else []
        if name == "aggregation1":
            arguments = ["-h", *arguments]
        data = root / "data"
        data.mkdir(exist_ok=True)
        yield Test(f"romio/{name}", int(ranks), [str(program), *arguments, str(data / name)], root)


def mpi4py_tests(mpi: Mpi, work: Path) -> Iterator[Test]:
    """mpi4py's tests of files, against mpi4py built for this MPI."""
    folder = work / f"mpi4py-{mpi.name}"
    python = folder / "venv" / "bin" / "python"
    if not (folder / "source").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        pip = ["-m", "pip", "--disable-pip-version-check"]
        run([sys.executable, "-m", "venv", "venv"], folder)
        compiler = {"MPICC": mpi.compiler("c")}
        run([str(python), *pip, "install", "numpy", "setuptools<80", "wheel", "cython<3"], folder)
        package = ["--no-binary=mpi4py", "--no-build-isolation", "--no-deps", "mpi4py==3.1.6"]
        run([str(python), *pip, "install", *package], folder, compiler)
        run([str(python), *pip, "download", *package], folder, compiler)
        (archive,) = folder.glob("mpi4py-*.tar.gz")
        (folder / "source").mkdir()
        run(["tar", "xf", archive.name, "-C", "source", "--strip-components=1"], folder)
    root = folder / "source"
    for module in ("test_file", "test_io"):
        command = [str(python), "test/runtests.py", "-i", module, "--no-builddir"]
        for ranks in (1, 4):
            yield Test(f"mpi4py/{module}/{ranks}", ranks, command, root)


def hdf5_tests(mpi: Mpi, work: Path) -> Iterator[Test]:
    """HDF5's parallel tests, against the HDF5 that is installed for this MPI."""
    source = debian_source("hdf5", work)
    root = copy_for(mpi, source)
    installed = subprocess.run(
        ["pkg-config", "--cflags", "--libs", f"hdf5-{mpi.name}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    folder = root / "testpar"
    parts = {
        "testphdf5": """testphdf5.c t_dset.c t_file.c t_file_image.c t_mdset.c t_ph5basic.c
            t_coll_chunk.c t_span_tree.c t_chunk_alloc.c t_filter_read.c t_prop.c t_coll_md_read.c
            t_oflush.c""",
        "t_mpi": "t_mpi.c",
        "t_bigio": "t_bigio.c",
        "t_shapesame": "t_shapesame.c",
        "t_filters_parallel": "t_filters_parallel.c",
    }
    library = "h5test.c testframe.c"
    for name, sources in parts.items():
        program = folder / name
        if not program.exists():
            files = sources.split() + [f"../test/{file}" for file in library.split()]
            command = [mpi.compiler("c"), "-w", "-O1", "-I.", "-I../test", "-I../src", *files]
            subprocess.run([*command, *installed, "-lm", "-o", name], cwd=folder, check=False)
        if program.exists() and name != "t_bigio":  # Needs tens of GiB.
            yield Test(f"hdf5/{name}", 4, [str(program)], folder)


def pnetcdf_tests(mpi: Mpi, work: Path) -> Iterator[Test]:
    """PnetCDF's C tests, against the PnetCDF that is installed (built for one MPI: Debian's for
    Open MPI)."""
    source = debian_source("pnetcdf", work)
    root = copy_for(mpi, source)
    if not (root / "config.status").exists():
        compilers = {"MPICC": mpi.compiler("c"), "CC": "gcc"}
        run(
            ["./configure", "--disable-fortran", "--disable-cxx", "--disable-versioning"],
            root,
            compilers,
        )
        run(["make"], root)
        subprocess.run(
            ["make", "-k", "check", "TESTS="], cwd=root, capture_output=True, check=False
        )
    for folder in ("test/testcases", "test/C", "test/nonblocking", "test/largefile"):
        for program in sorted((root / folder).iterdir()):
            if program.is_file() and os.access(program, os.X_OK) and not program.suffix:
                data = root / folder / f"{program.name}.data.nc"
                yield Test(
                    f"pnetcdf/{folder}/{program.name}", 4, [str(program), str(data)], root / folder
                )


SUITES = {
    "mpich": mpich_tests,
    "romio": romio_tests,
    "mpi4py": mpi4py_tests,
    "hdf5": hdf5_tests,
    "pnetcdf": pnetcdf_tests,
}


def outcome(mpi: Mpi, test: Test, library: Path | None, log: Path) -> str:
    """ "ok", "hangs", or what went wrong in a word; the output goes to `log`."""
    preload = ["env", f"LD_PRELOAD={library}"] if library else []
    command = [*mpi.launch(test.ranks), *preload, *test.command]
    with log.open("w") as out:
        process = subprocess.Popen(
            command,
            cwd=test.folder,
            env=os.environ | test.environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            # The launcher takes its ranks with it.
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            return "hangs"
    if status != 0:
        return f"exit {status}"
    if test.passes and test.passes.lower() not in log.read_text(errors="replace").lower():
        return "fails"
    return "ok"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--library", type=Path, required=True, help="libforebay.so")
    parser.add_argument("--mpi", choices=("mpich", "openmpi"), default="mpich")
    parser.add_argument("--work", type=Path, default=Path("build/foreign-tests"))
    parser.add_argument("--only", default="", help="tests whose name contains this")
    parser.add_argument(
        "--ranks-max", type=int, default=64, help="fewer ranks, where they poll and cores are few"
    )
    parser.add_argument("suites", nargs="+", choices=sorted(SUITES))
    options = parser.parse_args()
    mpi = Mpi(options.mpi)
    work = options.work.resolve()
    logs = work / "logs" / mpi.name
    logs.mkdir(parents=True, exist_ok=True)
    worse = 0
    for suite in options.suites:
        for test in SUITES[suite](mpi, work):
            if options.only not in test.name:
                continue
            test = replace(test, ranks=min(test.ranks, options.ranks_max))
            name = test.name.replace("/", ".")
            stock = outcome(mpi, test, None, logs / f"{name}.stock")
            forebay = outcome(mpi, test, options.library.resolve(), logs / f"{name}.forebay")
            mark = "" if stock == forebay else "  better" if forebay == "ok" else "  DIFFERS"
            worse += mark == "  DIFFERS"
            print(f"{test.name:45} stock {stock:10} Forebay {forebay:10}{mark}", flush=True)
    print(f"{worse} tests are worse under Forebay; output in {logs}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
