"""Run time, requests and bytes as pictures: by case, a row of panels a scenario, and by the number
of processes, a line a case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # slow to import
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_OTHERS = "#90a4ae"
_FOREBAY = "#1565c0"
_WHISKERS = "#37474f"
_BOUND = "#c62828"

# Of lines, by whether they are Forebay's, in the order of the cases.
_OTHER_LINES = ("#b0bec5", "#78909c", "#546e7a", "#263238", "#ef6c00")
_FOREBAY_LINES = (
    _FOREBAY,
    "#26a69a",
    "#7e57c2",
    "#d81b60",
    "#9e9d24",
    "#6d4c41",
    "#5c6bc0",
    "#00897b",
)
_MARKERS = "osD^vPX*<>hpd"
_APART = 1.03  # a line from the next at the same number of processes, so that whiskers can be told


@dataclass(frozen=True)
class Bar:
    """One case: median, least and most seconds; requests to the storage, and megabytes that it
    read, medians."""

    name: str
    seconds: float
    least: float
    most: float
    requests: float
    megabytes: float

    @property
    def is_forebay(self) -> bool:
        return self.name.startswith("Forebay")


@dataclass(frozen=True)
class Panel:
    """One scenario: the seconds that nobody can beat, the megabytes that are needed."""

    title: str
    bound: float
    needed: float
    bars: list[Bar]


def drawn(output: Path, stem: str, panels: list[Panel], storage: str = "server") -> list[str]:
    """Draws the picture by case of a page, if there is anything to draw. Returns the lines that
    show it."""
    if not panels:
        return []
    name = f"{stem}.svg"
    _draw(output / name, panels, storage)
    return ["", f"![Run time, requests and bytes by case]({name})"]


def _draw(path: Path, panels: list[Panel], storage: str = "server") -> None:
    """Writes the picture by case as SVG; requests and bytes are the `storage`'s. The same panels
    give the same file."""
    figure, grid = _figure(
        3,
        [2 + len(panel.bars) for panel in panels],
        (14, 0.9 + sum(0.8 + 0.27 * len(panel.bars) for panel in panels)),
    )
    for panel, row in zip(panels, grid, strict=True):
        names = [bar.name for bar in panel.bars]
        heights = range(len(names))
        colours = [_FOREBAY if bar.is_forebay else _OTHERS for bar in panel.bars]
        most = [bar.most for bar in panel.bars]
        seconds = [bar.seconds for bar in panel.bars]
        requests = [bar.requests for bar in panel.bars]
        megabytes = [bar.megabytes for bar in panel.bars]
        for axes, values, ends, form in (
            (row[0], seconds, most, "{:.2f}"),
            (row[1], requests, requests, "{:.0f}"),
            (row[2], megabytes, megabytes, "{:.0f}"),
        ):
            axes.barh(heights, values, color=colours, height=0.7)
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
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
        row[0].errorbar(
            seconds, heights, xerr=_spread(panel.bars), fmt="none", ecolor=_WHISKERS, capsize=2
        )
        for axes, at in ((row[0], panel.bound), (row[2], panel.needed)):
            axes.axvline(at, color=_BOUND, linewidth=1.2, linestyle="--")
        row[0].set_yticks(heights, names)
        row[0].set_title(panel.title, fontsize=10, loc="left")
    for axes, what in zip(
        grid[-1],
        (
            "seconds; whiskers: least and most\nred: what nobody can beat",
            f"requests at the {storage}",
            f"MB read at the {storage}\nred: what the program needs",
        ),
        strict=True,
    ):
        axes.set_xlabel(what)
    _save(figure, path)


def draw_by_processes(
    path: Path, kinds: Mapping[str, Mapping[int, Panel]], storage: str = "server"
) -> None:
    """Writes the picture by the number of processes as SVG: of each kind the panels by that number.
    A case that is in one of them alone is a mark."""
    figure, grid = _figure(2, [1] * len(kinds), (11, 0.9 + 3.1 * len(kinds)))
    for (kind, panels), (time, amount) in zip(kinds.items(), grid, strict=True):
        lines: dict[str, dict[int, Bar]] = {}
        for processes, panel in panels.items():
            for bar in panel.bars:
                lines.setdefault(bar.name, {})[processes] = bar
        shades = {True: iter(_FOREBAY_LINES), False: iter(_OTHER_LINES)}
        for number, (name, points) in enumerate(lines.items()):
            bars = list(points.values())
            shift = _APART ** (number - (len(lines) - 1) / 2)
            at = [processes * shift for processes in points]
            style: dict[str, Any] = {
                "color": next(shades[bars[0].is_forebay]),
                "marker": _MARKERS[number],
                "markersize": 6,
            }
            time.errorbar(
                at,
                [bar.seconds for bar in bars],
                yerr=_spread(bars),
                elinewidth=0.8,
                capsize=2,
                label=name,
                **style,
            )
            amount.plot(at, [bar.requests for bar in bars], **style)
        time.plot(
            list(panels),
            [panel.bound for panel in panels.values()],
            color=_BOUND,
            linewidth=1.2,
            linestyle="--",
            label="what nobody can beat",
        )
        for axes, what in ((time, "seconds"), (amount, f"requests at the {storage}")):
            axes.set_xscale("log", base=2)
            axes.set_xticks(list(panels), [str(processes) for processes in panels])
            axes.minorticks_off()
            axes.set_ylim(bottom=0)
            axes.set_ylabel(what)
            axes.grid(axis="y", color="#eeeeee")
        time.set_title(kind, fontsize=10, loc="left")
    for axes, more in zip(grid[-1], ("; whiskers: least and most", ", all together"), strict=True):
        axes.set_xlabel(f"processes on one file{more}")
    figure.legend(
        *grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
    )
    _save(figure, path)


def _figure(
    columns: int, heights: list[int], size: tuple[float, float]
) -> tuple[Figure, list[list[Axes]]]:
    """A figure of `size` inches, with a row of panels for each relative height."""
    import matplotlib as mpl  # slow to import

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "forebay"
    mpl.rcParams["svg.fonttype"] = "none"  # text as text: a tenth of the size
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(
        len(heights),
        columns,
        figsize=size,
        height_ratios=heights,
        layout="constrained",
        squeeze=False,
    )
    for axes in grid.flat:
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    return figure, grid.tolist()


def _spread(bars: list[Bar]) -> list[list[float]]:
    """How far least and most seconds are from the median."""
    return [[bar.seconds - bar.least for bar in bars], [bar.most - bar.seconds for bar in bars]]


def _save(figure: Figure, path: Path) -> None:
    from matplotlib import pyplot

    # The layout's last digits are not the same each time, and names in the file come from them.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        x, y, width, height = (round(side, 6) for side in axes.get_position().bounds)
        axes.set_position((x, y, width, height))
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)
