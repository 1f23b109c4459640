"""The report for a person at a terminal: what the page says, without its pictures."""

from collections import Counter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from forebay.evaluate.in_force import State
from forebay.report.contents import Contents
from forebay.report.timeline import NAMES
from forebay.units import show_bytes, show_count, show_operations, show_seconds, show_share

_ORDER = ("compute", "metadata", "read", "write", "mpi")


def show(console: Console, contents: Contents) -> None:
    """Prints the summary."""
    console.print(Text(contents.verdict, "bold"), soft_wrap=True)
    for caveat in contents.caveats:
        console.print(Text.assemble(("warning: ", "yellow"), caveat), soft_wrap=True)
    for line in contents.lines:
        console.print(f"to measure it: {line}", markup=False, soft_wrap=True)
    if contents.budget.source != "none":
        console.print(_budget(contents))
    if contents.ladder is not None:
        _show_ladder(console, contents)
    flows = _flows(contents)
    if flows is not None:
        console.print(flows)
    times = contents.funnel.amplification
    if times is not None:
        _say(console, f"amplification below MPI-IO: {times:.2f}")
    if contents.application.mpi_files is not None:
        _say(console, f"not counted there: {contents.application.mpi_files}")
    for number, finding in enumerate(contents.findings, start=1):
        console.print(
            Text.assemble(
                (f"{number}. {finding.title}", "bold"),
                f": at most {show_seconds(finding.seconds)} of the run, "
                f"{show_share(finding.share)}, confidence {finding.confidence}",
            ),
            soft_wrap=True,
        )
        for line in finding.evidence:
            _say(console, f"   {line}")
        _say(console, f"   {finding.advice}")
    if contents.budget.overlapping:
        _say(console, "findings: none, for which it would have to be known how long I/O took")
    elif not contents.findings:
        _say(console, "findings: none with 1 % of the run's time or more")
    if contents.settings:
        _say(console, _settings(contents))


def _settings(contents: Contents) -> str:
    number = Counter(each.setting.state for each in contents.settings)
    told = ", ".join(f"{number[state]} {state}" for state in State if number[state])
    return f"hints that the program gave: {told}"


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)


def _budget(contents: Contents) -> Table:
    budget = contents.budget
    table = Table(title=f"Time of processes: {show_count(budget.processes)}", title_justify="left")
    table.add_column("what")
    for name in ("share", "of all", "of a process"):
        table.add_column(name, justify="right")
    for name in (name for name in _ORDER if name in budget.seconds):
        seconds, share = budget.seconds[name], budget.share(name)
        table.add_row(
            NAMES[name],
            "not known" if share is None else show_share(share),
            show_seconds(seconds),
            show_seconds(seconds / budget.processes),
        )
    return table


def _show_ladder(console: Console, contents: Contents) -> None:
    if contents.ladder is None:
        return
    for warning in contents.ladder.warnings:
        console.print(Text.assemble(("warning: ", "yellow"), warning), soft_wrap=True)
    table = Table(title="Limits", title_justify="left")
    for name in ("level", "what"):
        table.add_column(name)
    for name in ("limit", "application", "used"):
        table.add_column(name, justify="right")
    for step in contents.ladder.steps:
        what = f"{step.operation} of {show_bytes(step.size_bytes)}, {step.mode}"
        what += ", at random" if step.order == "random" else ""
        rate = f"{show_bytes(step.rate)}/s"
        if step.limit is None or step.share is None:
            table.add_row("none alike", Text(what), "", rate, "")
            continue
        used = show_share(step.share) + (f", {step.remark}" if step.remark else "")
        limit = f"{show_bytes(step.limit.median)}/s ({step.limit_is_of})"
        table.add_row(step.limit.level, Text(what), limit, rate, used)
    for rung in contents.ladder.metadata:
        what, rate = f"{rung.operation}, {show_count(rung.count)} times", show_operations(rung.rate)
        if rung.limit is None or rung.share is None:
            table.add_row("none alike", Text(what), "", rate, "")
            continue
        used = show_share(rung.share) + (f", {rung.remark}" if rung.remark else "")
        table.add_row("metadata", Text(what), show_operations(rung.limit.median), rate, used)
    console.print(table)
    for step in contents.ladder.steps:
        if step.limit is not None and step.limit.moved:
            limit = f"{step.limit.level}, {step.operation} ({step.limit_is_of})"
            _say(console, f"contention: the limit of {limit} was {step.limit.moved}")


def _flows(contents: Contents) -> Table | None:
    table = Table(title="From the program to the storage", title_justify="left")
    table.add_column("where")
    for name in ("reads", "read", "writes", "written"):
        table.add_column(name, justify="right")
    for name, flow in contents.funnel.places().items():
        table.add_row(
            name,
            show_count(flow.reads),
            show_bytes(flow.read_bytes),
            show_count(flow.writes),
            show_bytes(flow.written_bytes),
        )
    return table if table.row_count else None
