"""Run time and bytes by case, as a picture: a row of two panels a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_OTHERS = "#90a4ae"
_FOREBAY = "#1565c0"


@dataclass(frozen=True)
class Bar:
    """One case: median, least and most seconds; megabytes that the storage read."""

    name: str
    seconds: float
    least: float
    most: float
    megabytes: float


@dataclass(frozen=True)
class Panel:
    """One scenario: the seconds that nobody can beat, the megabytes that are needed."""

    title: str
    bound: float
    needed: float
    bars: list[Bar]


def draw(path: Path, panels: list[Panel], storage: str = "server") -> None:
    """Writes the picture as SVG; bytes are read at the `storage`. The same panels give the same
    file."""
    import matplotlib as mpl  # slow to import

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "forebay"
    mpl.rcParams["svg.fonttype"] = "none"  # text as text: a tenth of the size
    from matplotlib import pyplot

    rows = len(panels)
    figure, grid = pyplot.subplots(
        rows,
        2,
        figsize=(11, 0.9 + sum(0.8 + 0.27 * len(panel.bars) for panel in panels)),
        height_ratios=[2 + len(panel.bars) for panel in panels],
        layout="constrained",
        squeeze=False,
    )
    for panel, (time, amount) in zip(panels, grid, strict=True):
        names = [bar.name for bar in panel.bars]
        heights = range(len(names))
        colours = [_FOREBAY if name.startswith("Forebay") else _OTHERS for name in names]
        seconds = [bar.seconds for bar in panel.bars]
        spread = [
            [bar.seconds - bar.least for bar in panel.bars],
            [bar.most - bar.seconds for bar in panel.bars],
        ]
        time.barh(
            heights, seconds, color=colours, height=0.7, xerr=spread, ecolor="#37474f", capsize=2
        )
        time.axvline(panel.bound, color="#c62828", linewidth=1.2, linestyle="--")
        amount.barh(heights, [bar.megabytes for bar in panel.bars], color=colours, height=0.7)
        amount.axvline(panel.needed, color="#c62828", linewidth=1.2, linestyle="--")
        for axes, values, ends, form in (
            (time, seconds, [bar.most for bar in panel.bars], "{:.2f}"),
            (amount, *[[bar.megabytes for bar in panel.bars]] * 2, "{:.0f}"),
        ):
            for height, value, end in zip(heights, values, ends, strict=True):
                axes.annotate(
                    form.format(value),
                    (end, height),
                    textcoords="offset points",
                    xytext=(5, -3),
                    fontsize=8,
                )
            axes.set_xlim(0, 1.15 * max(ends))
            axes.invert_yaxis()
            axes.tick_params(axis="y", length=0)
            for side in ("top", "right", "left"):
                axes.spines[side].set_visible(False)
        time.set_yticks(heights, names)
        amount.set_yticks([])
        time.set_title(panel.title, fontsize=10, loc="left")
    grid[-1][0].set_xlabel("seconds; whiskers: least and most\nred: what nobody can beat")
    grid[-1][1].set_xlabel(f"MB read at the {storage}\nred: what the program needs")
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)
