"""One claim about a workload program, tried on a real MPI.

Goal: the programs write what they say, notice every byte that is wrong, and end by themselves.
Method: each case runs the program in a directory of its own, judges exit status, output and files.

    proxy_case.py CASE LAUNCHER... -- RANKS PROGRAM OPTIONS...

LAUNCHER is the command that starts ranks, up to and with its option for their number.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HANG_SECONDS = 100
"""A run that takes longer than this hangs; it is no bound on speed."""


@dataclass(frozen=True)
class Proxy:
    """How to start a program."""

    launcher: list[str]
    ranks: int
    program: str
    options: list[str]

    def run(
        self, path: Path, *extra: str, ranks: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs the program on `path`, with `extra` options, and returns when all ranks ended."""
        count = str(self.ranks if ranks is None else ranks)
        command = [*self.launcher, count, self.program, *self.options, *extra, str(path)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False
        )

    def run_well(self, path: Path, *extra: str, ranks: int | None = None) -> str:
        """The same; the program must succeed. Returns what it printed."""
        result = self.run(path, *extra, ranks=ranks)
        expect(result.returncode == 0, "the program succeeds", result)
        return result.stdout


def expect(truth: bool, claim: str, result: subprocess.CompletedProcess[str] | None = None) -> None:
    """Ends the case with an explanation unless the claim holds."""
    if truth:
        return
    lines = [f"does not hold: {claim}"]
    if result is not None:
        lines += [f"status {result.returncode} of {result.args}", result.stdout, result.stderr]
    sys.exit("\n".join(lines))


def contents(directory: Path) -> dict[str, bytes]:
    """All files that a run left, by name."""
    return {file.name: file.read_bytes() for file in directory.iterdir()}


def reads_back(proxy: Proxy, directory: Path) -> None:
    """What was written is read back right, at once and by a later run."""
    path = directory / "data"
    printed = proxy.run_well(path)
    expect("bytes are right" in printed, "the program says that it checked")
    expect(any(len(data) > 0 for data in contents(directory).values()), "there is a file")
    printed = proxy.run_well(path, "--verify-only")
    expect("write" not in printed, "--verify-only does not write")
    expect("bytes are right" in printed, "--verify-only checks")


def repeats(proxy: Proxy, directory: Path) -> None:
    """Two runs leave the same files with the same bytes; another seed leaves others."""
    runs = []
    for name, seed in (("first", "5"), ("second", "5"), ("other", "6")):
        run_directory = directory / name
        run_directory.mkdir()
        proxy.run_well(run_directory / "data", "--no-read", "--seed", seed)
        runs.append(contents(run_directory))
    expect(runs[0].keys() == runs[1].keys(), "both runs leave the same files")
    expect(runs[0] == runs[1], "both runs leave the same bytes")
    expect(runs[0] != runs[2], "another seed gives other bytes")


def any_ranks(proxy: Proxy, directory: Path) -> None:
    """One rank and several write the same file, and each reads what the other wrote."""
    one, several = directory / "one", directory / "several"
    proxy.run_well(one, "--no-read", ranks=1)
    proxy.run_well(several, "--no-read")
    expect(one.read_bytes() == several.read_bytes(), "the number of ranks does not matter")
    proxy.run_well(one, "--verify-only")


def finds_damage(proxy: Proxy, directory: Path) -> None:
    """A byte that is wrong is found, and so are bytes that are missing."""
    path = directory / "data"
    proxy.run_well(path, "--no-read")
    right = path.read_bytes()
    at = len(right) * 2 // 3
    damaged = bytearray(right)
    damaged[at] ^= 0x10
    path.write_bytes(damaged)
    result = proxy.run(path, "--verify-only")
    expect(result.returncode == 1, "a wrong byte gives status 1", result)
    told = re.search(
        r"rank \d+: .* is wrong at offset (\d+): expected 0x\w+, found 0x", result.stderr
    )
    expect(told is not None, "the wrong byte is named", result)
    if told is not None and "hdf5" not in proxy.options:
        # The Fortran program names the word in which the byte is.
        expect(int(told[1]) in (at, at // 8 * 8), f"the wrong byte is at {at}", result)

    path.write_bytes(right[: len(right) // 2])
    result = proxy.run(path, "--verify-only")
    expect(result.returncode == 1, "missing bytes give status 1", result)
    path.write_bytes(right)
    proxy.run_well(path, "--verify-only")


def refuses(proxy: Proxy, directory: Path) -> None:
    """A wrong command line gives status 2 and one explanation, and nothing is written."""
    path = directory / "data"
    for wrong in (("--no-such-option",), ("--verify-only", "--no-verify"), (str(path),)):
        result = proxy.run(path, *wrong)
        expect(result.returncode == 2, f"{wrong} gives status 2", result)
        expect(result.stderr.count("--help") == 1, "exactly one rank explains", result)
    expect(not contents(directory), "nothing is written")
    result = proxy.run(path, "--help")
    expect(result.returncode == 0, "--help succeeds", result)
    expect(result.stdout.count("Examples:") == 1, "one rank prints the help", result)


CASES: dict[str, Callable[[Proxy, Path], None]] = {
    case.__name__: case for case in (reads_back, repeats, any_ranks, finds_damage, refuses)
}


def main(arguments: list[str]) -> None:
    """Runs the case that the command line names."""
    case, *launch = arguments
    split = launch.index("--")
    ranks, program, *options = launch[split + 1 :]
    proxy = Proxy(launch[:split], int(ranks), program, options)
    with tempfile.TemporaryDirectory(prefix="forebay-proxy-") as directory:
        CASES[case](proxy, Path(directory))


if __name__ == "__main__":
    main(sys.argv[1:])
