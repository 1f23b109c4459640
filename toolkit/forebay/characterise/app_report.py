"""An application's pattern, for a person at a terminal."""

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from forebay.characterise.app import Application, Layer
from forebay.characterise.phases import Phase
from forebay.units import show_bytes, show_count, show_seconds

NAMES = {"mpiio": "MPI-IO", "posix": "POSIX", "stdio": "C streams"}
_ALONE = 1.05  # processes at a time, on average, up to which they come one after another
_FILES_SHOWN = 10  # rows, of one file and direction each


def show(console: Console, application: Application, phases: int, each_process: bool) -> None:
    """Prints all layers, at most `phases` phases of each."""
    run = application.trace.run
    _say(console, f"{application.trace.path}: {' '.join(run.command)}")
    count = application.trace.rows("processes")
    _say(console, f"{count} processes, {show_seconds(run.wall_ns / 1e9)}")
    for warning in application.warnings:
        console.print(Text.assemble(("warning: ", "yellow"), warning), soft_wrap=True)
    if not application.layers:
        _say(console, "no reads or writes of files are in the trace")
    if application.mpi_files is not None:
        _say(console, f"not counted below: {application.mpi_files}")
    for layer in application.layers:
        console.print()
        console.print(_dimensions(layer))
        if layer.level == "counters":
            _say(console, "There are sums alone in the trace: no phases, and nothing of time.")
            continue
        if layer.left_out:
            _say(
                console,
                f"left out: {show_count(layer.left_out)} calls with "
                f"{show_bytes(layer.left_out_bytes)} on files of the system and the MPI "
                "(--all-files)",
            )
        _show_phases(console, application, layer, phases)
        _show_sharing(console, application, layer)
        if each_process:
            console.print(_processes(layer))


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)


def _dimensions(layer: Layer) -> Table:
    table = Table(title=f"{NAMES[layer.name]}, all processes", title_justify="left")
    table.add_column("dimension", no_wrap=True)
    table.add_column("pattern")
    for name, text in (
        ("operation", _operation(layer.whole["operation"])),
        ("request size", _request_size(layer.whole["request_size"])),
        ("spatial", _spatial(layer)),
        ("temporal", _temporal(layer)),
        ("repetition", _repetition(layer)),
    ):
        table.add_row(name, Text(text))
    return table


def _operation(found: dict[str, Any]) -> str:
    parts = [found["kind"]]
    if found["writes"]:
        parts.append(
            f"{show_count(found['writes'])} writes of {show_bytes(found['written_bytes'])} "
            f"in {show_seconds(found['write_s'])}"
        )
    if found["reads"]:
        parts.append(
            f"{show_count(found['reads'])} reads of {show_bytes(found['read_bytes'])} "
            f"in {show_seconds(found['read_s'])}"
        )
    if found["collective_share"]:
        parts.append(f"{_percent(found['collective_share'])} collective")
    if found["other_s"]:
        parts.append(f"other calls {show_seconds(found['other_s'])}")
    if found["share_of_time"] is not None:
        parts.append(f"{_percent(found['share_of_time'])} of the processes' time in calls")
    return "; ".join(parts)


def _request_size(found: dict[str, Any] | None) -> str:
    if found is None:
        return "not in the counters"
    common = ", ".join(
        f"{show_bytes(size['bytes'])} ({show_count(size['calls'])})" for size in found["common"]
    )
    if found["least"] is None or found["kind"] == "constant":
        return f"{found['kind']}: {common}"
    return (
        f"{found['kind']}: {show_bytes(found['least'])} to {show_bytes(found['most'])}, "
        f"median {show_bytes(found['median'])}; most often {common}"
    )


def _spatial(layer: Layer) -> str:
    found = layer.whole["spatial"]
    if found is None:
        return "not in the counters"
    text = str(found["kind"])
    shares = [
        f"{_percent(found[key])} {word}"
        for key, word in (
            ("contiguous_share", "right behind the call before"),
            ("ascending_share", "further on"),
            ("same_place_share", "at its place"),
            ("backward_share", "back"),
        )
        if found.get(key, 0) >= 0.005
    ]
    if shares and found["kind"] not in ("single calls", "unknown"):
        text += ": " + ", ".join(shares)
    if found.get("files", 0) > 1:
        text += f"; {show_count(found['files'])} files"
    return text


def _temporal(layer: Layer) -> str:
    found = layer.whole["temporal"]
    if found is None:
        return "not in the counters"
    text = str(found["kind"])
    if found["period_s"] is not None:
        text += f": a burst each {show_seconds(found['period_s'])}"
        text += f" (quartiles {_percent(found['period_spread'] or 0)} apart)"
    return f"{text}; from {show_seconds(found['first_s'])} to {show_seconds(found['last_s'])}"


def _repetition(layer: Layer) -> str:
    found = layer.whole["repetition"]
    if found is None:
        return "not in the counters"
    bursts, most = found["bursts"], found["most"]
    how_often = "once" if most == 1 else f"up to {show_count(most)} times"
    return f"{show_count(bursts)} burst{'' if bursts == 1 else 's'}; a phase comes {how_often}"


