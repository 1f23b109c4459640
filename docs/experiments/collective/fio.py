"""What a device takes from fio, beside which Forebay is measured."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from measuring import MeasuringError

CALL_BYTES = 2**20
_DIRECT_BUFFERS = 8  # under way at once, which keeps a device busy

_MISSING = "fio is missing: install it (apt-get install fio)"


def require() -> None:
    """Raises MeasuringError where there is none."""
    if shutil.which("fio") is None:
        raise MeasuringError(_MISSING)


def taken_in(directory: Path, bytes_each: int, jobs: int, buffers: int) -> float:
    """Bytes a second that so many processes together write into files of their own, a call after
    the other, through the page cache where there is one, each from so many buffers in turn."""
    job = _written(directory, bytes_each, jobs, buffers, [])
    return float(job["write"]["bw_bytes"])


def durable(directory: Path, bytes_each: int, jobs: int = 1) -> float:
    """Bytes a second that so many processes together write into files of their own, from as much
    memory, with the time until they are durable."""
    return _durable(directory, bytes_each, jobs, bytes_each // CALL_BYTES, [])


def durable_at_best(directory: Path, bytes_each: int) -> float:
    """The same of one process, past the page cache too where the file system lets it: the better of
    the two ways, each into a new file."""
    through = durable(directory, bytes_each)
    try:
        past = _durable(directory, bytes_each, 1, _DIRECT_BUFFERS, ["--direct=1"])
    except MeasuringError:
        return through
    return max(through, past)


def _durable(directory: Path, bytes_each: int, jobs: int, buffers: int, more: list[str]) -> float:
    job = _written(directory, bytes_each, jobs, buffers, ["--end_fsync=1", "--unlink=1", *more])
    # Of a group it is the sum of what its processes took, which begin and end together.
    return float(job["write"]["io_bytes"] / (job["job_runtime"] / jobs) * 1000)


def _written(
    directory: Path, bytes_each: int, jobs: int, buffers: int, more: list[str]
) -> dict[str, Any]:
    words = ["fio", "--name=log", f"--directory={directory}", "--rw=write", f"--numjobs={jobs}"]
    words += [f"--bs={CALL_BYTES}", f"--size={bytes_each}", "--fallocate=none"]
    # All are submitted before the first is used again.
    words += ["--ioengine=libaio", f"--iodepth={buffers}", f"--iodepth_batch={buffers}"]
    words += [f"--iodepth_batch_complete_min={buffers}", *more]
    words += ["--group_reporting", "--output-format=json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MeasuringError(f"{' '.join(words)}: {done.stderr}")
    job = json.loads(done.stdout)["jobs"][0]
    assert isinstance(job, dict)
    return job
