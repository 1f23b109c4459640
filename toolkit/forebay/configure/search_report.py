"""What `forebay configure` prints: the ceiling, what cannot be tried, what looked best, and the
command that proves it."""

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from forebay.comparison import STOCK
from forebay.configure import result as result_of
from forebay.configure import result_file
from forebay.configure.chooser import Ranked
from forebay.configure.result import SearchResult
from forebay.report.contents import speedup
from forebay.units import show_seconds, show_share

_SHOWN = 6
_WORDS = {
    "runs": "the runs are used up",
    "budget": "the budget is used up",
    "nothing left to gain": "nothing is expected of a further run",
    "no candidate left": "no other setting works",
    "interrupted": "interrupted; the same command goes on",
}


def show(console: Console, result: SearchResult, out: Path, written: bool) -> None:
    """Prints all of it."""
    _show_ceiling(console, result)
    if result.stopped != result_of.CEILING:
        _show_space(console, result)
        _show_failure(console, result)
        if result.ranking:
            console.print(_table(result))
        for run in result.given_up():
            console.print(
                Text(f"{run.configuration}: {run.state}: {run.reason}", "yellow"), soft_wrap=True
            )
        _show_end(console, result, out, written)
    for note in result.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True, style="dim")


def _show_ceiling(console: Console, result: SearchResult) -> None:
    share, best = result.workload.ceiling_share, result.workload.best_speedup
    if result.workload.budget.overlapping:
        console.print("Counters cannot tell how long I/O took: trace the program to configure it.")
        return
    if share is None or best is None:
        console.print("The trace holds no I/O on files: there is nothing to configure.")
        return
    words = f"I/O is {show_share(share)} of the time; best possible {speedup(best)}"
    if result.stopped == result_of.CEILING:
        console.print(
            Text(f"{words}: stop. (A gain matters from {show_share(result.least_gain)} on: "
                 "--least-gain.)", "bold"),
            soft_wrap=True,
        )  # fmt: skip
    else:
        console.print(Text(words, "bold"))


def _show_space(console: Console, result: SearchResult) -> None:
    chosen = [name for name, values in result.factors.items() if len(values) > 1]
    console.print(
        f"{len(result.candidates)} settings of {', '.join(chosen) or 'nothing'} can be tried",
        soft_wrap=True,
    )
    reasons: dict[str, list[str]] = {}
    for out in result.left_out:
        name = out.factor if out.value is None else f"{out.factor}={out.value}"
        reasons.setdefault(out.reason, []).append(name)
    for reason, names in reasons.items():
        console.print(
            f"  left out: {', '.join(names)}: {reason}", markup=False, soft_wrap=True, style="dim"
        )


def _show_failure(console: Console, result: SearchResult) -> None:
    if result.stopped == result_of.OUTPUT:
        console.print(Text("The command's output is not the same twice.", "bold red"))
        console.print(result.failure_text, markup=False, soft_wrap=True)
        console.print("--ignore PATTERN leaves a file out, --prepare CMD resets what it finds.")
    elif result.stopped == result_of.FAILURE:
        what = "The command fails" if result.failure else "Broken off"
        console.print(Text(f"{what}: {result.failure_text}", "bold red"), soft_wrap=True)
        for line in result.failure.stderr.strip().splitlines()[-15:] if result.failure else []:
            console.print(Text("  " + line))


def _table(result: SearchResult) -> Table:
    """The best, and whatever their place the reference and the MPI alone."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("estimate", justify="right")
    table.add_column("95 %", justify="right")
    table.add_column("runs", justify="right")
    table.add_column("settings")
    shown = result.ranking[:_SHOWN]
    named = {result.search.reference, STOCK}
    shown += [r for r in result.ranking[_SHOWN:] if result.name(r) in named]
    for ranked in shown:
        table.add_row(*_row(result, ranked))
    return table


def _row(result: SearchResult, ranked: Ranked) -> tuple[str, ...]:
    name = result.name(ranked)
    return (
        name,
        show_seconds(ranked.seconds),
        f"{show_seconds(ranked.low)} to {show_seconds(ranked.high)}",
        str(ranked.runs),
        result.configurations[name].description,
    )


def _show_end(console: Console, result: SearchResult, out: Path, written: bool) -> None:
    words = _WORDS.get(result.stopped)
    if words:
        console.print(f"{len(result.runs)} runs: {words}")
    if not result.ranking:
        return
    reference = result.search.reference
    best = result.best
    if best is None:
        console.print(
            Text(f"Nothing that was tried looks {show_share(result.least_gain)} faster than "
                 f"{reference}: there is nothing to prove.", "bold"),
            soft_wrap=True,
        )  # fmt: skip
    elif written:
        console.print(
            f"{result.name(best)} looks best. That is an estimate of noisy runs, and no proof: "
            f"{out} has it as 'best'. Prove it by fresh runs:",
            markup=False, soft_wrap=True,
        )  # fmt: skip
        line = result_file.prove_line(result, out)
        console.print(f"  {line}", markup=False, soft_wrap=True, style="bold")
