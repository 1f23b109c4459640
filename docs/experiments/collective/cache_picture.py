"""Perceived bandwidth by aggregators and buffer, as the papers on caches for collective writes draw
it, or by workload and where logs are."""

from pathlib import Path

_COLOURS = ("#757575", "#1565c0", "#2e7d32", "#ef6c00", "#8e24aa")


def draw(
    path: Path,
    title: str,
    axis: str,
    marks: list[str],
    series: dict[str, list[float]],
    published: dict[str, list[float]] | None = None,
    *,
    joined: bool = True,
) -> None:
    """Writes the picture as SVG: for each name of `series` bytes a second at each of `marks`, on a
    logarithmic axis; joined to a curve if marks are steps of one thing. What was published is
    dashed. The same values give the same file."""
    import matplotlib as mpl  # slow to import

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "forebay"
    mpl.rcParams["svg.fonttype"] = "none"  # text as text: a tenth of the size
    from matplotlib import pyplot, ticker

    figure, axes = pyplot.subplots(figsize=(8, 3.6), layout="constrained")
    looks = [("o-" if joined else "o", colour) for colour in _COLOURS[: len(series)]]
    looks += [("--", "#bdbdbd")] * len(published or {})
    every = series | (published or {})
    for (name, rates), (line, colour) in zip(every.items(), looks, strict=True):
        mebibytes = [rate / 2**20 for rate in rates]
        axes.plot(range(len(marks)), mebibytes, line, color=colour, label=name, markersize=4)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xticks(range(len(marks)), marks, fontsize=8)
    axes.set_xlabel(axis)
    axes.set_ylabel("MiB/s perceived")
    axes.set_title(title, fontsize=11, loc="left")
    axes.legend(fontsize=8, frameon=False, ncols=5, loc="lower center", bbox_to_anchor=(0.5, -0.42))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="y", color="#eeeeee")
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)
