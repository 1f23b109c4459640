"""`forebay run --intent` with the real library and programs that know nothing of it: what is wrong
with what was declared is told once, with its line, and the program reads what it would have."""

import os
import random
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from conftest import Answer, Forebay, read_json

from forebay.characterise.system.page_cache import drop

REPOSITORY = Path(__file__).resolve().parents[2]
REAL_LIBRARY = Path(os.environ.get("FOREBAY_LIBRARY_DIR", REPOSITORY / "build" / "lib"))
SIZE = 300_000
SETTLING_S = 2.1  # core/storage/file_version.hpp

pytestmark = pytest.mark.skipif(
    not (REAL_LIBRARY / "libforebay-posix.so").is_file(),
    reason="libforebay-posix.so is not built (make build, or set FOREBAY_LIBRARY_DIR)",
)

INTENT = """\
[[file]]
path = "wrong.dat"
willneed = [[0, 10]]
[[file]]
path = "*.dat"
budget = "1MiB"
willneed = [
  [0, 8192],
  [4096, 8192],
  [-1, 3],
  [300000, 1], [65536, 9223372036854775807],
]
"""
#: Opens each file twice, and prints what is in it.
READER = """
import sys
for name in sys.argv[1:] * 2:
    with open(name, "rb", buffering=0) as file:
        sys.stdout.buffer.write(file.read())
"""


@pytest.fixture
def environ(environ: dict[str, str]) -> dict[str, str]:
    return {**environ, "FOREBAY_LIBRARY_DIR": str(REAL_LIBRARY)}


def run_told(forebay: Forebay, script: str) -> Answer:
    """Runs it by a shell, with what was read ahead in `r.json`."""
    words = ["--intent", "reads.toml", "--json", "r.json"]
    return forebay("run", *words, "--", "sh", "-c", script)


def test_extents_that_do_not_fit_are_told_once_with_their_line(
    forebay: Forebay, tmp_path: Path
) -> None:
    (tmp_path / "reads.toml").write_text(INTENT)
    for name in ("wrong.dat", "other.dat"):
        (tmp_path / name).write_text("x" * SIZE)
    (tmp_path / "reader.py").write_text(READER)
    reader = f"{sys.executable} reader.py wrong.dat other.dat"
    answer = run_told(forebay, f"{reader}; {reader}")
    assert (answer.code, answer.output) == (0, "x" * 8 * SIZE)
    of_both = [
        "reads.toml:9: willneed [4096, 8192] overlaps the pair before it",
        "reads.toml:11: willneed [300000, 1] lies outside, as the file has 300000 bytes",
        "reads.toml:11: willneed [65536, 9223372036854775807] goes beyond the end",
    ]
    assert [answer.errors.count(sentence) for sentence in of_both] == [2, 2, 2], answer.errors
    taken_back = "reads.toml:3: willneed has no effect on this file, for which that of line 8"
    assert answer.errors.count(taken_back) == 1
    assert "reads.toml:10: willneed" in answer.errors, "by the library itself"
    told = read_json(tmp_path / "r.json")["prefetch"]["files"]
    assert {file["path"]: len(file["mistakes"]) for file in told} == {
        str(tmp_path / "wrong.dat"): 4,
        str(tmp_path / "other.dat"): 3,
    }


def test_files_of_one_name_in_several_directories_are_told_apart(
    forebay: Forebay, tmp_path: Path
) -> None:
    (tmp_path / "reads.toml").write_text('[[file]]\npath = "events"\nwillneed = [[0, 0]]\n')
    (tmp_path / "reader.py").write_text(READER)
    for rank, size in enumerate((SIZE, 2 * SIZE)):
        (tmp_path / f"rank{rank}").mkdir()
        (tmp_path / f"rank{rank}" / "events").write_text("x" * size)
    reader = f"{sys.executable} ../reader.py events"
    answer = run_told(forebay, f"cd rank0; {reader}; cd ../rank1; {reader}")
    assert (answer.code, answer.output) == (0, "x" * 6 * SIZE)
    told = read_json(tmp_path / "r.json")["prefetch"]["files"]
    assert {file["path"]: file["bytes_asked"] for file in told} == {
        str(tmp_path / "rank0" / "events"): 2 * SIZE,
        str(tmp_path / "rank1" / "events"): 4 * SIZE,
    }


def mistaken(forebay: Forebay, tmp_path: Path, words: list[str]) -> Answer:
    """Runs this with an intent file that does not fit what it reads."""
    (tmp_path / "reads.toml").write_text(INTENT)
    (tmp_path / "other.dat").write_text("x" * SIZE)
    return forebay("run", "-q", "--intent", "reads.toml", "--", *words)


