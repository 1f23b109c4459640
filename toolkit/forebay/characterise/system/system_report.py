"""A system file, for a person at a terminal: a table for each level and place."""

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from forebay import contention
from forebay.characterise.system.sample import LIMITS, METADATA, RATE_KEYS
from forebay.system_file import LEVELS
from forebay.units import show_bytes, show_operations, show_seconds

_UNSTEADY = 0.5  # range in proportion to the median, from which on it is marked
_WIDE = 130  # columns of a terminal that has room for the range and for operations a second
_MOVED_SHOWN = 12
# Heads of columns where there is little room.
_HEADS = {
    "requests of": "requests\nof",
    "pieces of": "pieces\nof",
    "processes": "pro-\ncesses",
    "under way": "under\nway",
}
_SMALL = 1024  # bytes of a message, up to which its time says more than its rate
_Entry = dict[str, Any]
_TITLES = {
    "device": "Device",
    "file system": "File system",
    "library": "MPI-IO",
    "network": "Network",
    "memory": "Memory",
}


def show(console: Console, document: dict[str, Any]) -> None:
    """Prints all of it."""
    places = {place["path"]: place for place in document.get("places", [])}
    campaigns = len(document.get("campaigns", []))
    for level in LEVELS:
        of_level = [limit for limit in document[LIMITS] if limit["level"] == level]
        for path in dict.fromkeys(limit.get("path", "") for limit in of_level):
            entries = [limit for limit in of_level if limit.get("path", "") == path]
            title = _title(level, path, places.get(path, {}), entries)
            _print_table(console, title, _limit_columns(level), entries, LIMITS, campaigns)
    metadata = document.get(METADATA, [])
    for path in dict.fromkeys(entry["path"] for entry in metadata):
        entries = [entry for entry in metadata if entry["path"] == path]
        title = f"Metadata and small files: {path}"
        _print_table(console, title, _METADATA_COLUMNS, entries, METADATA, campaigns)
    _show_contention(console, document)
    _show_legend(console, document, campaigns)


def _title(level: str, path: str, place: _Entry, entries: list[_Entry]) -> str:
    title = _TITLES[level]
    if level == "device" and (device := place.get("device")):
        kind = {True: ", rotating", False: ""}.get(device.get("rotational"), "")
        model = f" ({device['model']})" if "model" in device else ""
        return f"{title}: {device['name']}{model}{kind}, below {path}"
    if level == "network":
        hosts = max(entry.get("hosts", 1) for entry in entries)
        where = f"between {hosts} hosts" if hosts > 1 else "within one host: through its memory"
        return f"{title}: {where}"
    if path:
        kind = f" ({place['type']})" if "type" in place else ""
        return f"{title}: {path}{kind}"
    return title


_Columns = list[tuple[str, Callable[[_Entry], str]]]


def _limit_columns(level: str) -> _Columns:
    size = ("size", lambda entry: show_bytes(entry["size_bytes"]))
    if level == "memory":
        return [("copies of", size[1]), ("processes", _processes)]
    if level == "network":
        return [("message", size[1]), ("on the way", _in_flight), ("each takes", _time_of_one)]
    operation = ("", lambda entry: entry["operation"])
    if level == "library":
        return [
            operation,
            ("access", lambda entry: entry.get("access", "")),
            ("by", lambda entry: "Forebay" if entry.get("engine") == "forebay" else "the MPI"),
            ("pieces of", size[1]),
            ("processes", _processes),
        ]
    return [
        operation,
        ("mode", lambda entry: entry["mode"]),
        ("requests of", size[1]),
        ("processes", _processes),
        ("under way", _in_flight),
        ("how", _how),
    ]


_METADATA_COLUMNS: _Columns = [
    ("", lambda entry: entry["operation"]),
    ("files of", lambda entry: show_bytes(entry["size_bytes"]) if "size_bytes" in entry else ""),
    ("processes", lambda entry: str(entry.get("processes", 1))),
    ("stripes", lambda entry: _stripes(entry)),
]


def _processes(entry: _Entry) -> str:
    return str(entry.get("processes", 1))


def _in_flight(entry: _Entry) -> str:
    return str(entry.get("in_flight", 1))


def _time_of_one(entry: _Entry) -> str:
    """Of a message that goes alone; where it is small, that is the latency."""
    if entry.get("in_flight", 1) > 1:
        return ""
    seconds = entry["size_bytes"] / entry[RATE_KEYS[LIMITS]]["median"]
    return show_seconds(seconds) + (" (latency)" if entry["size_bytes"] <= _SMALL else "")


def _how(entry: _Entry) -> str:
    words = [entry["order"]] if entry.get("order", "sequential") != "sequential" else []
    if entry.get("processes", 1) > 1:
        words.append("one file" if entry.get("files") == "shared" else "own files")
    words.append(_stripes(entry))
    return ", ".join(word for word in words if word)


def _stripes(entry: _Entry) -> str:
    if "stripe_count" not in entry:
        return ""
    count = entry["stripe_count"]
    servers = "all servers" if count == 0 else "1 server" if count == 1 else f"{count} servers"
    return f"{show_bytes(entry.get('stripe_size_bytes', 0))} on {servers}"


