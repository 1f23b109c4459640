"""Other people's MPI-IO tests: where they come from, how each suite is built, its programs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

# Debian's source packages, from a sources list of our own: the system's has no deb-src lines.
SOURCES = "deb-src http://deb.debian.org/debian bookworm main\n"

MPI4PY = "mpi4py==3.1.6"


@dataclass(frozen=True)
class Mpi:
    name: str

    def compiler(self, language: str) -> str:
        return {"c": "mpicc", "f77": "mpif77", "f90": "mpif90"}[language] + "." + self.name

    def launch(self, ranks: int) -> list[str]:
        if self.name == "mpich":
            return ["mpiexec.mpich", "-n", str(ranks)]
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        options = "--oversubscribe --bind-to none --mca mpi_yield_when_idle 1"
        return ["mpirun.openmpi", *root, *options.split(), "-n", str(ranks)]


@dataclass(frozen=True)
class Program:
    """One program of a suite: good if it ends with 0, prints `passes` where that is set, and the
    shell's command `check` ends with 0 after it. `before` is run by as many ranks in advance, to
    leave what the program looks at. Fewer ranks than `ranks_min` test nothing."""

    name: str
    ranks: int
    command: list[str]
    folder: Path
    passes: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    ranks_min: int = 1
    before: str = ""
    check: str = ""


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


def attempt(command: list[str], folder: Path) -> None:
    """A step of a build that one MPI or another cannot make; what it cannot make is left out."""
    with (folder / "build.log").open("a") as log:
        print("+", *command, file=log, flush=True)
        subprocess.run(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, check=False)


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


def debian_version(package: str) -> Callable[[Path], str]:
    """Which source package of Debian's `debian_source` unpacked: "hdf5 1.10.8+repack1-1"."""

    def version(work: Path) -> str:
        (description,) = (work / package).glob("*.dsc")
        return description.stem.replace("_", " ")

    return version


def copy_for(mpi: Mpi, source: Path) -> Path:
    """A copy of a source tree to build with `mpi` in."""
    folder = source.with_name(f"{source.name}-{mpi.name}")
    if not folder.exists():
        shutil.copytree(source, folder, symlinks=True)
    return folder


def mpich_tests(mpi: Mpi, work: Path) -> Iterator[Program]:
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
            attempt(["make", "-k", "-C", part], root)
        # Open MPI cannot build dtpools, which make asks for and few programs take.
        library = ["mtest_single.o", "libmtest_la-mtest.o", "libmtest_la-mtest_common.o"]
        for made in (root / "io").glob("*.o"):
            if not made.with_suffix("").exists():
                objects = [made.name, *(f"../util/{name}" for name in library)]
                attempt([mpi.compiler("c"), *objects, "-o", made.stem, "-lm"], root / "io")
    for part in ("io", "f77/io", "f90/io"):
        for line in (root / part / "testlist").read_text().splitlines():
            words = line.split("#")[0].split()
            if len(words) < 2 or any(word.startswith("mem=") for word in words):
                continue
            program = root / part / words[0]
            arguments = [word.removeprefix("arg=") for word in words[2:] if word.startswith("arg=")]
            if program.exists():
                yield Program(
                    f"mpich/{part}/{words[0]}",
                    int(words[1]),
                    [str(program), *arguments],
                    root / part,
                    "No Errors" if words[0] != "simple_collective" else "",
                    ranks_min=4 if words[0] in ("i_hindexed", "i_darray_read") else 1,
                )


def romio_tests(mpi: Mpi, work: Path) -> Iterator[Program]:
    """ROMIO's tests, which need nothing but an MPI; coll_perf and large_array need 13 and 4 GiB."""
    source = debian_source("mpich", work)
    root = copy_for(mpi, source / "src" / "mpi" / "romio" / "test")
    named = """simple:4 psimple:4 async:4 async-multiple:4 atomicity:4 coll_test:4
        creat_excl:4 excl:4 file_info:4 i_noncontig:2 noncontig:2 noncontig_coll:2
        noncontig_coll2:4 shared_fp:4 ordered_fp:4 split_coll:4 error:1 status:1 perf:4"""
    plain = """aggregation2:4 hindexed:4 types_with_zeros:2 darray_read:4 big_extents:4"""
    listed = [(word, "-fname") for word in named.split()] + [(word, "") for word in plain.split()]
    for word, option in [*listed, ("aggregation1:4", "-f")]:
        name, ranks = word.split(":")
        program = root / name
        if not program.exists():
            attempt([mpi.compiler("c"), "-w", "-O1", f"{name}.c", "-o", name], root)
        if not program.exists():
            continue
        arguments = [option] if option else []
        if name == "aggregation1":
            arguments = ["-h", *arguments]
        data = root / "data"
        data.mkdir(exist_ok=True)
        command = [str(program), *arguments, str(data / name)]
        ranks_min = 4 if name in ("hindexed", "darray_read") else 1
        yield Program(f"romio/{name}", int(ranks), command, root, ranks_min=ranks_min)