def test_without_a_directory_of_records_mistakes_are_told_by_the_program_itself(
    forebay: Forebay, tmp_path: Path
) -> None:
    words = ["sh", "-c", "unset FOREBAY_REPORT_DIR; exec wc -c other.dat"]
    answer = mistaken(forebay, tmp_path, words)
    assert (answer.code, answer.output) == (0, f"{SIZE} other.dat\n")
    assert f"forebay: {tmp_path / 'other.dat'}: " in answer.errors
    assert answer.errors.count("reads.toml:11: willneed [300000, 1] lies outside") == 1


def test_mistakes_are_not_told_to_a_file_that_has_the_number_of_the_error_stream(
    forebay: Forebay, tmp_path: Path
) -> None:
    program = (
        "import os; os.close(2); assert os.open('result', os.O_CREAT | os.O_WRONLY) == 2; "
        "os.open('other.dat', os.O_RDONLY)"
    )
    answer = mistaken(forebay, tmp_path, [sys.executable, "-c", program])
    assert (answer.code, (tmp_path / "result").read_text()) == (0, "")


def test_what_several_processes_read_is_recorded_in_one_and_replayed(
    forebay: Forebay, tmp_path: Path
) -> None:
    content = random.Random(1).randbytes(4 << 20)
    (tmp_path / "shared.dat").write_bytes(content)
    read_half = (
        "import os, sys; at = int(sys.argv[1]) << 20; file = os.open('shared.dat', os.O_RDONLY)\n"
        "for n in range(16): os.write(1, os.pread(file, 1 << 17, at + (n << 17)))\n"
    )
    (tmp_path / "half.py").write_text(read_half)
    halves = f"{sys.executable} half.py 0 >low & {sys.executable} half.py 2 >high; wait"
    answer = forebay("run", "--record", "--", "sh", "-c", halves)
    assert answer.code == 0, answer.errors
    (section,) = tomllib.loads((tmp_path / "reads.toml").read_text())["file"]
    halves_read = [[0, 2 << 20], [2 << 20, 2 << 20]]  # or in one, if they were closed in order
    assert sorted(section["willneed"]) in (halves_read, [[0, 4 << 20]])

    while time.time() < (tmp_path / "shared.dat").stat().st_ctime + SETTLING_S:
        time.sleep(0.05)
    left = drop(tmp_path / "shared.dat")
    answer = run_told(forebay, halves)
    assert answer.code == 0, answer.errors
    assert (tmp_path / "low").read_bytes() + (tmp_path / "high").read_bytes() == content
    (told,) = read_json(tmp_path / "r.json")["prefetch"]["files"]
    assert told["bytes_asked"] == len(content)
    if left == 0:
        assert told["bytes_served"] > 0, told


def test_keys_that_nobody_knows_are_told(forebay: Forebay, tmp_path: Path) -> None:
    (tmp_path / "a.dat").write_text("x" * SIZE)
    (tmp_path / "reader.py").write_text(READER)
    (tmp_path / "reads.toml").write_text(
        '[[file]]\npath = "a.dat"\nwillneed = [[0, 0]]\nbuget = "1MiB"\n'
        '[[file]]\npath = "b.dat"\nwilneed = [[0, 0]]\n[[file]]\nbudget = "1MiB"\n'
    )
    words = ["run", "--intent", "reads.toml", "--", sys.executable, "reader.py", "a.dat"]
    answer = forebay(*words)
    assert answer.code == 0
    assert answer.errors.count("buget") == 1
    assert "reads.toml:4: buget" in answer.errors
    assert "section 2 (b.dat) has a key wilneed: willneed?" in answer.errors
    assert "section 3 has no path" in answer.errors
    (tmp_path / "reads.toml").write_text('[[file]]\npath = "a.dat"\nwilneed = [[0, 0]]\n')
    answer = forebay(*words)
    assert answer.errors.count("wilneed") == 1


def test_an_intent_file_that_is_no_toml_is_told_and_the_run_goes_on(
    forebay: Forebay, tmp_path: Path
) -> None:
    (tmp_path / "reads.toml").write_text('[[file]]\npath = "*.dat"\nwillneed = [[0 0]]\n')
    answer = forebay("run", "--intent", "reads.toml", "--", "echo", "out")
    assert (answer.code, answer.output) == (0, "out\n")
    assert answer.errors.count("nothing is read ahead: reads.toml is no TOML") == 1
    assert "line 3" in answer.errors
    answer = forebay("run", "--pages", "--intent", "reads.toml", "--", "echo", "out")
    assert (answer.code, answer.output) == (2, "")
    assert "--pages has nothing to do: reads.toml is no TOML" in answer.errors


