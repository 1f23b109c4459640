"""Goal: the tree keeps the house rules (docs/decisions and CONTRIBUTING.md say why).

Method: every file that git tracks or would track is read once and put before every rule that
concerns it; what a rule complains about is shown in full.
"""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path, PurePosixPath

import tidy_rules as rules

ROOT = Path(__file__).resolve().parents[2]

#: Files that may exceed `rules.LINES_MAX` lines, and why.
LONG_FILES: dict[str, str] = {}

#: Data and generated text, where neither the length of a file nor a word in it is a choice.
DATA_SUFFIXES = frozenset({".json", ".csv", ".svg", ".png", ".lock", ".parquet"})


@cache
def tree() -> dict[str, str]:
    """Path from the root to text, for every text file of the working tree that is not ignored."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    texts = {}
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.suffix in DATA_SUFFIXES or path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes()
        if b"\0" not in content:
            texts[name] = content.decode("utf-8")
    assert "CMakeLists.txt" in texts, "git listed no tree; run the tidy test in a checkout"
    return texts


def cpp_files() -> dict[str, str]:
    return {p: t for p, t in tree().items() if PurePosixPath(p).suffix in rules.CPP_SUFFIXES}


def none_of(complaints: list[str]) -> None:
    assert not complaints, "\n".join(["", *complaints])


def test_rooms_keep_to_their_walls() -> None:
    none_of([c for p, t in cpp_files().items() for c in rules.wall_complaints(p, t)])


def test_every_folder_of_core_has_a_wall() -> None:
    rooms = {p for p in cpp_files() if p.startswith("core/")}
    none_of([f"{p}: in no room of core/" for p in rooms if not p.startswith(tuple(rules.WALLS))])


def test_mpi_is_seen_at_its_two_places_only() -> None:
    none_of([c for p, t in cpp_files().items() for c in rules.mpi_complaints(p, t)])


def test_only_intercept_defines_mpi_symbols() -> None:
    none_of([c for p, t in cpp_files().items() for c in rules.mpi_definition_complaints(p, t)])


def test_includes_are_written_from_the_root() -> None:
    none_of([c for p, t in cpp_files().items() for c in rules.include_root_complaints(p, t)])


def test_no_folder_is_a_drawer() -> None:
    none_of([c for p in tree() for c in rules.folder_complaints(p)])


def test_no_file_outgrows_its_reader() -> None:
    code = {p: t for p, t in tree().items() if PurePosixPath(p).suffix in rules.CODE_SUFFIXES}
    none_of([c for p, t in code.items() for c in rules.length_complaints(p, t, LONG_FILES)])


def test_every_exception_for_length_is_still_needed() -> None:
    none_of(
        [
            f"{path}: no longer over {rules.LINES_MAX} lines; take it off the list"
            for path in LONG_FILES
            if tree().get(path, "").count("\n") <= rules.LINES_MAX
        ]
    )


def test_nothing_is_unfinished_and_no_path_is_of_one_machine() -> None:
    none_of([c for p, t in tree().items() for c in rules.text_complaints(p, t)])


def test_every_format_names_its_version_and_checksum() -> None:
    formats = {p: t for p, t in tree().items() if p.startswith("docs/formats/")}
    none_of([c for p, t in formats.items() for c in rules.format_complaints(p, t)])
