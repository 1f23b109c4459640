"""Hints for the stock MPI, given from outside: a file that ROMIO reads, and Open MPI's parameters.

MPI itself has no way to hint a program from its environment. ROMIO (MPICH, and Open MPI's own copy)
reads `key value` lines from the file that ROMIO_HINTS names; OMPIO takes MCA parameters.
"""

from collections.abc import Mapping
from pathlib import Path

# ROMIO's key -> OMPIO's parameter that means the same (`ompi_info --param io ompio -l 9`).
_OMPIO = {
    "cb_nodes": "OMPI_MCA_io_ompio_num_aggregators",
    "cb_buffer_size": "OMPI_MCA_io_ompio_bytes_per_agg",
}
_MCA_PREFIX = "OMPI_MCA_"


def stock_variables(hints: Mapping[str, str], directory: Path | None) -> dict[str, str]:
    """The variables that make `hints` hold for the stock MPIs. ROMIO's file is put into
    `directory`; without one, it is left to the caller. Keys that start with OMPI_MCA_ are handed
    on as they are."""
    variables = {key: value for key, value in hints.items() if key.startswith(_MCA_PREFIX)}
    romio = {key: value for key, value in hints.items() if not key.startswith(_MCA_PREFIX)}
    if not romio:
        return variables
    if directory is not None:
        file = directory / "romio-hints"
        file.write_text("".join(f"{key} {value}\n" for key, value in romio.items()))
        variables["ROMIO_HINTS"] = str(file)
    for key, parameter in _OMPIO.items():
        if key in romio:
            variables.setdefault(parameter, romio[key])
    if "disable" in (romio.get("romio_cb_write"), romio.get("romio_cb_read")):
        variables.setdefault("OMPI_MCA_fcoll", "individual")
    return variables
