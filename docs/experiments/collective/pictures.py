"""Ratios as a picture: median, interval and bar, a line a measurement."""

from dataclasses import dataclass
from pathlib import Path

from forebay.statistics import Ratio

_COLOURS = {"write": "#1565c0", "read": "#e65100"}


@dataclass(frozen=True)
class Line:
    """One measurement: its name, "write" or "read", what came out and what was claimed."""

    name: str
    quantity: str
    ratio: Ratio
    bar: float | None


def draw(path: Path, title: str, lines: list[Line]) -> None:
    """Writes the picture as SVG, on a logarithmic axis. The same lines give the same file."""
    import matplotlib as mpl  # slow to import

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "forebay"
    mpl.rcParams["svg.fonttype"] = "none"  # text as text: a tenth of the size
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 1.4 + 0.34 * len(lines)), layout="constrained")
    axes.set_xscale("log")
    axes.axvline(1, color="#888888", linewidth=1, linestyle="--")
    for height, line in enumerate(lines):
        colour = _COLOURS[line.quantity]
        ratio = line.ratio
        axes.plot([ratio.low, ratio.high], [height, height], color=colour, linewidth=6, alpha=0.3)
        axes.plot([ratio.median], [height], "o", color=colour, markersize=6)
        axes.annotate(
            f"{ratio.median:.2f}",
            (max(ratio.high, line.bar or 0), height),
            textcoords="offset points",
            xytext=(9, -3.5),
            fontsize=9,
            color=colour,
        )
        if line.bar is not None:
            axes.plot([line.bar], [height], "|", color="#212121", markersize=14, markeredgewidth=2)
    axes.set_yticks(range(len(lines)), [f"{line.name}, {line.quantity}" for line in lines])
    axes.set_ylim(len(lines) - 0.4, -0.6)
    ends = [end for line in lines for end in (line.ratio.low, line.ratio.high, line.bar or 1.0)]
    low, high = min(0.8, *ends) / 1.15, max(1.25, *ends) * 1.6
    axes.set_xlim(low, high)
    marks = [mark * 10.0**power for power in range(-3, 5) for mark in (1, 2, 5)]
    shown = [mark for mark in marks if low <= mark <= high]
    axes.set_xticks(shown, [f"{mark:g}" for mark in shown])
    axes.minorticks_off()
    axes.set_title(title, fontsize=11, loc="left")
    axes.set_xlabel("stock / Forebay; dot: median, band: interval, black stroke: bar")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)
