"""What every page is made of: the commands and the machine that made it, tables, notes of a
person."""

from collections.abc import Iterable
from pathlib import Path
from statistics import median

from forebay.statistics import Ratio
from forebay.units import show_bytes
from results import SCRIPT, Result
from verdicts import Verdict

NOT_MEASURED = "not measured"
#: A section without results.
NOTHING = [f"{NOT_MEASURED.capitalize()}.", ""]


def head(
    title: str, default_command: str, results: list[Result], script: str = SCRIPT
) -> list[str]:
    """A page's first lines: the title, the commands that made its results, and on what."""
    lines = [f"# {title}", "", f"Written by `{script}`; do not edit. Made by:", "", "```sh"]
    made = [result.experiment["invocation"] for result in results]
    lines += distinct(made) or [f".venv/bin/python {script} {default_command}"]
    lines += ["```", ""]
    if not results:
        return [*lines, "Nothing has been measured yet.", ""]
    return [*lines, *_environment(results), ""]


def _environment(results: list[Result]) -> list[str]:
    made = [result.experiment for result in results]
    dates = sorted(str(one["date"]) for one in made)
    loads = sorted(float(one["load_average"]) for one in made)
    versions = {
        f"{mpi}: {' '.join(str(version).split())}"
        for result in results
        for mpi, version in (result.raw.get("environment") or {}).get("mpi", {}).items()
    }
    rows = {
        "processor": ", ".join(distinct(str(one["cpu"]) for one in made)),
        "cores": ", ".join(distinct(str(one["cores"]) for one in made)),
        "memory": ", ".join(distinct(show_bytes(one["memory_bytes"]) for one in made)),
        "kernel": ", ".join(distinct(str(one["kernel"]) for one in made)),
        "MPI": "; ".join(sorted(versions)),
        "commit": ", ".join(distinct(str(one["commit"]) for one in made)),
        "date (UTC)": dates[0] if dates[0] == dates[-1] else f"{dates[0]} .. {dates[-1]}",
        "load average at the end of a campaign": f"{loads[0]:.1f} .. {loads[-1]:.1f}",
    }
    return table(["environment", ""], [[key, value] for key, value in rows.items()], left=2)


def distinct(values: Iterable[str]) -> list[str]:
    """Each value once, in order of first appearance."""
    return list(dict.fromkeys(values))


def table(names: list[str], rows: list[list[str]], left: int = 1) -> list[str]:
    """A Markdown table; the first `left` columns are set to the left, the others to the right."""
    rule = ["---"] * left + ["---:"] * (len(names) - left)
    return [
        f"| {' | '.join(names)} |",
        f"|{'|'.join(rule)}|",
        *(f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows),
    ]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def notes(directory: Path, name: str) -> list[str]:
    """What a person says about where time goes: the file notes-NAME.md, where there is one."""
    file = directory / f"notes-{name}.md"
    if not file.is_file():
        return []
    return ["## Where the time goes", "", file.read_text().strip(), ""]


def ratio_text(ratio: Ratio | None) -> str:
    """2.34 [2.01, 2.50]"""
    if ratio is None:
        return "-"
    return f"{digits(ratio.median)} [{digits(ratio.low)}, {digits(ratio.high)}]"


def median_rate(rates: Iterable[float]) -> str:
    """The median of bytes a second: 15.8 MiB/s."""
    return f"{show_bytes(median(rates))}/s"


def digits(value: float) -> str:
    """Three digits that count, not more than two after the point: 0.97, 2.34, 15.1, 230."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def percent(fraction: Ratio | float | None) -> str:
    """0.853 as 85 %: rounded down, so that what falls short of a bar is not shown as reaching
    it."""
    if fraction is None:
        return "-"
    value = fraction.median if isinstance(fraction, Ratio) else fraction
    return f"{int(100 * value + 1e-9)} %"


def verdict_text(verdict: Verdict) -> str:
    """What was missed stands out."""
    if verdict is Verdict.NO_BAR:
        return "-"
    return f"**{verdict}**" if verdict in (Verdict.MISSED, Verdict.TOO_FEW) else str(verdict)


def identical_text(results: Iterable[Result]) -> str:
    return "yes" if all(result.identical for result in results) else "**NO**"


def sleeping(results: Iterable[Result]) -> list[str]:
    """A sentence where ranks of an MPI that polls were made to sleep in all of these."""
    if not all(result.raw.get("sleeping", False) for result in results):
        return []
    library = "`tests/foreign/sleep_while_polling.c` is preloaded"
    return [f"Ranks sleep while they wait, on every side: {library}.", ""]


def tally(verdicts: Iterable[Verdict]) -> str:
    """One sentence: how many claims there are and what became of them."""
    held = [verdict for verdict in verdicts if verdict is not Verdict.NO_BAR]
    if not held:
        return "No claim was tried yet."
    counts = [f"{held.count(kind)} {kind}" for kind in Verdict if kind in held]
    return f"{len(held)} claims: {', '.join(counts)}."
