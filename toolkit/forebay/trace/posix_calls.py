"""Calls to libc in spills, as rows of the table `posix`."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forebay.trace import descriptors, spills
from forebay.trace.appends import Writers
from forebay.trace.descriptors import KnownFiles
from forebay.trace.spills import Image

WITHIN = ["program", "mpi", "forebay"]
# No calls.
REMARKS = ("is_file", "none", "mpi_details")
# Their result is an error number.
_RETURN_ERRORS = ("posix_fallocate", "posix_fadvise")
_FLAGS_IN_OFFSET = (*descriptors.OPENINGS, "fstatat", "statx", "unlinkat", "access")
_WITH_ARGUMENT = (
    *("lseek", "fseek", "posix_fadvise", "fallocate", "copy_file_range", "sendfile", "splice"),
    *("mmap", "msync", "flock", "fcntl", "lockf"),
)
_ASYNCHRONOUS = ("aio_read", "aio_write")
_WITHOUT_LENGTH = (
    *("lseek", "fseek", "close", "fclose", "fflush", "fwide", "fsync", "fdatasync", "fstat"),
    *("syncfs", "sync", "flock"),
)


def columns(
    process: int,
    image: Image,
    events: NDArray[Any],
    thread: NDArray[np.int64],
    files: KnownFiles,
    writers: Writers,
) -> dict[str, NDArray[Any]]:
    """The calls of an image, but for their times. `place` is that of each in `events`, `call` its
    id in the image; -1 stands for null where a column may have that."""
    resolved = descriptors.resolve(image, events, files, writers)

    def those(names: tuple[str, ...]) -> NDArray[np.bool_]:
        return spills.is_one_of(image, events, names)

    result = events["result"].copy()
    errno = np.where(result < 0, -result, 0)
    returned = those(_RETURN_ERRORS)
    errno[returned] = result[returned]
    result[result < 0] = -1
    length = events["length"].copy()
    named = resolved.descriptor != events["descriptor"]  # of an opening, the new one
    length[named | those(_WITHOUT_LENGTH)] = -1
    truncated = those(("truncate",))
    length[truncated] = events["offset"][truncated]
    flags = those(_FLAGS_IN_OFFSET)
    argument = np.where(flags, events["offset"], events["argument"]).astype(np.int64)
    argument[~flags & ~those(_WITH_ARGUMENT)] = -1
    renames = those(descriptors.RENAMES)
    argument[renames] = resolved.renamed[renames]
    # The MPI asks for the results of what it began where the program waits: in no call of MPI-IO.
    within = np.where(those(_ASYNCHRONOUS), resolved.opened_within, events["within"])
    kept = ~those(REMARKS) & (events["call"] < spills.MPI_CALLS_FROM)
    columns = {
        "process": np.full(len(events), process, np.int64),
        "thread": thread,
        "place": np.arange(len(events)),
        "call": events["call"].astype(np.int64),
        "within": within.astype(np.int64),
        "file": resolved.file,
        "descriptor": resolved.descriptor,
        "offset": resolved.offset,
        "length": length,
        "result": result,
        "errno": errno,
        "argument": argument,
    }
    return {name: values[kept] for name, values in columns.items()}


def table(columns: dict[str, NDArray[Any]], words: list[str]) -> pa.Table:
    """As the directory has it. `call` is a place in `words`."""
    nullable = ("file", "descriptor", "offset", "length", "argument")
    arrays: dict[str, pa.Array] = {}
    for name, values in columns.items():
        if name == "call":
            arrays[name] = pa.DictionaryArray.from_arrays(
                values.astype(np.int32), pa.array(words, pa.string())
            )
        elif name == "within":
            arrays[name] = pa.DictionaryArray.from_arrays(values.astype(np.int32), pa.array(WITHIN))
        else:
            arrays[name] = pa.array(values, mask=values < 0 if name in nullable else None)
    return pa.table(arrays)
