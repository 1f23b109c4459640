#!/usr/bin/env python3
"""Runs a command while the processors are kept from sleeping.

Hosts take a processor away from a virtual machine that sleeps, and give it back late: programs that
wait for storage most of the time then wait for the host as well, milliseconds each time, while
programs that compute lose nothing. The times of the first kind say more about the host than about
storage. A process a processor that never sleeps prevents that. It has the kernel's idle class
[sched(7)], so that whatever else is ready runs at once in its place.

    docs/experiments/awake.py .venv/bin/python docs/experiments/prefetch/run.py kernel -n 5

Not for programs whose processes yield while they wait, as Open MPI's do where there are more of
them than cores: on Linux 6.18, beside such processes and one of the idle class, a thread that is
ready (a server's, say) may get no processor for up to 45 s.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Mapping

#: Set to 1 for the command, so that it can write down how it was measured.
VARIABLE = "FOREBAY_EXPERIMENT_AWAKE"


def keep_awake(processor: int) -> int:
    """Starts a process that never sleeps, on that processor. Returns its id."""
    parent = os.getpid()
    child = os.fork()
    if child != 0:
        return child
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while os.getppid() == parent:  # Also when the parent was killed.
        pass
    os._exit(0)


def is_kept() -> bool:
    """Whether this process was started so."""
    return os.environ.get(VARIABLE) == "1"


def told(rounds: Collection[Mapping[str, object]]) -> str:
    """How many of `rounds` were measured so: a sentence with a space before it, empty for none."""
    awake = sum(bool(one.get("kept_awake")) for one in rounds)
    return f" The processors were kept awake in {awake} of {len(rounds)} rounds." if awake else ""


def main() -> int:
    """The exit status of the command, or 2."""
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    spinning = [keep_awake(processor) for processor in os.sched_getaffinity(0)]
    try:
        return subprocess.run(
            sys.argv[1:], check=False, env={**os.environ, VARIABLE: "1"}
        ).returncode
    except OSError as error:
        print(f"awake.py: {sys.argv[1]}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    finally:
        for process in spinning:
            os.kill(process, 15)
            os.waitpid(process, 0)


if __name__ == "__main__":
    sys.exit(main())
