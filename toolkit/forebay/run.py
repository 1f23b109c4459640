"""`forebay run`: one command under Forebay, and what it did."""

import contextlib
import json
import os
import shlex
import shutil
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from forebay import (
    intent_file,
    job,
    launcher,
    leftovers,
    native,
    output_paths,
    page_watch,
    prefetch_records,
    program,
    read_traces,
    records,
    summary,
    trace_run,
    unsafe_data,
)
from forebay.errors import ForebayError
from forebay.exit_status import describe
from forebay.launcher import Dialect
from forebay.records import Record, Records
from forebay.settings import Settings, runtime_variables
from forebay.units import show_bytes


@dataclass(frozen=True)
class RunOptions:
    """One `forebay run` command line."""

    command: list[str]
    settings: Settings
    observe: bool = False  # time the calls, leave the I/O to the MPI
    record_to: Path | None = None  # for an intent file of what is read
    trace_to: Path | None = None  # for a trace directory
    pages: bool = False  # reads are seen in the kernel
    json_path: Path | None = None
    quiet: bool = False


def run(options: RunOptions, console: Console) -> int:
    """Runs the command, prints the summary to `console` and returns the command's exit status.
    Raises ForebayError."""
    tracing = None
    if options.trace_to is not None:
        # Of `run --trace -- COMMAND` the option gets what stands in front of the command.
        is_named = options.trace_to != Path(output_paths.BEFORE_COMMAND)
        tracing = trace_run.Tracing(options.command, options.trace_to if is_named else None)
    reads_ahead = _reads_ahead(options)
    preload = _preload(options, tracing, reads_ahead)
    dialect = launcher.identify(options.command, options.settings.mpi)
    mode = "observe" if options.observe else "engine"
    shared = launcher.spans_hosts(options.command, dialect, os.environ)
    with job.records_directory(shared) as directory, tracing or contextlib.nullcontext():
        variables = runtime_variables(options.settings, mode, directory, os.environ)
        if options.record_to is not None and not options.pages:
            variables["FOREBAY_RECORD_READS"] = "1"
        if tracing is not None:
            variables |= tracing.begin({**os.environ, **variables})
        launch = launcher.rewrite(options.command, dialect, variables, os.environ, preload=preload)
        begun_unix_s = time.time()
        with _watched(options, directory) as seen:
            start = time.perf_counter()
            exit_code = job.run_attached(launch)
            wall = time.perf_counter() - start
        if reads_ahead:
            leftovers.remove_orphaned_readers()  # of processes that were killed
        found = records.load(directory)
        opened = unsafe_data.opened_with_cache(directory)
        read_ahead = prefetch_records.load(directory)
        lines = []
        if options.record_to is not None:
            lines = keep_reads(read_traces.load([directory]), options)
            if reads_ahead:
                lines.append(
                    f"forebay: --record reads nothing ahead: what {_intent(options)} declares of "
                    "reads had no effect"
                )
        elif page_watch.BROKE_OFF in seen:
            pass  # Whatever came of it is not known.
        elif options.pages and not read_ahead.files:
            lines = [
                f"forebay: nothing was read ahead: no file that {_intent(options)} declares was "
                "opened on storage. Files in memory (tmpfs) and those that were open before the "
                "run are not seen."
            ]
        elif found.records or read_ahead.is_empty:
            lines = remarks(
                options.command,
                dialect,
                exit_code,
                found,
                directory.parent,
                intent=_intent(options) if reads_ahead else None,
                is_traced=tracing is not None,
            )
        lines = seen + _unread_intent(options) + _mistaken_intent(options, found) + lines
    unsafe = unsafe_data.left_in_logs(
        variables, found.records, exit_code != 0, begun_unix_s, opened
    )
    files = summary.summarise(found.records)
    told = unsafe_data.advice(unsafe)
    with contextlib.suppress(OSError):  # The command's own status must not be lost for it.
        if not options.quiet:
            summary.show(console, files, found)
            prefetch_records.show(console, read_ahead)
            told = lines + told
        for line in told:
            console.print(line, markup=False, soft_wrap=True)
    if tracing is not None:
        untold = trace_run.tell(tracing, console, options.quiet)
        exit_code = exit_code or untold
    if options.json_path is not None:
        content = {
            "version": 1,
            "command": options.command,
            "mode": mode,
            "exit": exit_code,
            "wall_seconds": wall,
            **summary.as_json(files, found),
            "unsafe_logs": unsafe.here,
            "unsafe_elsewhere": unsafe.elsewhere,
            "unsafe_lost": unsafe.lost,
            "unsafe_unseen": unsafe.unseen,
            **prefetch_records.as_json(read_ahead),
        }
        try:
            output_paths.write_text(options.json_path, json.dumps(content, indent=2) + "\n")
        except OSError as error:  # The command's own status must not be lost for it.
            with contextlib.suppress(OSError):
                console.print(
                    f"forebay: no result was written: {error}", markup=False, soft_wrap=True
                )
            return exit_code or 1
    return exit_code


