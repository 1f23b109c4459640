"""Hints for the stock MPI, given from outside: a file that ROMIO reads, and Open MPI's parameters.

MPI itself has no way to hint a program from its environment. ROMIO (MPICH, and Open MPI's own copy)
reads `key value` lines from the file that ROMIO_HINTS names; OMPIO takes MCA parameters.
"""

from collections.abc import Mapping
from pathlib import Path

from forebay.units import parse_size

# ROMIO's key -> OMPIO's parameter that means the same (`ompi_info --param io ompio -l 9`).
_OMPIO = {
    "cb_nodes": "OMPI_MCA_io_ompio_num_aggregators",
    "cb_buffer_size": "OMPI_MCA_io_ompio_bytes_per_agg",
}
_SIZES = frozenset(
    {"cb_buffer_size", "ind_rd_buffer_size", "ind_wr_buffer_size", "striping_unit", "stripe_size"}
)
_MCA_PREFIX = "OMPI_MCA_"
_COLLECTIVE = ("romio_cb_write", "romio_cb_read")
#: How hints begin that no stock MPI knows.
FOREBAY_ONLY = ("forebay", "e10_")
ROMIO_FILE = "ROMIO_HINTS"  # the variable that names it


def is_for_romio(key: str) -> bool:
    """Whether a hint is in ROMIO's file, in words that ROMIO may know."""
    return not key.startswith(_MCA_PREFIX)


def is_parameter(key: str, value: str) -> bool:
    """Whether Open MPI gets a hint, too, by a parameter, of which it tells no program."""
    return key in _OMPIO or not is_for_romio(key) or (key in _COLLECTIVE and value == "disable")


def for_romio(hints: Mapping[str, str]) -> dict[str, str]:
    """Those that are in ROMIO's file. Sizes are in bytes: it knows no units, and of 1MiB it would
    take the 1. [MPICH 4.0: measured]"""
    return {key: value for key, value in in_bytes(hints).items() if is_for_romio(key)}


def in_bytes(hints: Mapping[str, str]) -> dict[str, str]:
    """Without units. Raises ForebayError for a size that is none."""
    return {k: str(parse_size(v)) if k in _SIZES else v for k, v in hints.items()}


def stock_variables(hints: Mapping[str, str], directory: Path | None) -> dict[str, str]:
    """The variables that make `hints` hold for the stock MPIs. ROMIO's file is put into
    `directory`; without one, it is left to the caller. Keys that start with OMPI_MCA_ are handed
    on as they are."""
    romio = for_romio(hints)
    variables = {key: value for key, value in hints.items() if key not in romio}
    if not romio:
        return variables
    if directory is not None:
        file = directory / "romio-hints"
        file.write_text("".join(f"{key} {value}\n" for key, value in romio.items()))
        variables[ROMIO_FILE] = str(file)
    for key, parameter in _OMPIO.items():
        if key in romio:
            variables.setdefault(parameter, romio[key])
    if "disable" in (romio.get(key) for key in _COLLECTIVE):
        variables.setdefault("OMPI_MCA_fcoll", "individual")
    return variables