def _print_table(
    console: Console,
    title: str,
    columns: _Columns,
    entries: list[_Entry],
    part: str,
    campaigns: int,
) -> None:
    stripes = {_stripes(entry) for entry in entries}
    if len(stripes) == 1:  # said once
        title += "".join(f", {one}" for one in stripes if one)
        columns = [(name, _without_stripes(cell)) for name, cell in columns if name != "stripes"]
    wide = console.width >= _WIDE
    if not wide:
        title, columns = _narrow(title, columns, entries)
    table = Table(
        title=Text(title),
        title_justify="left",
        box=None,
        pad_edge=False,
        padding=(0, 2 if wide else 1, 0, 0),
    )
    shown = _show_rate if part == LIMITS else show_operations
    for name, _ in columns:
        table.add_column(name if wide else _HEADS.get(name, name), no_wrap=True)
    rates = ["median", "interval", *(["range"] if wide else [])]
    rates += ["a second"] if wide and part == LIMITS else []
    each = campaigns > 1 and wide  # else what moved is listed below
    if each:
        rates.append("by campaign")
    for name in rates:
        table.add_column(name, justify="right", no_wrap=True)
    for entry in entries:
        found = entry[RATE_KEYS[part]]
        cells = [
            Text(shown(found["median"]), "bold"),
            Text(
                f"{shown(found['low'])} - {shown(found['high'])}"
                + ("" if wide else " *" if _unsteady(found) else "  ")
            ),
        ]
        if wide:
            cells.append(_range(found, shown))
        if wide and part == LIMITS:
            cells.append(Text(show_operations(found["median"] / entry["size_bytes"])))
        if each:
            medians = [rate.median for rate in contention.by_campaign(entry, [])]
            cells.append(Text(", ".join(map(shown, medians))))
        table.add_row(*(Text(cell(entry)) for _, cell in columns), *cells)
    console.print(table)
    console.print()


def _narrow(title: str, columns: _Columns, entries: list[_Entry]) -> tuple[str, _Columns]:
    """For a terminal of 80 columns: what is the same in all rows is said once, if it says
    anything."""
    kept: _Columns = []
    for name, cell in columns:
        cells = {cell(entry) for entry in entries}
        if not name or len(cells) > 1:
            kept.append((name, cell))
        else:
            title += "".join(f", {name} {one}" for one in cells if one not in ("", "1"))
    return title, kept


def _range(found: dict[str, float], shown: Callable[[float], str]) -> Text:
    if "least" not in found:
        return Text("")
    text = f"{shown(found['least'])} - {shown(found['most'])}"
    return Text(text + " unsteady", "yellow") if _unsteady(found) else Text(text)


def _unsteady(found: dict[str, float]) -> bool:
    return found.get("most", 0.0) - found.get("least", 0.0) > _UNSTEADY * found["median"]


def _without_stripes(cell: Callable[[_Entry], str]) -> Callable[[_Entry], str]:
    return lambda entry: cell(
        {key: value for key, value in entry.items() if not key.startswith("stripe")}
    )


def _show_contention(console: Console, document: dict[str, Any]) -> None:
    """What moved from campaign to campaign by more than its own samples, largest first."""
    campaigns = document.get("campaigns", [])
    lines: list[tuple[float, str]] = []
    for part in RATE_KEYS:
        shown = _show_rate if part == LIMITS else show_operations
        for entry in document.get(part, []):
            rates = contention.by_campaign(entry, campaigns)
            ends = contention.moved(rates)
            if ends is None:
                continue
            told = contention.told(rates, shown)
            slow, fast = ends
            factor = fast.median / slow.median
            lines.append((factor, f"{_named(entry)}: {told} ({factor:.2g} times)"))
    if not lines:
        return
    console.print(
        Text("Contention: what moved from campaign to campaign by more than its own runs")
    )
    for _, line in sorted(lines, key=lambda each: -each[0])[:_MOVED_SHOWN]:
        console.print(f"  {line}", markup=False, soft_wrap=True)
    if len(lines) > _MOVED_SHOWN:
        console.print(f"  and {len(lines) - _MOVED_SHOWN} more")
    console.print()


def _named(entry: _Entry) -> str:
    """A limit in one line."""
    processes = entry.get("processes", 1)
    words = [
        entry.get("path", ""),
        entry.get("level", ""),
        entry.get("access", "") if entry.get("level") == "library" else "",
        entry.get("engine", "") if entry.get("level") == "library" else "",
        entry.get("mode", ""),
        entry["operation"],
        f"of {show_bytes(entry['size_bytes'])}" if entry.get("size_bytes") else "",
        _how(entry) if "mode" in entry else _stripes(entry),
        f"by {processes} processes" if processes > 1 else "",
    ]
    return " ".join(word for word in words if word)


def _show_rate(rate: float) -> str:
    return f"{show_bytes(rate)}/s"


def _show_legend(console: Console, document: dict[str, Any], campaigns: int) -> None:
    entries = [(entry, part) for part in RATE_KEYS for entry in document.get(part, [])]
    if not entries:
        return
    covered = min(entry[RATE_KEYS[part]].get("coverage", 0.0) for entry, part in entries)
    interval = "interval: holds the true median with a probability of "
    interval += f"{100 * covered:.3g} % or more" if covered else "unknown coverage"
    mark = "unsteady" if console.width >= _WIDE else "* unsteady"
    console.print(f"{interval}; {mark}: the range is more than half of the median", style="dim")
    starts = ", ".join(campaign["start"] for campaign in document.get("campaigns", []))
    if starts:
        console.print(
            f"measured on {document['host']}, {starts}", style="dim", markup=False, soft_wrap=True
        )
    if campaigns > 1:
        console.print("by campaign: the medians of each, in this order", style="dim")
