"""Rates of writing an array by processes, one panel for each number of servers."""

from __future__ import annotations

from pathlib import Path

from measuring import FOREBAY, STOCK
from striping_figures import Array
from striping_runs import ALONE, PROCESSES, SERVERS, TOGETHER, Case

_CURVES = (
    (TOGETHER, STOCK, "#37474f", "-", "o"),
    (TOGETHER, FOREBAY, "#1565c0", "-", "s"),
    (ALONE, STOCK, "#37474f", "--", "o"),
    (ALONE, FOREBAY, "#1565c0", "--", "s"),
)


def draw(path: Path, array: Array, limits: dict[int, float]) -> None:
    """Writes the picture as SVG: medians, and bands from the least to the most, in MiB/s on a
    logarithmic axis; `limits`: of the servers together, bytes a second. The same figures give the
    same file."""
    import matplotlib as mpl  # slow to import

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "forebay"
    mpl.rcParams["svg.fonttype"] = "none"  # text as text: a tenth of the size
    from matplotlib import pyplot, ticker

    figure, row = pyplot.subplots(
        1, len(SERVERS), figsize=(11, 3.8), sharey=True, layout="constrained"
    )
    for axes, servers in zip(row, SERVERS, strict=True):
        for call, engine, colour, line, mark in _CURVES:
            rates = [
                [rate / 2**20 for rate in array.rates(Case(servers, processes, call, engine))]
                for processes in PROCESSES
            ]
            middle = [array.rate(Case(servers, n, call, engine)) / 2**20 for n in PROCESSES]
            lows, highs = [min(one) for one in rates], [max(one) for one in rates]
            axes.fill_between(PROCESSES, lows, highs, color=colour, alpha=0.15, linewidth=0)
            axes.plot(
                PROCESSES,
                middle,
                line,
                marker=mark,
                color=colour,
                markersize=5,
                label=f"{call}, {'stock' if engine == STOCK else 'Forebay'}",
            )
        axes.axhline(limits[servers] / 2**20, color="#c62828", linewidth=1, linestyle=":")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(PROCESSES, [str(processes) for processes in PROCESSES])
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
        axes.set_title(f"{servers} server{'s' if servers > 1 else ''}", fontsize=10, loc="left")
        axes.set_xlabel("processes")
        axes.grid(axis="y", color="#eeeeee")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    row[0].set_ylabel("MiB/s; red: the servers together")
    figure.legend(
        *row[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
    )
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)