def _preload(options: RunOptions, tracing: trace_run.Tracing | None, reads_ahead: bool) -> str:
    """What the command's processes preload: where they are traced, what traces; where the intent
    speaks of reads, also what reads ahead, to which a call comes after that."""
    preload = str(native.preload_library())
    if tracing is not None:
        preload += f":{tracing.library}"
    if options.pages or (options.record_to is None and not reads_ahead):
        return preload
    return f"{preload}:{native.posix_library()}"


def _reads_ahead(options: RunOptions) -> bool:
    return not options.observe and intent_file.declares_reads(_intent(options))


def _intent(options: RunOptions) -> Path | None:
    inherited = os.environ.get("FOREBAY_INTENT")
    return options.settings.intent or (Path(inherited) if inherited else None)


def _unread_intent(options: RunOptions) -> list[str]:
    """That an intent file has no effect, of which nothing is preloaded that would say so."""
    intent = _intent(options)
    if options.observe or intent_file.declares_reads(intent):
        return []
    why = intent_file.why_unreadable(intent)
    return [f"forebay: nothing is read ahead: {why}"] if why else []


def _mistaken_intent(options: RunOptions, found: records.Records) -> list[str]:
    """What is wrong in an intent file, for programs whose MPI files do not tell of it."""
    if options.observe or found.records:
        return []
    return [f"forebay: {told}" for told in intent_file.unseen_mistakes(_intent(options))]


def _watched(options: RunOptions, directory: Path) -> AbstractContextManager[list[str]]:
    """With --pages the reads of what is started meanwhile are seen in the kernel: written down, or
    read ahead. The list holds afterwards what is to be told of it. Raises ForebayError."""
    if not options.pages:
        return contextlib.nullcontext([])
    if options.record_to is not None:
        return page_watch.watched(directory, None)
    intent = _intent(options)
    if options.observe or not intent_file.declares_reads(intent):
        why = intent_file.why_unreadable(intent)
        raise ForebayError(
            f"--pages has nothing to do{': ' if why else ''}{why}",
            "Write --record to write reads down, or name an intent file that declares reads.",
        )
    return page_watch.watched(directory, intent)


_UNSEEN = (
    "What is read by mapping a file, or past the C library (Go, static programs), is not seen this "
    "way: add --pages, as root, to see it in the kernel."
)


def keep_reads(recording: read_traces.Recording, options: RunOptions) -> list[str]:
    """Writes the intent file of a recorded run. Returns what is to be told of it."""
    path = options.record_to
    assert path is not None
    lines = [f"forebay: {text}" for text in recording.rejected]
    if recording.left_out:
        lines.append(f"forebay: reads too many to be written down: {recording.left_out}")
    if not recording.files:
        small = f" ({recording.small} files, less than 1 MiB each)" if recording.small else ""
        lines.append(f"forebay: no file was read that would be worth reading ahead{small}")
        return lines if options.pages else [*lines, _UNSEEN]
    text = intent_file.as_toml(
        recording.files, f"what this command read: {shlex.join(options.command)}"
    )
    try:
        output_paths.write_text(path, text)
    except OSError as error:  # The command's own status must not be lost for it.
        return [*lines, f"forebay: no intent file was written: {error}"]
    lines += map(str, recording.files)
    words = f"--intent {path}{' --pages' if options.pages else ''}"
    return [*lines, f"to read ahead next time: forebay run {words} -- ..."]


_RECORD_BYTES = 64 * 1024  # more than the record of one file takes


