"""What `forebay evaluate` prints: the verdicts in words, the times, and what belongs to them."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from forebay.comparison import Failure
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
_SHOWN_LINES = 15  # of what a command that failed wrote


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
    least = verdict.smallest_detectable
    shown = "no gain, however large" if least is None else f"{_percent(least)} at the least"
    return (
        f"{name}: too noisy, {runs} more runs needed to see a gain of {_percent(least_gain)} "
        f"({blocks} show {shown})"
    )


def _percent(gain: float | None, signed: bool = False) -> str:
    if gain is None:
        return "without bound"
    return f"{100 * gain:{'+' if signed else ''}.3g} %"


def troubles(result: Evaluation) -> list[str]:
    """Why there are no verdicts, or not those that were asked for; empty if all went well."""
    told = []
    if result.unsteady is not None:
        told.append(
            f"The command's output is not of the same size twice: {result.unsteady}. Runs that do "
            "not do the same work cannot be compared. --ignore PATTERN leaves a file out, "
            "--prepare CMD resets what the command finds."
        )
    if result.failure is not None:
        failure = result.failure
        told.append(f"The command {failure.how} in configuration '{failure.side}'.")
    told += [
        f"{name}: {check.path} DIFFERS from what {result.reference} leaves"
        for name in result.candidates
        for check in result.differing(name)
    ]
    if result.interrupted:
        told.append("interrupted: the verdicts are of what there was so far")
    if result.broken_off is not None:
        told.append(f"broken off: {result.broken_off}")
    return told


def last_words(failure: Failure) -> dict[str, list[str]]:
    """The end of what a command that failed wrote, by the name of the stream."""
    streams = (("standard error", failure.stderr), ("standard output", failure.stdout))
    lines = {name: text.strip().splitlines()[-_SHOWN_LINES:] for name, text in streams}
    return {name: text for name, text in lines.items() if text}


def show(console: Console, result: Evaluation) -> None:
    """Prints all of it."""
    for trouble in troubles(result):
        console.print(Text(trouble, "bold red"), soft_wrap=True)
    for name, lines in last_words(result.failure).items() if result.failure else ():
        console.print(Text(f"the end of its {name}:", "bold"))
        for line in lines:
            console.print(Text("  " + line))
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
    for note in result.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True, style="dim")


def _show_candidate(console: Console, result: Evaluation, name: str) -> None:
    alone = result.left_alone(name)
    if alone:
        console.print(
            f"{name}: {len(alone)} files are written under its variables, or the reference's, "
            f"alone ({alone[0].path}): not compared",
            markup=False,
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