def mpi4py_tests(mpi: Mpi, work: Path) -> Iterator[Program]:
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
        package = ["--no-binary=mpi4py", "--no-build-isolation", "--no-deps", MPI4PY]
        run([str(python), *pip, "install", *package], folder, compiler)
        run([str(python), *pip, "download", *package], folder, compiler)
        (archive,) = folder.glob("mpi4py-*.tar.gz")
        (folder / "unpacking").mkdir()
        run(["tar", "xf", archive.name, "-C", "unpacking", "--strip-components=1"], folder)
        (folder / "unpacking").rename(folder / "source")
    root = folder / "source"
    for module in ("test_file", "test_io", "test_info", "test_datatype"):
        command = [str(python), "test/runtests.py", "-i", module, "--no-builddir"]
        for ranks in (1, 4) if module in ("test_file", "test_io") else (1,):
            yield Program(f"mpi4py/{module}/{ranks}", ranks, command, root)


def hdf5_tests(mpi: Mpi, work: Path) -> Iterator[Program]:
    """HDF5's parallel tests and its parallel command h5perf, against the HDF5 that is installed
    for this MPI."""
    root = copy_for(mpi, debian_source("hdf5", work))
    # NDEBUG as the library has it: two of the tests look into its structures.
    options = ["-w", "-O1", "-DNDEBUG", "-I../test", "-I../src", "-I../tools/lib"]
    options += shlex.split(
        subprocess.run(
            ["pkg-config", "--cflags", "--libs", f"hdf5-{mpi.name}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    folder = root / "testpar"
    header = (root / "test" / "H5srcdir_str.h.in").read_text()
    (root / "test" / "H5srcdir_str.h").write_text(header.replace("@srcdir@", "."))
    # Archives, as HDF5's own build has them: some tests define again what they do not take.
    archives = {
        "h5test": "h5test testframe cache_common swmr_common external_common",
        "h5tools": """h5tools h5tools_dump h5tools_str h5tools_utils h5diff h5diff_array
            h5diff_attr h5diff_dset h5diff_util h5trav h5tools_filters h5tools_ref h5tools_type
            io_timer""",
    }
    for archive, sources in archives.items():
        if (folder / f"lib{archive}.a").exists():
            continue
        room = root / ("test" if archive == "h5test" else "tools/lib")
        files = [f"{room}/{source}.c" for source in sources.split()]
        attempt([mpi.compiler("c"), "-c", *files, *options], folder)
        objects = [f"{source}.o" for source in sources.split()]
        attempt(["ar", "rcs", f"lib{archive}.a", *objects], folder)
    parts = {
        "testphdf5": """testphdf5.c t_dset.c t_file.c t_file_image.c t_mdset.c t_ph5basic.c
            t_coll_chunk.c t_span_tree.c t_chunk_alloc.c t_filter_read.c t_prop.c
            t_coll_md_read.c""",
        "h5perf": "../tools/src/h5perf/pio_perf.c ../tools/src/h5perf/pio_engine.c",
    }
    single = """t_mpi t_cache t_cache_image t_pread t_pshutdown t_prestart t_init_term t_shapesame
        t_filters_parallel t_pflush1 t_pflush2"""
    parts |= {name: f"{name}.c" for name in single.split()}
    libraries = ["-L.", "-lh5tools", "-lh5test"]
    for name, listed in parts.items():
        if not (folder / name).exists():
            command = [mpi.compiler("c"), *listed.split(), "-o", name, *libraries, *options, "-lm"]
            attempt(command, folder)
    ranks_min = {"t_cache": 3, "t_pread": 3, "t_filters_parallel": 4}
    # Their files are not closed by the program: it ends, or leaves that to MPI_Finalize.
    written_by = {"t_pflush2": "t_pflush1", "t_prestart": "t_pshutdown"}
    perf = "-A mpiio,phdf5 -e 256K -x 64K -X 128K"
    runs = [(name, name, "") for name in single.split() if name != "t_pflush1"]
    runs += [("h5perf", "h5perf", perf), ("h5perf-collective", "h5perf", f"{perf} -C -I -c")]
    # One run for each test in testphdf5, after the one that writes what it reads.
    added = re.compile(r'AddTest\((?:\(mpi_size < (\d)\) \? "[^"]+" : )?"([^"]+)"')
    tests = (folder / "testphdf5.c").read_text()
    for least, name in added.findall(tests):
        if name == "page_buffer":  # Compiled out.
            continue
        chosen = f"-o {name}"
        if name.endswith("r") and f'"{name[:-1]}w"' in tests:
            chosen = f"-o {name[:-1]}w {chosen}"
        runs.append((f"testphdf5/{name}", "testphdf5", chosen))
        ranks_min[f"testphdf5/{name}"] = int(least or 1)
    ranks_min["testphdf5/rrobjflushconf"] = 3
    for label, name, arguments in runs:
        if not (folder / name).exists():
            continue
        yield Program(
            f"hdf5/{label}",
            4,
            [str(folder / name), *arguments.split()],
            folder,
            # It says the name of each test that it makes.
            f"({label.removeprefix('testphdf5/')})" if name == "testphdf5" else "",
            environment={"HDF5TestExpress": "2"},
            ranks_min=ranks_min.get(label, 1),
            before=str(folder / written_by[name]) if name in written_by else "",
        )


PNETCDF_FOLDERS = """test/C test/cdf_format test/header test/largefile test/nc_test
    test/nonblocking test/testcases test/burst_buffer examples/C benchmarks/C"""

# What PnetCDF's own scripts run with arguments of its own, serially, or not at all.
PNETCDF_ARGUMENTS = {
    "tst_open_cdf5": "{source}/bad_begin.nc5",
    "tst_corrupt": "{source}",
    "test_inq_format": "{source}",
    "nc_test": "-d {data}",
    "pres_temp_4D_rd": "{data}/pres_temp_4D_wr.nc",
    "get_vara": "{data}/put_vara.nc",
    "tst_version": "",
}
PNETCDF_SERIAL = {"test/nc_test", "tst_corrupt", "tst_open_cdf5", "test_inq_format", "redef1"}
# Those that leave no file of their name, or one of another kind.
PNETCDF_UNCHECKED = {*PNETCDF_ARGUMENTS, "mcoll_perf"}


def pnetcdf_tests(mpi: Mpi, work: Path) -> Iterator[Program]:
    """PnetCDF's C tests, examples, benchmarks and its commands that use MPI-IO, with a PnetCDF
    built for this MPI; what they write is judged by its ncvalidator, as in its own scripts."""
    source = debian_source("pnetcdf", work)
    if not (source / "configure").exists():
        run(["autoreconf", "-i"], source)
    root = copy_for(mpi, source)
    folders = PNETCDF_FOLDERS.split()
    if not (root / "built").exists():
        compilers = {"MPICC": mpi.compiler("c"), "CC": "gcc", "CFLAGS": "-O1 -w"}
        options = "--disable-fortran --disable-cxx --disable-versioning --enable-burst-buffering"
        run(["./configure", *options.split()], root, compilers)
        run(["make", "-j2"], root)
        for folder in ("test/common", *folders):
            attempt(["make", "-k", "-C", folder, "check", "TESTS="], root)
        (root / "built").touch()
    validator = root / "src/utils/ncvalidator/ncvalidator"
    for folder in folders:
        data = root / folder / "data"
        data.mkdir(exist_ok=True)
        programs = (root / folder).iterdir()
        names = sorted(
            file.name
            for file in programs
            if file.is_file() and os.access(file, os.X_OK) and not file.suffix
        )
        # Those that read what another has written come last.
        for name in sorted(names, key=lambda name: name in PNETCDF_ARGUMENTS):
            arguments = PNETCDF_ARGUMENTS.get(name, "{data}/{name}.nc")
            places = {"source": str(root / folder), "data": str(data), "name": name}
            made = " ".join(f"{data}/{name}.nc{more}" for more in ("", "[0-9]", ".*"))
            each = f'[ ! -e "$file" ] || {validator} -q "$file" || exit 1'
            environment = {}
            if folder == "test/burst_buffer":
                hints = "nc_burst_buf=enable;nc_burst_buf_overwrite=enable"
                environment["PNETCDF_HINTS"] = f"{hints};nc_burst_buf_dirname={data}"
            yield Program(
                f"pnetcdf/{folder}/{name}",
                1 if {folder, name} & PNETCDF_SERIAL else 4,
                [str(root / folder / name), *arguments.format(**places).split()],
                root / folder,
                environment=environment,
                check="" if name in PNETCDF_UNCHECKED else f"for file in {made}; do {each}; done",
            )
    tools = root / "src" / "utils"
    data = root / "test" / "testcases" / "data"
    text = root / "test" / "testcases" / "redef-good.ncdump"
    made = str(data / "ncmpigen.nc")
    for name, ranks, words, passes, check in (
        ("ncmpigen", 1, ["-v", "5", "-o", made, str(text)], "", f"{validator} -q {made}"),
        ("ncmpidump", 1, [made], "variables:", ""),
        ("ncmpidiff", 4, [made, made], "", ""),
    ):
        command = [str(tools / name / name), *words]
        yield Program(f"pnetcdf/{name}", ranks, command, data, passes, check=check)


@dataclass(frozen=True)
class Suite:
    """`title`: what a reader knows it by; `version`: of the sources, once they are unpacked."""

    title: str
    tests: Callable[[Mpi, Path], Iterator[Program]]
    version: Callable[[Path], str]


SUITES = {
    "mpich": Suite("MPICH's I/O tests", mpich_tests, debian_version("mpich")),
    "romio": Suite("ROMIO's tests", romio_tests, debian_version("mpich")),
    "mpi4py": Suite("mpi4py", mpi4py_tests, lambda work: MPI4PY.replace("==", " ")),
    "hdf5": Suite("HDF5", hdf5_tests, debian_version("hdf5")),
    "pnetcdf": Suite("PnetCDF", pnetcdf_tests, debian_version("pnetcdf")),
}
