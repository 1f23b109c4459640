"""Python programs that are traced by the real library, and the rows of their traces."""

import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from conftest import Forebay

from forebay.trace.directory import Trace

REPOSITORY = Path(__file__).resolve().parents[2]
REAL_LIBRARY = Path(os.environ.get("FOREBAY_LIBRARY_DIR", REPOSITORY / "build" / "lib"))

NEEDS_LIBRARY = pytest.mark.skipif(
    not (REAL_LIBRARY / "libforebay-trace.so").is_file(),
    reason="libforebay-trace.so is not built (make build, or set FOREBAY_LIBRARY_DIR)",
)


def traced(forebay: Forebay, script: str, exit_code: int = 0) -> Trace:
    """The trace of a Python program. Its environment has to name REAL_LIBRARY."""
    program = [sys.executable, "-c", textwrap.dedent(script)]
    answer = forebay("trace", "-o", "run.trace", "--", *program)
    assert answer.code == exit_code, answer.errors
    return Trace(Path("run.trace"))


def rows(trace: Trace, name: str) -> list[dict[str, Any]]:
    """The calls on the files that are called `name`, as the program made them."""
    paths = trace.table("files").column("path").to_pylist()
    places = [place for place, path in enumerate(paths) if Path(path).name == name]
    return [row for row in trace.table("posix").to_pylist() if row["file"] in places]


def told(trace: Trace, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in rows(trace, name)]
