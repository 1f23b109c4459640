"""What a search found, as a file of configurations that `evaluate` and `apply` read."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from forebay import configurations, intent_file, output_paths
from forebay.configurations import Configuration
from forebay.configure.chooser import Ranked
from forebay.configure.result import SearchResult
from forebay.errors import ForebayError
from forebay.trace.directory import printable
from forebay.units import show_seconds

MADE_BY = "forebay configure"
BEST = "best"
# The best of the others, in case that the best one is not what the search took it for.
RUNNERS_UP = ("second", "third")


def require_own(path: Path) -> None:
    """Raises ForebayError where `path` holds configurations that a search did not write."""
    if not path.exists():
        return
    about = intent_file.load(path).get("about")
    if not isinstance(about, dict) or about.get("made_by") != MADE_BY:
        raise ForebayError(
            f"{path} holds configurations that are not from a search",
            "Name another file: --out found.toml, and the same for evaluate: --file found.toml.",
        )


def write(result: SearchResult, history: Path, path: Path) -> bool:
    """Writes the best and the runners-up, if anything looks faster than the reference; says whether
    it did. A file of an earlier search is kept with '.old' added to its name."""
    best = result.best
    if best is None:
        return False
    chosen = [best, *(r for r in result.others() if r is not best)]
    found = [
        _named(result, ranked, name)
        for ranked, name in zip(chosen, (BEST, *RUNNERS_UP), strict=False)
    ]
    about: dict[str, Any] = {
        "made_by": MADE_BY,
        "history": str(history.absolute()),
        "trace": result.search.trace["path"],
        "command": shlex.join(result.search.command),
        "time": result.search.time,
        "runs": len(result.runs),
        "stopped": result.stopped,
        "note": "times are a search's estimates and prove nothing",
        "prove": prove_line(result, path),
    }
    if path.exists():
        path.replace(path.with_name(f"{path.name}.old"))
    # TOML is UTF-8, and of the command a person has what the terminal showed.
    output_paths.write_text(path, configurations.file_toml(found, printable(about)))
    return True


def _named(result: SearchResult, ranked: Ranked, name: str) -> Configuration:
    made = result.configurations[result.name(ranked)]
    reference = result.reference
    assert reference is not None
    told = (
        f"{made.description} ({result.name(ranked)}; a search's estimate: "
        f"{show_seconds(ranked.seconds)} against {show_seconds(reference.seconds)})"
    )
    return replace(made, name=name, description=told)


def prove_line(result: SearchResult, path: Path) -> str:
    """The command that shows whether the best is faster, by fresh runs."""
    search = result.search
    words = ["forebay", "evaluate", "--configs", f"{BEST},{search.reference}"]
    if path != Path(configurations.FILE_NAME):
        words += ["--file", str(path)]
    if search.time != "wall":
        words += ["--time", search.time]
    if search.prepare is not None:
        words += ["--prepare", search.prepare]
    if search.mpi != "auto":
        words += ["--mpi", search.mpi]
    for pattern in result.ignored:
        words += ["--ignore", pattern]
    if search.ranks_per_node is not None:
        words += ["--ranks-per-node", str(search.ranks_per_node)]
    return shlex.join([*words, "--", *search.command])
