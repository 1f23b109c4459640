"""Goal: commands that read a trace import no pandas, and who wants it of pyarrow gets it later.

Method: a package of that name comes before any other, and cannot be imported unnoticed; the real
one, where it is installed.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Forebay
from made_runs import MIB, MadeRun

from forebay.trace import arrow_alone


@pytest.mark.parametrize("words", [("report",), ("characterise", "app")])
def test_a_command_that_reads_a_trace_imports_no_pandas(
    words: tuple[str, ...], tmp_path: Path, forebay_process: Forebay, environ: dict[str, str]
) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "pandas.py").write_text("raise SystemExit('pandas was imported')\n")
    run = MadeRun(tmp_path / "run")
    run.posix("pwrite", 0, 10, MIB, offset=0)
    run.trace()
    modules = f"{trap}:{environ['PYTHONPATH']}"
    done = forebay_process(*words, tmp_path / "run", PYTHONPATH=modules)
    assert (done.code, done.errors) == (0, "")


def test_a_data_frame_can_be_had_later(environ: dict[str, str]) -> None:
    pytest.importorskip("pandas")
    code = (
        "from forebay.trace import arrow_alone\n"
        "arrow_alone.leave_pandas_out()\n"
        "import sys, pyarrow\n"
        "table = pyarrow.table({'a': [1, 2]})\n"
        "assert 'pandas' not in sys.modules\n"
        "print(table.to_pandas()['a'].sum())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout == "3\n"


def test_the_search_for_modules_is_as_before() -> None:
    before = list(sys.meta_path)
    arrow_alone.leave_pandas_out()
    assert sys.meta_path == before