def test_of_processes_that_were_killed_nothing_is_left_in_shared_memory(
    forebay: Forebay, tmp_path: Path
) -> None:
    (tmp_path / "reads.toml").write_text('[[file]]\npath = "*.dat"\nwillneed = [[0, 0]]\n')
    (tmp_path / "read.dat").write_bytes(bytes(2 << 20))
    inode = (tmp_path / "read.dat").stat().st_ino
    left = f"ls /dev/shm | grep -c 'forebay-reads-.*-{inode:x}-'"
    answer = forebay(
        "run", "--intent", "reads.toml",
        "--", "sh", "-c", f"sh -c 'exec 9<read.dat; kill -9 $$'; {left}",
    )  # fmt: skip
    assert answer.output == "1\n", "the one that was killed left none"
    assert not list(Path("/dev/shm").glob(f"forebay-reads-*-{inode:x}-*"))


class Pages:
    """`forebay run --pages` as root in circumstances of its own, which take root."""

    def __init__(self, directory: Path, environ: dict[str, str]) -> None:
        self.directory = directory
        self.environ = environ

    def run(self, *words: str, before: tuple[str, ...] = ()) -> tuple[int, str, str]:
        """Status, output and messages; started by a command with the words `before`."""
        done = subprocess.run(
            [*before, sys.executable, "-m", "forebay", "run", "--pages", *words],
            cwd=self.directory,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def pages(environ: dict[str, str], tmp_path: Path) -> Pages:
    if not (REAL_LIBRARY.parent / "bin" / "forebay-pages").is_file():
        pytest.skip("forebay-pages is not built (libtraceevent-dev; make build)")
    if os.getuid() != 0 or not (shutil.which("setpriv") and shutil.which("unshare")):
        pytest.skip("takes root, setpriv and unshare")
    return Pages(tmp_path, environ)


def own_intent(directory: Path) -> str:
    """Of files in `directory` alone: in the kernel, what other programs read is seen, too."""
    return INTENT.replace('path = "', f'path = "{directory}/')


SEEN = "what a program reads cannot be seen in the kernel: "
WHAT_TO_DO = "Run forebay as root, on a kernel with the tracepoints of 'filemap'"


def test_who_may_not_see_pages_is_told_so(pages: Pages) -> None:
    unprivileged = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    code, output, errors = pages.run("--record", "--", "echo", "out", before=unprivileged)
    assert (code, output) == (2, "")
    assert f"{SEEN}watch which files are opened (fanotify, which takes root)" in errors
    assert "Operation not permitted" in errors
    assert WHAT_TO_DO in errors


def test_a_kernel_without_the_tracepoints_is_told(pages: Pages) -> None:
    tracing = Path("/sys/kernel/tracing")
    hide = f"mount -t tracefs nodev {tracing} && mount -t tmpfs none {tracing}/events/filemap"
    without = ("unshare", "--mount", "sh", "-c", f'{hide} || exit 77; exec "$@"', "sh")
    code, output, errors = pages.run("--record", "--", "echo", "out", before=without)
    if code == 77 or "fanotify" in errors:
        pytest.skip(f"the kernel does not allow it: {errors}")
    assert (code, output) == (2, "")
    assert f"{SEEN}this kernel has no tracepoint filemap:mm_filemap_get_pages" in errors
    assert WHAT_TO_DO in errors


def test_mistakes_of_an_intent_are_told_with_pages_too(pages: Pages, tmp_path: Path) -> None:
    (tmp_path / "reads.toml").write_text(own_intent(tmp_path))
    (tmp_path / "other.dat").write_text("x" * SIZE)
    code, output, errors = pages.run("--intent", "reads.toml", "--", "wc", "-c", "other.dat")
    if SEEN in errors:
        pytest.skip(f"the kernel does not allow it: {errors}")
    assert (code, output) == (0, f"{SIZE} other.dat\n")
    if "no file that reads.toml declares was opened on storage" in errors:
        pytest.skip("the directory of tests is in memory")
    assert errors.count("reads.toml:10: willneed") == 1
    assert errors.count("reads.toml:11: willneed [300000, 1] lies outside") == 1


def test_pages_that_nobody_read_are_told(pages: Pages, tmp_path: Path) -> None:
    (tmp_path / "reads.toml").write_text(own_intent(tmp_path))
    code, output, errors = pages.run("--intent", "reads.toml", "--", "echo", "out")
    if SEEN in errors:
        pytest.skip(f"the kernel does not allow it: {errors}")
    assert (code, output) == (0, "out\n")
    assert "no file that reads.toml declares was opened on storage" in errors
    assert "no MPI file was seen" not in errors
    (tmp_path / "reads.toml").write_text(f"version = 2\n{own_intent(tmp_path)}")
    code, output, errors = pages.run("--intent", "reads.toml", "--", "echo", "out")
    assert (code, output) == (2, "")
    assert "reads.toml:1: version 2 of the intent file is not known here" in errors
    assert SEEN not in errors
