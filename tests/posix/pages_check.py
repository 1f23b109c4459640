"""Goal: what a static program, a Go program and one with a mapping read is seen in the kernel and
written down, and when that is declared it is in the page cache before they ask.

Method: each program reads pieces of a file that is in no cache. What was written down must hold all
pieces, and of a mapping no more than lies in windows of 64 KiB around them. Then it runs again, and
waits after opening its file until what was declared is there: the reads that the system made for it
(getrusage) must be few. Left out where the kernel does not allow it (77), and Go where it is not
installed.

usage: pages_check.py FOREBAY_PAGES DYNAMIC_PROGRAM STATIC_PROGRAM
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from preloaded import evict, make_file, wait_until_resident

SKIPPED = 77
PIECES, STEP, LENGTH = 60, 300_000, 65_536
WINDOW = 1 << 16
SMALL_BUDGET = 20 * LENGTH


class Watched:
    """Runs programs with `watcher` beside them, in `directory`."""

    def __init__(self, watcher: str, directory: Path) -> None:
        self.watcher = watcher
        self.data = directory / "data"
        self.records = directory / "records"
        self.records.mkdir()

    def run(self, command: list[str], words: list[str], wait_for: int) -> tuple[bytes, int]:
        """What it printed, and how many blocks of 512 bytes the system read for it, which first
        waits until so many bytes of its file are there."""
        emptied = evict(self.data)
        with subprocess.Popen(
            [self.watcher, "--parent", str(os.getpid()), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "FOREBAY_REPORT_DIR": str(self.records)},
        ) as watcher:
            assert watcher.stdout is not None
            if watcher.stdout.readline() != b"ready\n":
                raise PermissionError
            with subprocess.Popen(
                [*command, str(self.data), str(PIECES), str(STEP), str(LENGTH)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            ) as program:
                assert program.stdout is not None
                assert program.stdin is not None
                program.stdout.readline()
                if emptied:
                    wait_until_resident(self.data, wait_for)
                program.stdin.write(b"\n")
                program.stdin.close()
                said = program.stdout.read()
                _, _, usage = os.wait4(program.pid, 0)
                program.returncode = 0
            watcher.communicate()
        return said, usage.ru_inblock if emptied else 0

    def take(self, ending: str) -> list[dict[str, Any]]:
        """The records of the file since the last call."""
        found = []
        for path in self.records.iterdir():
            record = json.loads(path.read_bytes())
            if path.suffix == ending and record["path"] == str(self.data):
                found.append(record)
            path.unlink()
        return found


def not_covered(extents: list[list[int]]) -> int:
    """Bytes of the pieces that are in none of the extents."""
    read = {
        page
        for offset, length in extents
        for page in range(offset // 4096, -(-(offset + length) // 4096))
    }
    wanted = {
        page
        for piece in range(PIECES)
        for page in range(piece * STEP // 4096, -(-(piece * STEP + LENGTH) // 4096))
    }
    return 4096 * len(wanted - read)


def check(watched: Watched, kind: str, command: list[str], directory: Path) -> list[str]:
    """What is wrong."""
    plain, blocks_plain = watched.run(command, [], 0)
    traces = watched.take(".trace")
    if len(traces) != 1:
        return [f"{kind}: {len(traces)} traces of one program"]
    extents = traces[0]["extents"]
    failures = []
    amount = sum(length for _, length in extents)
    if not_covered(extents) > 0 or amount > PIECES * (LENGTH + 2 * WINDOW):
        failures.append(f"{kind}: not what was read: {extents}")
    intent = directory / "reads.toml"
    intent.write_text(
        f"[[file]]\npath = '{watched.data}'\nwillneed = {extents}\nbudget = '64MiB'\n"
    )
    again, blocks = watched.run(command, ["--intent", str(intent)], amount)
    (record,) = watched.take(".reads")
    print(
        f"{kind}: {len(extents)} extents of {amount} bytes; the system read {blocks_plain} blocks "
        f"for the program, read ahead {blocks}; {record['bytes_fetched']} bytes brought"
    )
    if again != plain or not plain.strip().isdigit():
        failures.append(f"{kind}: {plain!r}, read ahead {again!r}")
    if blocks * 4 > blocks_plain:
        failures.append(f"{kind}: {blocks_plain} blocks without, {blocks} with reading ahead")
    # With less room than all takes it must follow the program.
    intent.write_text(intent.read_text().replace("64MiB", str(SMALL_BUDGET)))
    again, _ = watched.run(command, ["--intent", str(intent)], SMALL_BUDGET // 2)
    (record,) = watched.take(".reads")
    if again != plain or record["plans_given_up"] > 0 or record["reads"] == 0:
        failures.append(f"{kind}: with a small budget {again!r}: {record}")
    return failures


def go_program(directory: Path) -> list[str]:
    """Empty where there is no Go."""
    compiler = shutil.which("go")
    if compiler is None:
        print("no go is installed: its program is left out")
        return []
    program = directory / "page_reader_go"
    source = Path(__file__).with_name("page_reader.go")
    subprocess.run([compiler, "build", "-o", str(program), str(source)], check=True)
    return [str(program), "read"]


def main() -> int:
    watcher, dynamic, static = (str(Path(word).absolute()) for word in sys.argv[1:4])
    failures = []
    with tempfile.TemporaryDirectory(dir=".", prefix="posix-pages-") as name:
        directory = Path(name).resolve()
        watched = Watched(watcher, directory)
        make_file(watched.data, PIECES * STEP, 7)
        programs = {
            "static": [static, "read"],
            "mapping": [dynamic, "map"],
            "Go": go_program(directory),
        }
        try:
            for kind, command in programs.items():
                if command:
                    failures += check(watched, kind, command, directory)
        except PermissionError:
            print("the kernel does not allow it here: the watcher has said why")
            return SKIPPED
    print("\n".join(failures) or "all as it was read")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
