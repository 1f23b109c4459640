"""Draws the results of `forebay compare --json` as one picture: times faster, per workload.

    python docs/images/draw_ratios.py --title TITLE -o PICTURE.svg NAME=REPORT.json...

A bar is the median over pairs of stock time / Forebay time, the line on it the interval that the
report gives. Every figure comes from the reports; one whose files were not identical is refused.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

QUANTITIES = ("write", "read")
COLOURS = {"write": "#1e88e5", "read": "#fb8c00"}

# Pixels.
LEFT = 170
WIDTH = 760
BAR = 16
GAP = 3
BETWEEN = 18
TOP = 64
BOTTOM = 52


@dataclass(frozen=True)
class Bar:
    """Stock time / Forebay time inside MPI-IO, above 1 where Forebay is faster."""

    quantity: str
    median: float
    low: float
    high: float


def bars_of(report: Path) -> list[Bar]:
    """The bars of one report. Exits where it shows no sound result."""
    content = json.loads(report.read_text(encoding="utf-8"))
    if content["identical"] is not True or content["failure"] or content["interrupted"]:
        sys.exit(f"{report}: not a whole campaign with identical files; nothing to show")
    ratios = content["ratio"]
    return [
        Bar(name, ratios[name]["median"], ratios[name]["low"], ratios[name]["high"])
        for name in QUANTITIES
        if ratios.get(name)
    ]


def ticks(low: float, high: float) -> list[float]:
    """Round numbers between the ends, for a logarithmic axis; 1 is among them."""
    steps = [m * 10.0**e for e in range(-2, 4) for m in (1, 2, 5)]
    return [step for step in steps if low <= step <= high]


def draw(title: str, groups: list[tuple[str, list[Bar]]]) -> str:
    """The picture as SVG, on a logarithmic axis that contains 1."""
    every = [bar for _, bars in groups for bar in bars]
    low = min(0.9, *(bar.low for bar in every)) * 0.95
    high = max(2.0, *(bar.high for bar in every)) * 1.35
    scale = (WIDTH - LEFT - 24) / math.log(high / low)

    def x(ratio: float) -> float:
        return LEFT + scale * math.log(ratio / low)

    height = TOP + BOTTOM + sum(len(bars) * (BAR + GAP) + BETWEEN for _, bars in groups)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13" fill="#263238">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="28" font-size="16">{escape(title)}</text>',
    ]
    for i, name in enumerate(QUANTITIES):
        at = LEFT + 90 * i
        parts += [
            f'<rect x="{at}" y="40" width="12" height="12" fill="{COLOURS[name]}"/>',
            f'<text x="{at + 18}" y="51">{name}</text>',
        ]
    for tick in ticks(low, high):
        line = "#455a64" if tick == 1 else "#cfd8dc"
        parts += [
            f'<path d="M{x(tick):.1f} {TOP} V{height - BOTTOM}" stroke="{line}"/>',
            f'<text x="{x(tick):.1f}" y="{height - BOTTOM + 18}" text-anchor="middle">'
            f"{tick:g}x</text>",
        ]
    y = TOP + BETWEEN / 2
    for name, bars in groups:
        middle = y + len(bars) * (BAR + GAP) / 2 + 4
        parts.append(f'<text x="16" y="{middle:.1f}">{escape(name)}</text>')
        for bar in bars:
            begin, end = sorted((x(1), x(bar.median)))
            centre = y + BAR / 2
            parts += [
                f'<rect x="{begin:.1f}" y="{y:.1f}" width="{end - begin:.1f}" height="{BAR}" '
                f'fill="{COLOURS[bar.quantity]}"/>',
                f'<path d="M{x(bar.low):.1f} {centre:.1f} H{x(bar.high):.1f}" stroke="#263238"/>',
                f'<text x="{x(max(bar.high, 1)) + 6:.1f}" y="{y + BAR - 3:.1f}">'
                f"{bar.median:.2g}x</text>",
            ]
            y += BAR + GAP
        y += BETWEEN
    parts += [
        f'<text x="16" y="{height - 12}" fill="#455a64">Time in MPI-IO: stock / Forebay, '
        "median of pairs and its interval; right of 1x Forebay is faster</text>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    """Reads the command line, the reports, and writes the picture."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--title", required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("reports", nargs="+", metavar="NAME=REPORT.json")
    options = parser.parse_args()
    groups = []
    for argument in options.reports:
        name, separator, report = argument.rpartition("=")
        if not separator:
            parser.error(f"{argument}: write NAME=REPORT.json")
        groups.append((name, bars_of(Path(report))))
    options.output.write_text(draw(options.title, groups), encoding="utf-8")


if __name__ == "__main__":
    main()
