"""A comparison shown to people: on the screen, and as a small report (Markdown and one picture)."""

import shlex
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from forebay import output_paths
from forebay.comparison import FOREBAY, STOCK, Comparison, Failure, FileCheck
from forebay.statistics import Ratio
from forebay.units import show_bytes, show_count, show_seconds

_NAMES = {
    "wall": "wall time",
    "write": "MPI-IO write",
    "read": "MPI-IO read",
    "mpiio": "all MPI-IO",
}
_SHOWN_FILES = 10


def verdict(ratio: Ratio | None) -> str:
    """One ratio in words."""
    if ratio is None:
        return "no such calls"
    if not ratio.enough and not ratio.low <= 1 <= ratio.high:
        return "too few pairs to tell"
    if not ratio.detectable:
        return "no detectable difference"
    if ratio.median >= 1:
        return f"Forebay is {ratio.median:.2f}x faster"
    return f"Forebay is {1 / ratio.median:.2f}x slower"


def show(console: Console, result: Comparison) -> None:
    """Prints the comparison, or what there is of it."""
    if result.failure is not None:
        _show_failure(console, result.failure)
    if result.interrupted:
        console.print(Text(f"interrupted after {len(result.pairs)} whole pairs", style="yellow"))
    if result.broken_off is not None:
        where = f"broken off after {len(result.pairs)} whole pairs"
        console.print(Text(f"{where}: {result.broken_off}", style="bold red"))
    if result.pairs:
        console.print(_times(result))
        console.print(Text(_method(result), style="dim"))
    if any(result.storage.values()):
        console.print(_storage(result))
    for line, style in _file_lines(result):
        console.print(Text(line, style=style))
    for note in result.notes:
        console.print(Text(f"note: {note}", style="yellow"))


def _show_failure(console: Console, failure: Failure) -> None:
    if failure.side == STOCK:
        console.print(Text(f"The command {failure.how} without Forebay.", style="bold red"))
        console.print("Make it run by itself first; there is nothing to compare.")
    else:
        console.print(
            Text(f"The command {failure.how} under Forebay, though not without.", style="bold red")
        )
        console.print("'forebay run -- COMMAND' shows it alone; --hint forebay=disable narrows it.")
    for name, text in (("standard error", failure.stderr), ("standard output", failure.stdout)):
        lines = text.strip().splitlines()[-15:]
        if lines:
            console.print(Text(f"the end of its {name}:", style="bold"))
            for line in lines:
                console.print(Text("  " + line))


def _times(result: Comparison) -> Table:
    limits = any(pair.limit for pair in result.pairs)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("median of pairs")
    for name in ("stock", "Forebay", "stock / Forebay", "interval"):
        table.add_column(name, justify="right")
    if limits:
        table.add_column("limit", justify="right")
        table.add_column("stock reaches", justify="right")
        table.add_column("Forebay reaches", justify="right")
    table.add_column("")
    for row in table_rows(result):
        style = "green" if "faster" in row[-1] else "red" if "slower" in row[-1] else "yellow"
        cells: list[str | Text] = [*(row if limits else row[:5] + row[8:])]
        cells[-1] = Text(row[-1], style=style)
        table.add_row(*cells)
    return table


def table_rows(result: Comparison) -> list[list[str]]:
    """The table of times: name, stock, Forebay, ratio, interval, limit, the fractions of the limit
    that stock and Forebay reach, and the verdict."""
    rows = []
    for quantity, name in _NAMES.items():
        ratio = result.ratio(quantity)
        if ratio is None:
            continue
        row = [name]
        for side in (STOCK, FOREBAY):
            seconds = result.median_seconds(side, quantity)
            row.append("-" if seconds is None else show_seconds(seconds))
        row += [f"{ratio.median:.2f}", f"{ratio.low:.2f} .. {ratio.high:.2f}"]
        limit = result.limit_seconds(quantity) if quantity in ("write", "read") else None
        row.append("-" if limit is None else show_seconds(limit))
        for side in (STOCK, FOREBAY):
            fraction = None if limit is None else result.fraction(side, quantity)
            row.append("-" if fraction is None else f"{100 * fraction.median:.0f} %")
        row.append(verdict(ratio))
        rows.append(row)
    return rows


def _method(result: Comparison) -> str:
    ratio = result.ratio("wall")
    assert ratio is not None
    covered = f"covers the true median with {100 * ratio.coverage:.1f} % probability"
    few = "" if ratio.coverage >= 0.95 else "; 6 pairs or more give 95 %"
    return (
        f"{ratio.pairs} interleaved pair{'' if ratio.pairs == 1 else 's'}, order shuffled with "
        f"seed {result.seed}, after one untimed; the interval {covered}{few}."
    )


