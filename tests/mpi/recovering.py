"""What checks of killed programs share: the recovery of what they left."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

PATIENCE_S = 60


def recover_now(program: str, *words: str) -> list[dict[str, Any]]:
    """What becomes of each file, by forebay-cache with these `words`. What was not finished is left
    out."""
    command = [program, "recover", "--incomplete", "drop", *words]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    files: list[dict[str, Any]] = json.loads(result.stdout.splitlines()[-1])["files"]
    return files


def recover(program: str, *words: str) -> list[dict[str, Any]]:
    """The same once all killed ranks are gone, which a launcher may not await."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        files = recover_now(program, *words)
        if all(file["state"] != "in use" for file in files):
            return files
        assert time.monotonic() < deadline, "the ranks live on"
        time.sleep(0.02)
