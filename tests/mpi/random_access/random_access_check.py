"""Goal: whatever a program does with a file, it sees the same with and without Forebay.

Method: random_access carries out cases drawn from seeds and prints all that a program can see, with
what a model of the MPI standard expects where that differs (name=seen!expected). Under Forebay
nothing may differ from the model. A stock MPI's answers must be the same as Forebay's as long as
they agree with the model; where a stock MPI departs from it, hangs or crashes, its later answers
for that case say nothing. Cases of even seeds are mild, with datatypes that stock MPIs mostly get
right; those of odd seeds are wild.

Where stock MPIs are known to depart from the model, and why the model is right:

* ROMIO of MPICH 4.0.2: memory types with negative strides, or with lower bounds below other types,
  give wrong bytes and an individual pointer that moves by less than the call's size, although
  MPI_Pack of the same MPI takes the right bytes. A strided read that meets the end of the file says
  the count that was asked for (MPI 4.0, 14.4.1: the count that was read).
* OMPIO of Open MPI 4.1.4: the same types, by wrong bytes, crashes or hangs. The ranks of
  MPI_File_preallocate may disagree on whether there is something to do, and wait for each other.
  A negative offset of a read is no error.
* ROMIO's data sieving puts what its buffer held into holes that nobody wrote, which MPI allows; for
  stock MPIs such bytes are left out (--open-holes), while Forebay must leave zeros there, as POSIX.
* A datatype that an MPI itself makes or packs wrong is found by the program and left out
  (type_agrees=0).

Usage: random_access_check.py --library LIB --program RANDOM_ACCESS --directory DIR
           [--first SEED] [--count N] [--batch N] [...] -- LAUNCHER...
To explore, give other seeds, and many: it goes on after a failure and prints how to repeat it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

STOCK_SECONDS_MAX = 30
FOREBAY_SECONDS_MAX = 90

LINE = re.compile(r"case (\d+) step (\d+) rank (\d+) (.*)")

#: What an MPI says of an argument that the standard forbids is its own choice of error class, and
#: Forebay's classes are checked by intercept_errors.
ERROR_CLASS = re.compile(r" \w+~\S+")

Answers = dict[int, dict[tuple[int, int], str]]


def departs(answer: str) -> bool:
    """Whether a line departs from the model, datatypes that the MPI gets wrong aside."""
    return "!" in answer.replace(" type_agrees=0!1", "")


class Runner:
    """Runs the program over a range of seeds, stock or under Forebay."""

    def __init__(self, options: argparse.Namespace, directory: Path) -> None:
        self.options = options
        self.directory = directory

    def environment(self) -> list[str]:
        options = self.options
        settings = [f"LD_PRELOAD={options.library}"]
        if options.ranks_per_node:
            settings.append(f"FOREBAY_RANKS_PER_NODE={options.ranks_per_node}")
        hints = list(options.hint)
        if options.compress:
            hints.append("forebay_compress=enable")
        if hints:
            settings.append("FOREBAY_HINTS=" + ";".join(hints))
        return ["env", *settings]

    def run(self, forebay: bool, first: int, count: int) -> tuple[str, Answers]:
        """How it ended ("" if well), and the answers by case, then by (step, rank)."""
        for path in self.directory.iterdir():
            path.unlink()
        program = [str(self.options.program), "--first", str(first), "--count", str(count)]
        program += ["--stride", str(self.options.stride)]
        program += [] if forebay else ["--open-holes"]
        command = [*self.options.launcher, *(self.environment() if forebay else []), *program]
        # The launcher dies by the signal it knows, so that it takes its ranks with it.
        seconds = FOREBAY_SECONDS_MAX if forebay else STOCK_SECONDS_MAX
        limit = ["timeout", "--signal=TERM", "--kill-after=5", str(seconds)]
        done = subprocess.run(
            [*limit, *command, str(self.directory)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        answers: Answers = {}
        for line in done.stdout.splitlines():
            if match := LINE.fullmatch(line):
                case, step, rank = (int(group) for group in match.groups()[:3])
                answers.setdefault(case, {})[step, rank] = match[4]
        if done.returncode == 0:
            return "", answers
        # A case that ended badly has printed nothing.
        ending = "hangs" if done.returncode in (124, 137) else f"exits with {done.returncode}"
        return f"{ending}: {done.stderr.strip()[-400:]}", answers


def compare(
    case: int, stock: dict[tuple[int, int], str], forebay: dict[tuple[int, int], str]
) -> tuple[str, bool]:
    """What is wrong with Forebay's answers ("" if nothing), and whether stock agrees throughout."""
    for key in sorted(forebay):
        if departs(forebay[key]):
            return f"case {case} step {key[0]} rank {key[1]}: {forebay[key]}", False
    # An MPI's first departure may have been seen by other ranks in the same step.
    steps = [step for (step, _), answer in stock.items() if departs(answer)]
    first_departure = min(steps, default=sys.maxsize)
    for key in sorted(stock):
        if key[0] >= first_departure:
            break
        theirs, ours = (ERROR_CLASS.sub("", side.get(key, "")) for side in (stock, forebay))
        if theirs != ours:
            return f"case {case} step {key[0]} rank {key[1]}: {ours} stock: {theirs}", False
    return "", bool(stock) and not steps


def make_directory(options: argparse.Namespace) -> Path:
    """A new folder for the files, striped if asked for: new files take after their folder."""
    directory = Path(tempfile.mkdtemp(dir=options.directory))
    if options.stripes:
        size, count = options.stripes.split("x")
        value = f"size={size},count={count},lock=0"
        try:
            os.setxattr(directory, "user.forebay.stripe", value.encode())
        except OSError as error:
            print(f"{directory}: no stripes here ({error}); not striped")
    return directory


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--library", type=Path, required=True, help="libforebay.so")
    parser.add_argument("--program", type=Path, required=True, help="random_access of this MPI")
    parser.add_argument("--directory", type=Path, required=True, help="where files are made")
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--count", type=int, default=10, help="number of seeds")
    parser.add_argument("--stride", type=int, default=1, help="2: only mild or only wild cases")
    parser.add_argument("--batch", type=int, default=10, help="seeds per start of the program")
    parser.add_argument("--ranks-per-node", type=int, help="emulated nodes")
    parser.add_argument("--stripes", help="SIZExCOUNT of the emulated parallel file system")
    parser.add_argument("--hint", action="append", default=[], help="KEY=VALUE for Forebay")
    parser.add_argument("--compress", action="store_true", help="compress messages between nodes")
    parser.add_argument("--only-forebay", action="store_true", help="compare with the model alone")
    parser.add_argument("launcher", nargs="+", help="the MPI's launcher and its options")
    options = parser.parse_args()
    directory = make_directory(options)
    runner = Runner(options, directory)
    failures: list[str] = []
    agreeing = 0
    for done in range(0, options.count, options.batch):
        count = min(options.batch, options.count - done)
        first = options.first + done * options.stride
        stock: Answers = {}
        if not options.only_forebay:
            _, stock = runner.run(False, first, count)
        ending, forebay = runner.run(True, first, count)
        for case in range(first, first + count * options.stride, options.stride):
            if case not in forebay:
                failures.append(f"case {case} and later {ending}")
                break
            failure, agrees = compare(case, stock.get(case, {}), forebay[case])
            agreeing += agrees
            if failure:
                failures.append(failure)
    shutil.rmtree(directory, ignore_errors=True)
    for failure in failures:
        print(failure)
    print(
        f"{options.count} cases, {len(failures)} wrong under Forebay; "
        f"stock agrees with the model throughout in {agreeing}"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
