"""What `forebay evaluate` prints: the verdicts in words, the times, and what belongs to them."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from forebay.evaluate.evaluation import Evaluation
from forebay.evaluate.self_test import SelfTest
from forebay.evaluate.verdict import Kind, Verdict
from forebay.statistics import median
from forebay.units import show_seconds

_STYLES = {
    Kind.IMPROVED: "bold green",
    Kind.SLOWER: "bold red",
    Kind.NO_GAIN: "bold",
    Kind.NOT_IN_FORCE: "bold yellow",
    Kind.TOO_NOISY: "bold yellow",
}
_SHOWN_REASONS = 6


def sentence(name: str, reference: str, verdict: Verdict, least_gain: float) -> str:
    """The verdict on configuration `name` in words."""
    blocks = f"{verdict.blocks} block{'s' if verdict.blocks != 1 else ''}"
    sure = f"{100 * verdict.confidence:.3g} % interval"
    if verdict.kind in (Kind.IMPROVED, Kind.SLOWER):
        what = "improved" if verdict.kind is Kind.IMPROVED else "slower"
        return (
            f"{name}: {what}, {_percent(verdict.gain, signed=True)} against {reference}, {sure} "
            f"{_percent(verdict.low, signed=True)} to {_percent(verdict.high, signed=True)} "
            f"({blocks})"
        )
    if verdict.kind is Kind.NO_GAIN:
        return (
            f"{name}: no detectable gain over {reference}, smallest detectable "
            f"{_percent(verdict.smallest_detectable)} ({blocks}; {sure} "
            f"{_percent(verdict.low, signed=True)} to {_percent(verdict.high, signed=True)})"
        )
    if verdict.kind is Kind.NOT_IN_FORCE:
        return f"{name}: setting did not take effect"
    if verdict.more_blocks is None:
        return f"{name}: too noisy to tell after {blocks}"
    runs = 2 * verdict.more_blocks
    return (
        f"{name}: too noisy, {runs} more runs needed to see a gain of {_percent(least_gain)} "
        f"({blocks} show {_percent(verdict.smallest_detectable)} at the least)"
    )


def _percent(gain: float | None, signed: bool = False) -> str:
    if gain is None:
        return "without bound"
    return f"{100 * gain:{'+' if signed else ''}.3g} %"


def show(console: Console, result: Evaluation) -> None:
    """Prints all of it."""
    _show_failure(console, result)
    for name in result.candidates:
        _show_candidate(console, result, name)
    if result.runs:
        console.print(_times(result))
        console.print(
            f"time: {result.quantity}; gain: {result.reference}'s time / the other's - 1; order "
            f"shuffled by seed {result.seed}; all claims together are wrong with a probability "
            f"of at most {100 * result.plan.alpha:.3g} %",
            soft_wrap=True,
        )
    if result.interrupted:
        console.print(Text("interrupted: the verdicts are of what there was so far", "yellow"))
    if result.broken_off:
        console.print(Text(f"broken off: {result.broken_off}", "red"), soft_wrap=True)
    for note in result.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True, style="dim")


def _show_candidate(console: Console, result: Evaluation, name: str) -> None:
    for check in result.differing(name):
        console.print(
            Text(f"{name}: {check.path} DIFFERS from what {result.reference} leaves", "bold red"),
            soft_wrap=True,
        )
    verdict = result.verdict(name)
    if verdict is None:
        return
    words = sentence(name, result.reference, verdict, result.plan.least_gain)
    console.print(Text(words, _STYLES[verdict.kind]), soft_wrap=True)
    for reason in verdict.reasons[:_SHOWN_REASONS]:
        console.print(f"  {reason}", markup=False, soft_wrap=True)
    hidden = len(verdict.reasons) - _SHOWN_REASONS
    if hidden > 0:
        console.print(f"  ... and {hidden} more (all are in --json OUT)")


def _show_failure(console: Console, result: Evaluation) -> None:
    if result.unsteady is not None:
        console.print(Text("The command's output is not of the same size twice.", "bold red"))
        console.print(result.unsteady, markup=False, soft_wrap=True)
        console.print(
            "Runs that do not do the same work cannot be compared. --ignore PATTERN leaves a file "
            "out, --prepare CMD resets what the command finds."
        )
    failure = result.failure
    if failure is None:
        return
    console.print(Text(f"The command {failure.how} in configuration '{failure.side}'.", "bold red"))
    for name, text in (("standard error", failure.stderr), ("standard output", failure.stdout)):
        lines = text.strip().splitlines()[-15:]
        if lines:
            console.print(Text(f"the end of its {name}:", "bold"))
            for line in lines:
                console.print(Text("  " + line))


def _times(result: Evaluation) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("configuration")
    for name in ("runs", "fastest", "median", "slowest"):
        table.add_column(name, justify="right")
    for configuration in result.configurations:
        seconds = result.seconds(configuration.name)
        if seconds:
            figures = (min(seconds), median(seconds), max(seconds))
            table.add_row(configuration.name, str(len(seconds)), *map(show_seconds, figures))
    return table


def show_self_test(console: Console, result: SelfTest) -> None:
    """Prints the outcome of `forebay evaluate --aa`."""
    content = result.as_json()
    console.print(
        f"{result.claims} of {content['campaigns']} campaigns without a difference claimed one: "
        f"{100 * result.claim_rate:.3g} % (at most {100 * result.plan.alpha:.3g} % are promised)",
        soft_wrap=True,
    )
    for kind, count in content["verdicts"].items():
        console.print(f"  {count:6d}  {kind}")
    console.print(f"seed: {result.seed}")
