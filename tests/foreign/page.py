"""The page of the experiments that says how other people's tests fare, from the kept outcomes."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

from outcomes import Outcome, SuiteRun, load
from suites import SUITES

VERDICTS = ("ok on both", "fails on both", "better", "worse")
MPI_TITLES = {"mpich": "MPICH", "openmpi": "Open MPI"}
REMARKS = Path(__file__).with_name("remarks.toml")


def remark(run: SuiteRun, outcome: Outcome, remarks: list[dict[str, str]]) -> str:
    """Why a program is not good on both sides, as somebody who looked into it wrote it down."""
    for one in remarks:
        if (
            fnmatchcase(outcome.name, one["program"])
            and one.get("mpi", run.mpi) == run.mpi
            and one.get("verdict", outcome.verdict) == outcome.verdict
        ):
            return " ".join(one["why"].split())
    return "not looked into"


def table(names: list[str], rows: list[list[str]], left: int) -> list[str]:
    """A Markdown table; the first `left` columns are set to the left, the others to the right."""
    rule = ["---"] * left + ["---:"] * (len(names) - left)
    lines = [names, *rows]
    text = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines]
    return [text[0], f"|{'|'.join(rule)}|", *text[1:]]


def commands(runs: list[SuiteRun]) -> list[str]:
    """What repeats the runs."""
    lines: dict[tuple[str, str], list[str]] = {}
    for run in runs:
        variables = "".join(f"{key}={value} " for key, value in run.environment.items())
        options = f"--mpi {run.mpi} --ranks-max {run.ranks_max} --seconds {run.seconds_max}"
        if run.sleep_while_polling:
            options += " --sleep-while-polling"
        lines.setdefault((variables, options), []).append(run.suite)
    results = "--results docs/experiments/foreign"
    made = []
    for (variables, options), suites in lines.items():
        made.append(f"{variables}python3 tests/foreign/foreign_suites.py {results} \\")
        made.append(f"    --library build/lib/libforebay.so {options} {' '.join(suites)}")
    page = "--page docs/experiments/foreign-suites.md"
    return [*made, f"python3 tests/foreign/foreign_suites.py {results} {page}"]


def write(path: Path, results: Path) -> None:
    """Writes the page from every suite's outcomes in `results`."""
    order = list(SUITES)
    runs = sorted(
        (load(file) for file in results.glob("*.json")),
        key=lambda run: (order.index(run.suite), run.mpi),
    )
    remarks = tomllib.loads(REMARKS.read_text())["remark"]
    versions = {MPI_TITLES[run.mpi] + " " + run.mpi_version: None for run in runs}
    ranks = sorted({outcome.ranks for run in runs for outcome in run.outcomes})
    lines = [
        "# Other people's tests",
        "",
        "Written by `tests/foreign/foreign_suites.py`; do not edit. Made by:",
        "",
        "```sh",
        *commands(runs),
        "```",
        "",
        f"{' and '.join(versions)} as Debian packages them. *Commit*: the last one that changed "
        "the library that ran.",
        "",
        "Programs that others wrote to test an MPI's file part, or a library above it, say what a "
        "program may expect of Forebay. Each ran by itself and with `libforebay.so` preloaded, on "
        f"{ranks[0]} to {ranks[-1]} ranks. *Better*: it fails by itself and is good under Forebay; "
        "*worse*: the other way round. A program whose two sides differ is run a second time; "
        "what is shown is then what came first and what came next. What an MPI cannot build is "
        "left out. What the suites are, and what they need: `tests/foreign/README.md`.",
        "",
    ]
    rows = []
    for run in runs:
        counts = dict.fromkeys(VERDICTS, 0)
        for outcome in run.outcomes:
            counts[outcome.verdict] += 1
        rows.append(
            [
                SUITES[run.suite].title,
                run.source,
                MPI_TITLES[run.mpi],
                run.commit,
                run.date,
                f"{len(run.outcomes)} of {max(run.programs, len(run.outcomes))}",
                *(str(number) for number in counts.values()),
            ]
        )
    names = ["suite", "source", "MPI", "commit", "date", "programs run", *VERDICTS]
    lines += table(names, rows, left=5)
    for verdict, title in (
        ("worse", "Worse under Forebay"),
        ("fails on both", "Fail on both sides"),
        ("better", "Better under Forebay"),
    ):
        rows = [
            [
                f"`{outcome.name}`",
                MPI_TITLES[run.mpi],
                str(outcome.ranks),
                outcome.stock,
                outcome.forebay,
                remark(run, outcome, remarks),
            ]
            for run in runs
            for outcome in sorted(run.outcomes, key=lambda one: one.name)
            if outcome.verdict == verdict
        ]
        lines += ["", f"## {title}", ""]
        if not rows:
            lines.append("None.")
            continue
        lines += table(["program", "MPI", "ranks", "stock", "Forebay", "why"], rows, left=6)
    path.write_text("\n".join(lines) + "\n")