def _storage(result: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("at the storage (warm-up)")
    for name in ("write calls", "bytes written", "read calls", "bytes read"):
        table.add_column(name, justify="right")
    for row in storage_rows(result):
        table.add_row(*row)
    return table


def storage_rows(result: Comparison) -> list[list[str]]:
    """Calls and bytes at the storage as the kernel counted them, a row a side."""
    rows = []
    for side, name in ((STOCK, "stock"), (FOREBAY, "Forebay")):
        counted = result.storage.get(side)
        if counted is None:
            continue
        rows.append(
            [
                name,
                show_count(counted.write_calls),
                show_bytes(counted.write_bytes),
                show_count(counted.read_calls),
                show_bytes(counted.read_bytes),
            ]
        )
    return rows


def _file_lines(result: Comparison) -> list[tuple[str, str]]:
    checks = list(result.files.values())
    same = [check for check in checks if check.identical]
    lines: list[tuple[str, str]] = []
    if same:
        total = show_bytes(sum(check.bytes for check in same))
        word = "file is" if len(same) == 1 else "files are"
        without = sum(not check.mpi for check in same)
        also = f", {without} of them written without MPI" if without else ""
        lines.append((f"{len(same)} written {word} byte-identical ({total}){also}", "green"))
    differing = [check for check in checks if check.identical is False]
    lines += _some([_difference(check) for check in differing], "differ", "bold red")
    unknown = [check for check in checks if check.identical is None]
    lines += _some([f"{_named(check)}: not compared, {check.reason}" for check in unknown], "", "")
    logs = [Path(check.path).name for check in differing if not check.mpi]
    if logs:
        lines.append((f"A file of times or names of its own? Leave it out: --ignore {logs[0]}", ""))
    return lines


def _some(texts: list[str], what: str, style: str) -> list[tuple[str, str]]:
    hidden = len(texts) - _SHOWN_FILES
    more = [f"... and {hidden} more {what}".rstrip()] if hidden > 0 else []
    return [(text, style) for text in [*texts[:_SHOWN_FILES], *more]]


def _named(check: FileCheck) -> str:
    return check.path if check.mpi else f"{check.path} (written without MPI)"


def _difference(check: FileCheck) -> str:
    if check.hash_stock is None or check.hash_forebay is None:
        only = "Forebay" if check.hash_stock is None else "stock"
        text = f"{_named(check)}: written by {only} alone"
    else:
        hashes = f"{check.hash_stock[:12]} stock, {check.hash_forebay[:12]} Forebay"
        text = f"{_named(check)}: DIFFERS ({hashes})"
    return f"{text}; {check.reason}" if check.reason else text


def write_report(result: Comparison, directory: Path) -> Path:
    """Writes report.md and ratios.svg into `directory` and returns the report's path."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = ["# Stock and Forebay compared", "", "```", shlex.join(result.command), "```", ""]
    if result.pairs:
        picture(result, directory / "ratios.svg")
        lines += ["![Every pair's ratio](ratios.svg)", ""]
        limits = any(pair.limit for pair in result.pairs)
        head = ["", "stock", "Forebay", "stock / Forebay", "interval"]
        head += ["limit", "stock reaches", "Forebay reaches"] if limits else []
        rows = [row if limits else row[:5] + row[8:] for row in table_rows(result)]
        lines += [*_markdown([*head, "verdict"], rows), "", _method(result), ""]
    if any(result.storage.values()):
        head = ["at the storage", "write calls", "bytes written", "read calls", "bytes read"]
        lines += [*_markdown(head, storage_rows(result)), ""]
    lines += [f"- {line}" for line, _style in _file_lines(result)]
    lines += [f"- note: {note}" for note in result.notes]
    lines += ["", "## Environment", ""]
    for key, value in result.environment.items():
        if isinstance(value, dict):
            value = ", ".join(f"{name}: {text}" for name, text in value.items())
        lines.append(f"- {key}: {shlex.join(value) if isinstance(value, list) else value}")
    path = directory / "report.md"
    output_paths.write_text(path, "\n".join(lines) + "\n")
    return path


def _markdown(head: list[str], rows: list[list[str]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|" + "|".join(["---"] + ["---:"] * (len(head) - 1)) + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


def picture(result: Comparison, path: Path) -> None:
    """Draws every pair's ratio as a dot, and median and interval as a bar, a row a quantity."""
    import matplotlib as mpl  # slow to import, and needed here alone

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "forebay"  # the same result gives the same file
    from matplotlib import pyplot

    rows = [
        (name, ratio, [r for pair in result.pairs if (r := pair.ratio(quantity)) is not None])
        for quantity, name in _NAMES.items()
        if (ratio := result.ratio(quantity)) is not None
    ]
    figure, axes = pyplot.subplots(figsize=(8, 1.2 + 0.7 * len(rows)), layout="constrained")
    axes.axvline(1, color="#888888", linewidth=1, linestyle="--")
    for height, (_, ratio, dots) in enumerate(rows):
        colour = "#888888" if not ratio.detectable else "#1b7f4d" if ratio.median > 1 else "#b3261e"
        axes.plot(
            [ratio.low, ratio.high],
            [height, height],
            color=colour,
            linewidth=9,
            alpha=0.25,
            solid_capstyle="round",
        )
        spread = [height + 0.18 * ((i % 3) - 1) for i in range(len(dots))]
        axes.plot(dots, spread, "o", color=colour, markersize=4, alpha=0.8)
        axes.plot([ratio.median], [height], "|", color=colour, markersize=22, markeredgewidth=3)
        axes.annotate(
            f"{ratio.median:.2f}x",
            (ratio.median, height),
            textcoords="offset points",
            xytext=(0, 14),
            ha="center",
            fontsize=10,
            fontweight="bold",
            color=colour,
        )
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.7)
    values = [value for _, ratio, dots in rows for value in (*dots, ratio.low, ratio.high, 1.0)]
    if max(values) / min(values) > 8:
        axes.set_xscale("log")
        ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if
                 min(values) / 1.5 <= t <= max(values) * 1.5]  # fmt: skip
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    axes.set_xlabel("stock / Forebay (right of 1: Forebay is faster); dots: pairs, bar: interval")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)
