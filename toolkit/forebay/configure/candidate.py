"""Settings as a configuration (docs/formats/configurations.md) that a run can have."""

import re
from pathlib import Path
from typing import Any

from forebay import intent_file
from forebay.configurations import Configuration
from forebay.configure.factors import KNOWN, Settings
from forebay.configure.workload import SMALL_FILE_BYTES, TracedFile, Workload
from forebay.units import show_bytes

# Of a longer plan the file would be larger than what it declares is worth.
MOST_EXTENTS = 20_000
# Between extents of the same file that are declared as one.
_JOINED_GAP_BYTES = 4096

_HINTS = {
    "aggregators": ("cb_nodes",),
    "buffer_size": ("cb_buffer_size",),
    "alignment": ("striping_unit",),
    "stripe_count": ("striping_factor",),
    "stripe_size": ("striping_unit",),
    "cache": ("forebay_cache",),
    "cache_path": ("forebay_cache_path",),
    "cache_flush": ("forebay_cache_flush",),
    "redundancy": ("forebay_cache_redundancy",),
}
_BOTH_WAYS = {"collective": "romio_cb", "sieving": "romio_ds"}
_STRIPING = ("stripe_count", "stripe_size")


def configuration(name: str, settings: Settings, workload: Workload) -> Configuration:
    """What carries `settings` to the runs of the program."""
    stock = settings.get("engine") == "mpi"
    hints: dict[str, str] = {}
    sections = [] if stock else _striping_sections(settings, workload)
    for factor, value in settings.items():
        if factor in _STRIPING and sections:
            continue
        for key in _keys(factor, workload):
            hints[key] = value
    if stock and "aggregators" in settings:
        # One aggregator a node is all that ROMIO takes without this.
        hints["cb_config_list"] = "*:*"
    sections += _reading_sections(settings, workload)
    return Configuration(
        name=name,
        stock=stock,
        description=described(settings),
        hints=hints,
        environment={k: v for k, v in settings.items() if k not in KNOWN},
        sections=sections,
    )


def _keys(factor: str, workload: Workload) -> tuple[str, ...]:
    """The hints of a factor; of the two directions those that the program has calls of."""
    if factor not in _BOTH_WAYS:
        return _HINTS.get(factor, ())
    wanted = factor == "collective"
    works = [work for work in workload.through_mpi() if work.collective == wanted]
    return tuple(
        f"{_BOTH_WAYS[factor]}_{operation}"
        for operation in ("write", "read")
        if any(work.operation == operation for work in works)
    )


def described(settings: Settings) -> str:
    """For a person: `aggregators 4, buffer_size 16.0 MiB`."""
    if not settings:
        return "Forebay without further words"
    return ", ".join(f"{factor} {_shown(factor, value)}" for factor, value in settings.items())


def _shown(factor: str, value: str) -> str:
    known = KNOWN.get(factor)
    is_size = known is not None and known.kind.startswith("a size") and value.isdigit()
    return show_bytes(int(value)) if is_size else value


def _striping_sections(settings: Settings, workload: Workload) -> list[dict[str, Any]]:
    """A section for each series of files, if there are small ones beside others: a small file gets
    one stripe. None if one set of hints does for all."""
    chosen = {_HINTS[key][0]: settings[key] for key in _STRIPING if key in settings}
    files = [file for file in workload.files if file.mpi]
    small = {_series(file) for file in files if file.bytes < SMALL_FILE_BYTES}
    large = {_series(file) for file in files} - small
    if not chosen or not small or not large:
        return []
    return [{"path": path, **chosen} for path in sorted(large)] + [
        {"path": path, "striping_factor": "1"} for path in sorted(small)
    ]


def _series(file: TracedFile) -> str:
    """The pattern of all files whose names differ from this one's in numbers alone."""
    path = Path(file.path)
    name = re.sub(r"\d+", "*", _escaped(path.name))
    return f"{_escaped(str(path.parent)).rstrip('/')}/{name}"


def _escaped(text: str) -> str:
    return re.sub(r"([*?\[\\])", r"\\\1", text)


def _reading_sections(settings: Settings, workload: Workload) -> list[dict[str, Any]]:
    how = settings.get("prefetch", "off")
    if how == "off" or settings.get("engine") == "mpi":
        return []
    sections: list[dict[str, Any]] = []
    for path, extents in workload.reads.items():
        section: dict[str, Any] = {"path": _escaped(path)}
        joined = intent_file.coalesced(extents, _JOINED_GAP_BYTES)
        if how == "declare" and len(joined) <= MOST_EXTENTS:
            section["willneed"] = [list(extent) for extent in joined]
        section["budget"] = int(settings.get("prefetch_budget", 8 << 20))
        sections.append(section)
    return sections