def remarks(
    command: list[str],
    dialect: Dialect,
    exit_code: int,
    found: Records,
    place: Path,
    *,
    intent: Path | None = None,
    is_traced: bool = False,
) -> list[str]:
    """What should be known beside the summary. `place`: the directory of the run's records;
    `intent`: declares reads, of which there is no record either."""
    if not found.records and not found.rejected:
        room = shutil.disk_usage(place).free
        if room < _RECORD_BYTES:
            return [
                f"forebay: no record of a file was left: {place} has {show_bytes(room)} free",
                "Free some space, or name another place by TMPDIR.",
            ]
        if is_traced and intent is None:
            return []  # What it did is in the trace, be it by MPI or not.
        return why_no_record(command, dialect, exit_code, intent)
    lines = wrong_launcher(found.records, dialect)
    if exit_code != 0:
        lines.append(
            f"forebay: the command ended with {describe(exit_code, dialect)}. Files that were open "
            "then are missing above: a file's record is written when it is closed."
        )
    return lines


_FAMILY = {Dialect.HYDRA: "mpich", Dialect.OPENMPI: "openmpi"}


def wrong_launcher(found: list[Record], dialect: Dialect) -> list[str]:
    """A warning if the program uses another MPI than the launcher's: then every process runs as a
    program of one rank."""
    family = _FAMILY.get(dialect)
    others = {record.mpi for record in found} - {family, "abi"}
    if family is None or not others or any(record.ranks > 1 for record in found):
        return []
    other = ", ".join(sorted(others))
    return [
        f"the program uses {other}, but the launcher is {family}'s: each process ran alone. "
        f"Start it with {other}'s own mpiexec."
    ]


def why_no_record(
    command: list[str], dialect: Dialect, exit_code: int = 0, intent: Path | None = None
) -> list[str]:
    """Why a run may have left no record, of its MPI files or of reads that `intent` declares, the
    certain reasons first, and what to do."""
    unseen = "no MPI file was seen"
    if intent is not None:
        unseen = f"nothing was read ahead: no file that {intent} declares was seen"
    lines = [f"forebay: {unseen} in: {shlex.join(command)}"]
    if exit_code != 0:
        known = "it closed an MPI file, so there is nothing to tell"
        if intent is not None:
            known = f"anything was known of files that {intent} declares"
        lines = [
            f"forebay: ended with {describe(exit_code, dialect)} before {known}: "
            f"{shlex.join(command)}"
        ]
    reasons: list[str] = []
    for inspected in _programs(command, dialect):
        where = inspected.path
        if not inspected.dynamic:
            shared = "link it with a shared MPI library"
            pages = "add --pages, as root, to see its reads in the kernel"
            how = shared if intent is None else pages
            reasons.append(f"{where} is linked statically: {how}")
        if inspected.privileged:
            reasons.append(f"{where} is setuid or setgid: the loader ignores preloads; run a copy")
        ours = _FAMILY.get(dialect)
        if inspected.mpi and ours and inspected.mpi not in (ours, "abi"):
            reasons.append(
                f"{where} is linked with {inspected.mpi}, but the launcher is {ours}'s: "
                f"start it with {inspected.mpi}'s own mpiexec"
            )
    if not reasons and exit_code != 0:
        return lines
    if not reasons and intent is not None:
        reasons = [
            "no pattern of it is for a file that was opened: with a slash it is compared with the "
            "absolute path, without with the name ('forebay intent show' tells them)",
            "the program was killed, or goes on in the background: a file's record is written when "
            "it is closed, or the program ends",
            _UNSEEN,
        ]
        lines.append("possible reasons:")
    if not reasons:
        reasons = [
            "it made no MPI_File calls (POSIX, HDF5 without MPI), or never closed a file",
            "its MPI is none that Forebay serves, or it is linked statically or setuid",
            "ranks on other hosts cannot see the working directory, where records are left",
        ]
        lines.append("possible reasons:")
    lines += [f"  - {reason}" for reason in reasons]
    lines.append("'forebay doctor' checks this machine and says how to repair it.")
    return lines


def _programs(command: list[str], dialect: Dialect) -> list[program.Program]:
    """The executables that the command may start: its first word, or with a launcher the words
    that are ELF files (options and numbers are none)."""
    words = command[:1] if dialect is Dialect.DIRECT else command[1:]
    seen: dict[Path, program.Program] = {}
    for word in words:
        inspected = program.inspect(word)
        if inspected is not None and inspected.is_elf:
            seen.setdefault(inspected.path, inspected)
    return list(seen.values())
