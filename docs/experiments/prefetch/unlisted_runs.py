"""Measures what interception costs calls that are not read ahead: core/intercept/posix has the
program. One JSON document a round."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from analysis_runs import ROOT, circumstances
from control_groups import CannotBeDoneError

PROGRAM = ROOT / "build" / "bench" / "unlisted_bench"


def measure_round() -> dict[str, Any]:
    """Nanoseconds of each call straight to the C library, and what comes on top. Raises
    CannotBeDoneError."""
    if not PROGRAM.is_file():
        raise CannotBeDoneError(f"{PROGRAM} is not there: make bench BENCH=unlisted_bench")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FOREBAY_", "LD_PRELOAD"))}
    done = subprocess.run(
        [PROGRAM, "--benchmark_format=json"], capture_output=True, text=True, check=True, env=kept
    )
    measured = json.loads(done.stdout)["benchmarks"]
    for one in measured:
        if one.get("error_occurred"):
            raise CannotBeDoneError(one["error_message"])
    return {
        **circumstances(),
        "calls": {
            one["label"]: {"libc_ns": one["libc_ns"], "added_ns": one["added_ns"]}
            for one in measured
        },
    }
