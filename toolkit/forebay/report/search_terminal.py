"""The report of a search for a person at a terminal."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from forebay.evaluate import in_force
from forebay.report import campaign_terminal, search
from forebay.report.search import SearchReport
from forebay.units import show_seconds

_FACTORS = 6


def show(console: Console, report: SearchReport) -> None:
    """Prints what the page says, without its pictures."""
    if report.evaluations:
        campaign_terminal.show(console, report.evaluations[0])
        for other in report.evaluations[1:]:
            _say(console, f"{other.path}: {other.summary}")
    else:
        console.print(Text(report.verdict, "bold"), soft_wrap=True)
    for caveat in report.caveats:
        console.print(Text.assemble(("warning: ", "yellow"), caveat), soft_wrap=True)
    for line in filter(None, (report.estimate, report.ceiling_words)):
        _say(console, line)
    if report.found.runs:
        console.print(_runs(report))
        _say(console, f"{len(report.found.runs)} runs: {report.end}")
    _show_factors(console, report)
    for name, setting, _ in report.settings:
        if setting.state is in_force.State.NOT_IN_FORCE:
            console.print(Text(f"{name}: not in force: {setting}", "yellow"), soft_wrap=True)
    if report.prove is not None and report.best is not None:
        _say(console, "to prove or refute it by fresh runs:")
        console.print(f"  {report.prove}", markup=False, soft_wrap=True, style="bold")


def _runs(report: SearchReport) -> Table:
    """Every run in order; the least so far is marked where it is new."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("run", "configuration", "predicted", "measured", "best so far"):
        table.add_column(name, justify="left" if name == "configuration" else "right")
    table.add_column("for")
    table.add_column("settings, and what came of it")
    least = dict(report.best_so_far)
    for run in report.found.runs:
        outcome = search.outcome(run)
        said = Text(search.settings_words(run))
        if outcome:
            said.append(f" ({outcome})", "yellow")
        table.add_row(
            str(run.number),
            run.configuration,
            "" if run.predicted is None else show_seconds(run.predicted),
            "" if run.seconds is None else show_seconds(run.seconds),
            show_seconds(least[run.number]) if run.number in least else "",
            search.PURPOSES[run.why],
            said,
        )
    return table


def _show_factors(console: Console, report: SearchReport) -> None:
    shown = [each for each in report.contrasts if each.beyond_noise]
    for each in shown[:_FACTORS]:
        pairs = len(each.pairs)
        _say(
            console,
            f"mattered: {search.change(each)}: {100 * each.gain:+.3g} % "
            f"({pairs} pair{'s' if pairs != 1 else ''}; a hint, no proof)",
        )
    if report.contrasts and not shown:
        _say(console, "no factor that was changed alone did more than repeated runs scatter")
    for bad in report.troubles:
        _say(console, f"never went well: {bad.factor}={bad.value} ({', '.join(bad.states)})")


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)
