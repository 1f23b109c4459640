"""Runs other people's MPI-IO tests stock and under Forebay, and says where the outcomes differ.

    foreign_suites.py --library build/lib/libforebay.so [--mpi mpich|openmpi] [--work DIR] SUITE...
    foreign_suites.py --page docs/experiments/foreign-suites.md --results DIR

See README.md for the suites and what they need.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import page
from outcomes import Comparison, SuiteRun, load
from suites import SUITES, Mpi

ROOT = Path(__file__).resolve().parents[2]
# sleep_while_polling.c, as `make build` leaves it
SLEEPING = ROOT / "build/tests/foreign/libsleep_while_polling.so"


def mpi_version(mpi: Mpi) -> str:
    """The number in what the launcher says of itself: "4.0.2"."""
    said = subprocess.run(
        [mpi.launch(1)[0], "--version"], capture_output=True, text=True, check=True
    ).stdout
    return next(word for word in said.split() if word[0].isdigit() and "." in word)


def library_commit() -> str:
    """The last commit that changed what libforebay.so is made of."""
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%h", "--abbrev=12", "--", "core"]
    return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()


def run_suite(name: str, mpi: Mpi, work: Path, options: argparse.Namespace) -> SuiteRun:
    """Runs what has no outcome yet in the results, and keeps each outcome at once."""
    logs = work / "logs" / mpi.name
    logs.mkdir(parents=True, exist_ok=True)
    suite = SUITES[name]
    tests = list(suite.tests(mpi, work))
    both = [SLEEPING] if options.sleep_while_polling else []
    comparison = Comparison(mpi, options.library.resolve(), both, options.seconds, logs)
    run = SuiteRun(
        suite=name,
        mpi=mpi.name,
        mpi_version=mpi_version(mpi),
        source=suite.version(work),
        commit=library_commit(),
        date=datetime.now(UTC).date().isoformat(),
        ranks_max=options.ranks_max,
        seconds_max=options.seconds,
        sleep_while_polling=options.sleep_while_polling,
        environment={
            key: value
            for key, value in sorted(os.environ.items())
            if key.startswith(("MPICH_", "MPIR_", "OMPI_", "FOREBAY_"))
        },
        programs=len(tests),
    )
    kept = options.results / f"{mpi.name}-{name}.json"
    if kept.exists():
        names = {test.name for test in tests}
        run.outcomes = [one for one in load(kept).outcomes if one.name in names]
    bad = {one.name for one in run.outcomes if one.verdict != "ok on both"}
    known = {one.name for one in run.outcomes}
    known -= {"all": known, "bad": bad}.get(options.again, set())
    for test in tests:
        if options.only not in test.name or test.name in known:
            continue
        ranks = max(min(test.ranks, options.ranks_max), test.ranks_min)
        outcome = comparison.outcome(replace(test, ranks=ranks))
        run.add(outcome)
        run.save(options.results)
        print(
            f"{outcome.name:45} {outcome.verdict:14} "
            f"stock {outcome.stock:10} Forebay {outcome.forebay}",
            flush=True,
        )
    run.save(options.results)
    return run


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--library", type=Path, help="libforebay.so")
    parser.add_argument("--mpi", choices=("mpich", "openmpi"), default="mpich")
    parser.add_argument("--work", type=Path, default=Path("build/foreign-tests"))
    parser.add_argument(
        "--results", type=Path, help="where outcomes are kept as JSON; default: WORK/results"
    )
    parser.add_argument("--page", type=Path, help="write this page from all that is kept")
    parser.add_argument("--only", default="", help="tests whose name contains this")
    parser.add_argument(
        "--again",
        choices=("bad", "all"),
        help="also what has an outcome already: all, or what was not good on both sides",
    )
    parser.add_argument(
        "--ranks-max", type=int, default=64, help="fewer ranks, where they poll and cores are few"
    )
    parser.add_argument(
        "--sleep-while-polling",
        action="store_true",
        help="ranks sleep while they wait, on both sides: where free cores are few",
    )
    parser.add_argument("--seconds", type=int, default=90, help="the most a program may take")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    options = parser.parse_args()
    unknown = set(options.suites) - set(SUITES)
    if unknown:
        parser.error(f"no such suite: {', '.join(sorted(unknown))}")
    if options.suites and options.library is None:
        parser.error("--library says which libforebay.so to test")
    if options.sleep_while_polling and not SLEEPING.is_file():
        parser.error(f"{SLEEPING} does not exist: run 'make build' first")
    work = options.work.resolve()
    options.results = (options.results or work / "results").resolve()
    mpi = Mpi(options.mpi)
    runs = [run_suite(name, mpi, work, options) for name in options.suites]
    if options.page:
        page.write(options.page, options.results)
    worse = sum(outcome.verdict == "worse" for run in runs for outcome in run.outcomes)
    if runs:
        print(f"{worse} tests are worse under Forebay; output in {work / 'logs' / mpi.name}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