def _show_phases(console: Console, application: Application, layer: Layer, most: int) -> None:
    table = Table(title="Phases", title_justify="left")
    for name in ("", "bytes", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what")
    table.add_column("who")
    table.add_column("when")
    shown = layer.phases.listed[:most]
    for number, phase in enumerate(shown, start=1):
        table.add_row(
            str(number),
            _percent(phase.bytes_share),
            _percent(phase.time_share),
            Text(what(phase, application.files)),
            Text(who(phase)),
            Text(when(phase)),
        )
    console.print(table)
    others = len(layer.phases.listed) - len(shown) + layer.phases.others
    if others:
        rest = 1 - sum(phase.bytes_share for phase in shown)
        _say(console, f"{show_count(others)} more phases with {_percent(rest)} of the bytes")


def what(phase: Phase, files: list[str]) -> str:
    if phase.size_min == phase.size_max:
        size = show_bytes(phase.size_min)
    else:
        size = f"{show_bytes(phase.size_min)} to {show_bytes(phase.size_max)}"
    times = f"{phase.calls_each:.0f}" if phase.calls_each >= 10 else f"{phase.calls_each:.3g}"
    collective = " (collective)" if phase.collective else ""
    path = files[phase.files[0]] if len(phase.files) == 1 else phase.series
    lines = [f"{times} x {phase.call} of {size}{collective}, {phase.order}", path]
    if phase.formula is not None and (phase.formula.base is not None or phase.formula.terms):
        loops = [f"{t.index} < {t.count}" for t in phase.formula.terms if t.index.isalpha()]
        lines.append(f"offset = {phase.formula}" + (",  " if loops else "") + ", ".join(loops))
        if 0 < phase.formula.exact < 1:
            lines[-1] += f"  ({_percent(phase.formula.exact)} of it)"
    if phase.view is not None:
        pieces, size_of, apart = phase.view
        word = "piece" if pieces == 1 else "pieces"
        text = f"view: {show_count(pieces)} {word} of {show_bytes(size_of)}"
        evenly = f", each {show_bytes(apart)}" if apart else ", unevenly apart"
        lines.append(text + evenly)
    return "\n".join(lines)


def who(phase: Phase) -> str:
    files = f"{show_count(len(phase.files))} files" if len(phase.files) > 1 else "one file"
    if phase.new_file_each_time:
        files += ", a new one each time"
    who = f"ranks {ranges(phase.ranks)}" if len(phase.ranks) > 1 else f"rank {phase.ranks[0]}"
    shared = "" if phase.shared == "one process" else f", {phase.shared}"
    at_once = ""
    if len(phase.ranks) > 1:
        several = phase.together >= _ALONE
        at_once = f"\n{phase.together:.1f} at a time" if several else "\none after another"
    return f"{who}\n{files}{shared}{at_once}"


def when(phase: Phase) -> str:
    often = "once" if phase.repetitions == 1 else f"{show_count(phase.repetitions)} times"
    lines = [f"{often}, {show_seconds(phase.duration_s)}"]
    if phase.period_s is not None:
        lines.append(f"each {show_seconds(phase.period_s)}")
    lines.append(f"{show_seconds(phase.first_s)} to {show_seconds(phase.last_s)}")
    return "\n".join(lines)


def _show_sharing(console: Console, application: Application, layer: Layer) -> None:
    table = Table(title="Files", title_justify="left")
    table.add_column("file", overflow="fold")
    table.add_column("operation")
    table.add_column("processes", justify="right")
    table.add_column("bytes", justify="right", no_wrap=True)
    table.add_column("how their bytes lie")
    for each in layer.sharing[:_FILES_SHOWN]:
        often = each["times_each_byte"]
        again = f", each byte {often:.1f} times" if often is not None and often >= 1.05 else ""
        table.add_row(
            Text(application.files[each["file"]]),
            each["operation"],
            show_count(each["processes"]),
            show_bytes(each["bytes"]),
            each["kind"] + again,
        )
    if layer.sharing:
        console.print(table)
    if len(layer.sharing) > _FILES_SHOWN:
        _say(console, "more files with fewer bytes are in the JSON")


def _processes(layer: Layer) -> Table:
    table = Table(title="Each process", title_justify="left")
    for name in ("rank", "operation", "reads", "writes", "bytes", "size", "spatial", "temporal"):
        right = name in ("rank", "reads", "writes", "bytes", "size")
        table.add_column(name, justify="right" if right else "left")
    for each in layer.processes:
        operation = each["operation"]
        table.add_row(
            str(each["rank"]),
            operation["kind"],
            show_count(operation["reads"]),
            show_count(operation["writes"]),
            show_bytes(operation["read_bytes"] + operation["written_bytes"]),
            f"{show_bytes(each['request_size']['median'])}, {each['request_size']['kind']}",
            each["spatial"]["kind"],
            each["temporal"]["kind"],
        )
    return table


def _percent(share: float) -> str:
    if 0 < share < 0.005:
        return "<1 %"
    return f"{100 * share:.0f} %"


def ranges(numbers: list[int]) -> str:
    """[0, 1, 2, 5, 8, 10] -> '0-2, 5, 8, 10'; with one distance throughout '0-12 by 4'."""
    if len(numbers) > 2:
        apart = numbers[1] - numbers[0]
        if apart > 1 and numbers == list(range(numbers[0], numbers[-1] + 1, apart)):
            return f"{numbers[0]}-{numbers[-1]} by {apart}"
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
