"""Which files count as the same, which as different, and of which nothing can be said."""

from pathlib import Path

import pytest

from forebay.comparison import FOREBAY, STOCK, FileCheck
from forebay.file_checks import FileChecks, RunFiles
from forebay.written_files import FileHash

PLACES = frozenset({Path("/data")})
FILE = "/data/file"


def check_of(stock: str, forebay: str, mpi: bool) -> FileCheck:
    """The verdict on a file that held these letters after each run of a side; '-': not written."""
    checks = FileChecks()
    for pair in zip(stock, forebay, strict=True):
        hashes = [{} if letter == "-" else {FILE: FileHash(1, letter)} for letter in pair]
        runs = [RunFiles(h, {}, PLACES) if mpi else RunFiles({}, h, PLACES) for h in hashes]
        checks.add({STOCK: runs[0], FOREBAY: runs[1]})
    return checks.checks()[FILE]


@pytest.mark.parametrize(
    ("stock", "forebay", "identical", "reason"),
    [
        ("aa", "aa", True, ""),
        ("aa", "ab", False, ""),
        ("aaa", "aa-", False, ""),
        ("--", "aa", False, ""),
        ("aa", "--", False, ""),
        ("ab", "cd", None, "the stock MPI's runs differ among themselves"),
        ("ab", "aa", None, "the stock MPI's runs differ among themselves"),
        ("a-", "--", None, "the stock MPI's runs differ among themselves"),
        ("--", "a-", None, "left by some runs only"),
        ("a", "b", None, "seen in too few runs to tell"),
    ],
)
def test_without_mpi_the_stock_runs_are_the_control(
    stock: str, forebay: str, identical: bool | None, reason: str
) -> None:
    check = check_of(stock, forebay, mpi=False)
    assert (check.identical, check.reason) == (identical, reason)


@pytest.mark.parametrize(
    ("stock", "forebay", "hashes"),
    [("aa", "ab", ("a", "b")), ("aaa", "aa-", ("a", None)), ("--", "aa", (None, "a"))],
)
def test_a_difference_is_shown_by_the_runs_that_differ(
    stock: str, forebay: str, hashes: tuple[str | None, str | None]
) -> None:
    for mpi in (False, True):
        check = check_of(stock, forebay, mpi)
        assert (check.hash_stock, check.hash_forebay) == hashes


@pytest.mark.parametrize(
    ("stock", "forebay", "identical", "reason"),
    [
        ("aa", "aa", True, ""),
        ("ab", "ab", True, ""),
        ("a", "b", False, ""),
        ("aaa", "aba", False, ""),
        ("a-", "--", False, ""),
        ("ab", "cd", False, "the stock MPI's runs differ among themselves, too"),
    ],
)
def test_through_mpi_every_pair_must_agree(
    stock: str, forebay: str, identical: bool, reason: str
) -> None:
    check = check_of(stock, forebay, mpi=True)
    assert (check.identical, check.reason) == (identical, reason)


def test_a_file_that_is_gone_after_every_run_is_not_compared() -> None:
    checks = FileChecks()
    checks.add({side: RunFiles({FILE: None}, {}, PLACES) for side in (STOCK, FOREBAY)})
    check = checks.checks()[FILE]
    assert (check.identical, check.reason) == (None, "gone after the run on both sides")


def test_runs_that_did_not_look_at_a_place_say_nothing_of_it() -> None:
    """The directory of an MPI file may be known only after the first run."""
    checks = FileChecks()
    hashes = {FILE: FileHash(1, "a")}
    checks.add({STOCK: RunFiles({}, {}, frozenset()), FOREBAY: RunFiles({}, hashes, PLACES)})
    for _ in range(2):
        checks.add({side: RunFiles({}, hashes, PLACES) for side in (STOCK, FOREBAY)})
    assert checks.checks()[FILE].identical is True


def test_a_place_may_be_a_single_file() -> None:
    checks = FileChecks()
    places = frozenset({Path(FILE)})
    for _ in range(2):
        checks.add(
            {side: RunFiles({}, {FILE: FileHash(1, side)}, places) for side in (STOCK, FOREBAY)}
        )
    assert checks.checks()[FILE].identical is False


@pytest.mark.parametrize(
    ("pattern", "ignored"),
    [
        ("*.log", True),
        ("file.*", True),
        ("log", False),
        ("/data/*.log", True),
        ("/other/*.log", False),
    ],
)
def test_a_pattern_is_for_the_name_or_with_a_slash_for_the_path(
    pattern: str, ignored: bool
) -> None:
    assert FileChecks([pattern]).ignores("/data/file.log") is ignored
