"""Perceived bandwidth by aggregators and buffer, as the papers on caches for collective writes draw
it."""

from pathlib import Path

# The last is what was published.
_STYLES = (
    ("#757575", "o-"),
    ("#1565c0", "o-"),
    ("#2e7d32", "o-"),
    ("#ef6c00", "o-"),
    ("#bdbdbd", "--"),
)


def draw(path: Path, title: str, marks: list[str], curves: dict[str, list[float]]) -> None:
    """Writes the picture as SVG: a curve for each name, bytes a second at each of `marks`, on a
    logarithmic axis. The same values give the same file."""
    import matplotlib as mpl  # slow to import

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "forebay"
    mpl.rcParams["svg.fonttype"] = "none"  # text as text: a tenth of the size
    from matplotlib import pyplot, ticker

    figure, axes = pyplot.subplots(figsize=(8, 3.6), layout="constrained")
    for (name, rates), (colour, line) in zip(curves.items(), _STYLES[: len(curves)], strict=True):
        mebibytes = [rate / 2**20 for rate in rates]
        axes.plot(range(len(marks)), mebibytes, line, color=colour, label=name, markersize=4)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xticks(range(len(marks)), marks, fontsize=8)
    axes.set_xlabel("aggregators, buffer")
    axes.set_ylabel("MiB/s perceived")
    axes.set_title(title, fontsize=11, loc="left")
    axes.legend(fontsize=8, frameon=False, ncols=5, loc="lower center", bbox_to_anchor=(0.5, -0.42))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="y", color="#eeeeee")
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)
