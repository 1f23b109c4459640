"""What an exit status says of how a command ended."""

import signal

from forebay.launcher import Dialect

# By which a program ends that has gone wrong or is ended by others; the lower numbers are everyday
# exit statuses too.
_DEADLY = (
    signal.SIGILL,
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGKILL,
    signal.SIGSEGV,
    signal.SIGTERM,
)


def describe(code: int, dialect: Dialect | None = None) -> str:
    """`code` in words, with the signal that it stands for: 128 + signal, as shells and Open MPI's
    launcher have it. MPICH's launcher hands on a rank's status as wait() gives it, in which a
    killed rank's is the signal's bare number."""
    try:
        if code > 128:
            return f"exit status {code} ({signal.Signals(code - 128).name})"
        if dialect is Dialect.HYDRA and code in _DEADLY:
            name = signal.Signals(code).name
            return f"exit status {code} (or {name}: this launcher does not tell them apart)"
    except ValueError:  # no such signal
        pass
    return f"exit status {code}"
