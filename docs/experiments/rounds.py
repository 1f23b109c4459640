"""Where the rounds of a campaign lie that adds to those it has: results/NAME-NUMBER.json. Some may
have been taken away, so that how many there are says nothing of their numbers."""

from pathlib import Path


def path_of(output: Path, stem: str, number: int) -> Path:
    return output / "results" / f"{stem}-{number}.json"


def numbers(output: Path, stem: str) -> list[int]:
    """Of the rounds that there are, ascending."""
    names = (path.stem.removeprefix(f"{stem}-") for path in output.glob(f"results/{stem}-*.json"))
    return sorted(int(name) for name in names if name.isdigit())


def paths(output: Path, stem: str) -> list[Path]:
    """Of these rounds, in that order."""
    return [path_of(output, stem, number) for number in numbers(output, stem)]


def next_number(output: Path, stem: str) -> int:
    """Of a round that is in nobody's place."""
    return max(numbers(output, stem), default=-1) + 1
