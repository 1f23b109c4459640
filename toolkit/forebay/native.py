"""Where the package's native parts are: what is preloaded, its back ends, the testbed, and what
looks at write-behind logs."""

import os
from pathlib import Path

import forebay
from forebay.errors import ForebayError

PRELOAD = "libforebay.so"
POSIX_PRELOAD = "libforebay-posix.so"
TRACE_PRELOAD = "libforebay-trace.so"
BACK_ENDS = {
    "mpich": "libforebay-mpich.so",
    "openmpi": "libforebay-openmpi.so",
    "abi": "libforebay-abi.so",
}


def _places(kind: str) -> list[Path]:
    """Directories that may hold native parts of `kind` ("lib", "bin"), best first:
    FOREBAY_LIBRARY_DIR and what stands beside it in a build tree, as the library itself looks for
    its back ends, then the installed package (an editable install has two directories)."""
    named = os.environ.get("FOREBAY_LIBRARY_DIR")
    places = [Path(named), Path(named).parent / kind] if named else []
    return places + [Path(part) / kind for part in forebay.__path__]


def find(name: str, kind: str = "lib") -> Path | None:
    """Absolute path of a native part, or None."""
    for place in _places(kind):
        if (place / name).is_file():
            return (place / name).resolve()
    return None


def _required(name: str, kind: str, advice: str) -> Path:
    """Absolute path of a native part. Raises ForebayError with `advice` where it is not there."""
    found = find(name, kind)
    if found is None:
        raise ForebayError(f"{name} is not installed", advice)
    return found


def preload_library() -> Path:
    """The object to preload. Raises ForebayError where it is not installed."""
    return _required(
        PRELOAD,
        "lib",
        "Build it with 'make build' (or 'pip install .'), or set FOREBAY_LIBRARY_DIR to the "
        "directory that holds it.",
    )


def posix_library() -> Path:
    """The object to preload for programs whose POSIX reads are to be read ahead. Raises
    ForebayError where it is not installed."""
    return _required(
        POSIX_PRELOAD,
        "lib",
        "The intent file speaks of reads (willneed, block, budget, ahead, gap). Build the library "
        "with 'make build', or take these keys out.",
    )


def trace_library() -> Path:
    """The object to preload for programs whose calls are to be traced. Raises ForebayError where it
    is not installed."""
    return _required(
        TRACE_PRELOAD, "lib", "Build the library with 'make build', or set FOREBAY_LIBRARY_DIR."
    )


def cache_program() -> Path:
    """What looks at write-behind logs. Raises ForebayError where it is not installed."""
    return _required(
        "forebay-cache",
        "bin",
        "Install libcli11-dev (Debian: apt-get install libcli11-dev) and build again with "
        "'make build'.",
    )


def intent_program() -> Path:
    """What tells what is wrong in an intent file. Raises ForebayError where it is not installed."""
    return _required(
        "forebay-intent",
        "bin",
        "Build it with 'make build', or set FOREBAY_LIBRARY_DIR to the build's lib directory.",
    )


def pages_program() -> Path:
    """What sees reads in the kernel. Raises ForebayError where it is not installed."""
    return _required(
        "forebay-pages",
        "bin",
        "Install libtraceevent-dev (Debian: apt-get install libtraceevent-dev) and build again "
        "with 'make build'.",
    )


def testbed_program() -> Path:
    """The testbed's file system daemon. Raises ForebayError where it is not installed."""
    return _required(
        "forebay-testbedfs",
        "bin",
        "Install libfuse3-dev (Debian: apt-get install libfuse3-dev fuse3) and build again "
        "with 'make build'.",
    )
