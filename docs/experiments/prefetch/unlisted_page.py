"""The page of what interception costs calls that are not read ahead, made of the results."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from page_claims import MADE_BY, NOT_MEASURED, Claim, circumstances_of, stored_rounds

BAR_NS = 20.0


def _spread(values: list[float]) -> str:
    """Median, least and most, in nanoseconds."""
    return f"{median(values):.1f} [{min(values):.1f}, {max(values):.1f}]"


def write(output: Path) -> Path:
    """Writes unlisted.md. Returns the page's path."""
    rounds = stored_rounds(output, "unlisted")
    lines = [
        "# Reading ahead: calls that are not read ahead",
        "",
        MADE_BY,
        "",
        "The library is in every process of a run, and most descriptors are of files that nothing "
        "is declared of. Such a call looks into a table, and goes on to the C library. The same "
        "calls through the library and straight to the C library, in turns of 100, the least of "
        "4000 turns each (`core/intercept/posix/unlisted_bench.cpp`): `read` to `fcntl` of a "
        "descriptor that does not exist, which are the shortest that enter the kernel; `fread` of "
        "a byte that is in the stream's buffer; of `dup` and `close`, and `mmap` and `munmap`, the "
        "mean of the two. Nanoseconds a call, medians of the rounds, least and most in brackets.",
        "",
        "One round by hand: `make bench BENCH=unlisted_bench`.",
        "",
    ]
    if rounds:
        lines += [f"Rounds: {len(rounds)}, {circumstances_of(rounds, others_above=1)}", ""]
        lines += [f"| call | C library | added | at most {BAR_NS:g} |", "|---|---|---|---|"]
        for name in rounds[0]["calls"]:
            straight, added = (
                [one["calls"][name][of] for one in rounds] for of in ("libc_ns", "added_ns")
            )
            verdict = Claim(name, median(added), BAR_NS).verdict(len(rounds))
            shown = name.replace("_", " and ") if name.endswith(("close", "munmap")) else name
            lines.append(f"| {shown} | {_spread(straight)} | {_spread(added)} | {verdict} |")
    else:
        lines.append(NOT_MEASURED)
    page = output / "unlisted.md"
    page.write_text("\n".join(lines) + "\n")
    return page
