"""Five kinds of figures by configuration, side by side."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from methodology_figures import (
    Figure,
    Found,
    io_time,
    operations,
    operations_per_s,
    rate,
    run_time,
)
from methodology_runs import PROCESSES

_COLOURS = {4: "#1565c0", 9: "#e65100"}

_PANELS: list[tuple[str, Figure, float]] = [
    ("run time, s", run_time, 1),
    ("I/O time, s", io_time, 1),
    ("operations", operations, 1),
    ("transfer rate, MB/s", rate, 1e-6),
    ("IOPs, 1/s", operations_per_s, 1),
]

_FEW_DECADES = 500  # up to here there is room for three marks each


def draw(path: Path, found: Found) -> None:
    """Writes the picture as SVG: a dot at the median, a line from the least to the most, on
    logarithmic axes. The same figures give the same file."""
    import matplotlib as mpl  # slow to import

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "forebay"
    mpl.rcParams["svg.fonttype"] = "none"  # text as text: a tenth of the size
    from matplotlib import pyplot, ticker

    names = [case.name for case in found.cases(PROCESSES[0])]
    figure, row = pyplot.subplots(
        1, len(_PANELS), figsize=(13, 3.4), sharey=True, layout="constrained"
    )
    for axes, (title, value, scale) in zip(row, _PANELS, strict=True):
        for processes in PROCESSES:
            shift = 0.14 if processes == PROCESSES[-1] else -0.14
            for height, case in enumerate(found.cases(processes)):
                values = [scale * one for one in found.of(case, value)]
                at = height + shift
                colour = _COLOURS[processes]
                axes.plot(
                    [min(values), max(values)], [at, at], color=colour, linewidth=5, alpha=0.3
                )
                label = f"{processes} processes" if height == 0 else None
                axes.plot([median(values)], [at], "o", color=colour, markersize=5, label=label)
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        marks = (1, 2, 5) if high / low < _FEW_DECADES else (1,)
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=marks, numticks=12))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda mark, _: f"{mark:,g}"))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.tick_params(axis="x", labelsize=7, rotation=45)
        axes.set_title(title, fontsize=10, loc="left")
        axes.grid(axis="x", color="#eeeeee")
        axes.tick_params(axis="y", length=0)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
    row[0].set_yticks(range(len(names)), names, fontsize=9)
    row[0].invert_yaxis()
    figure.legend(
        *row[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False
    )
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)
