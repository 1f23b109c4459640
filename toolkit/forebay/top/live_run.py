"""A running job, followed by what its processes spill."""

import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import PurePath

from forebay.top import local_process
from forebay.top.dirty_logs import DirtyLogs
from forebay.top.host_clock import HostClock
from forebay.top.live_files import FileActivity, LiveFiles
from forebay.top.picture import ENDED, FileRow, Picture, ProcessRow, Rates
from forebay.top.process_activity import ProcessActivity
from forebay.top.run_place import RunPlace
from forebay.top.spill_tail import SpillTail
from forebay.top.timeline import SECONDS, Floats, Quantity, minutes_sum, sum_of
from forebay.trace import spills
from forebay.trace.capture import SUFFIX
from forebay.trace.spills import Piece, Process

DEFAULT_WINDOW_S = 5
# A process that is busy is heard of once a second.
QUIET_S = 3.0
# One that has ended and has no rank is shown for so long.
_SHOWN_S = 60
_NS = 1_000_000_000
# What the kernel's word for the state of one that is not heard of says. [proc(5)]
_SILENT = {"D": "disk wait", "T": "stopped", "t": "stopped"}


@dataclass
class _File:
    """A spill file. `process` is None until it has said what it is of."""

    tail: SpillTail
    process: ProcessActivity | None = None
    is_over: bool = False  # its process has said that it ended


@dataclass
class _Run:
    command: list[str] = field(default_factory=list)
    begun_ns: int | None = None


class LiveRun:
    """`look` reads what is new. Of each process is kept what the last minute needs, whatever it has
    spilled."""

    def __init__(
        self,
        place: RunPlace,
        window_s: int = DEFAULT_WINDOW_S,
        now_ns: Callable[[], int] = time.time_ns,
        dirty_logs: DirtyLogs | None = None,
    ) -> None:
        self.place = place
        self._window_s = window_s
        self._now_ns = now_ns
        self._dirty_logs = dirty_logs or DirtyLogs()
        self._host = os.uname().nodename
        self._clocks: dict[str, HostClock] = {}
        self._files = LiveFiles()
        self._spills: dict[str, _File] = {}
        self._over: set[str] = set()  # names of files that are not read any more
        self._processes: dict[tuple[str, int, int], ProcessActivity] = {}
        self._number = 0
        self._killed: set[int] = set()  # numbers of processes
        self._gone = 0
        self._gone_total = sum_of([])
        self._gone_lost = 0
        self._damaged_bytes = 0  # of files that are over
        self._cache_places: set[str] = set()
        self._unreadable: set[str] = set()
        self._run = _Run()

    def look(self, most_s: float | None = None) -> Picture:
        """The run as it is now. Reading stops after `most_s` seconds, and the picture says how much
        is behind. Raises ForebayError for spills of a later version."""
        deadline = None if most_s is None else time.monotonic() + most_s
        is_there = self._read_command()
        dead = self._dead()
        behind = self._read(deadline)
        now = self._now_ns()
        if behind == 0:
            self._mark_killed(dead)
        self._forget(now)
        return self._picture(now, behind, is_there)

    # Reading

    def _read_command(self) -> bool:
        """Whether the directory is still there."""
        if self._run.begun_ns is None:
            try:
                told = json.loads((self.place.spills / "command.json").read_bytes())
                self._run = _Run([str(word) for word in told["command"]], int(told["begun"]))
            except (OSError, ValueError, KeyError, TypeError):
                pass  # Spills say enough by themselves.
        return self.place.spills.is_dir()

    def _read(self, deadline: float | None) -> int:
        """Bytes that it did not come to."""
        behind = 0
        for name, size in self._sizes():
            file = self._spills.setdefault(name, _File(SpillTail(self.place.spills / name)))
            if file.tail.behind_bytes(size):
                if deadline is not None and time.monotonic() > deadline:
                    behind += file.tail.behind_bytes(size)
                    continue
                behind += self._read_file(name, file, deadline, size)
            elif file.is_over:
                self._close(name)
        return behind

    def _read_file(self, name: str, file: _File, deadline: float | None, size: int) -> int:
        try:
            for piece in file.tail.pieces():
                self._take(name, file, piece)
                if deadline is not None and time.monotonic() > deadline:
                    return file.tail.behind_bytes(size)
        except FileNotFoundError:  # The run has ended, and its trace is made.
            pass
        except PermissionError:
            self._unreadable.add(name)
        return 0

    def _sizes(self) -> Iterable[tuple[str, int]]:
        """Of files whose processes have not ended: a look must not ask the file system for each
        file of a long run."""
        try:
            with os.scandir(self.place.spills) as entries:
                found = sorted(
                    entry.name
                    for entry in entries
                    if entry.name.endswith(SUFFIX) and entry.name not in self._over
                )
        except OSError:
            return
        # Who was heard of last comes last: where time is short, each has its turn.
        found.sort(key=self._heard)
        for name in found:
            if name in self._unreadable:
                continue
            try:
                yield name, (self.place.spills / name).stat().st_size
            except OSError:
                continue

    def _heard(self, name: str) -> int:
        file = self._spills.get(name)
        return file.process.heard_ns if file is not None and file.process is not None else 0

    def _take(self, name: str, file: _File, piece: Piece) -> None:
        if file.process is None:
            file.process = self._begun_in(name, piece)
        if file.process is None:  # Its beginning is damaged: nothing says whose it is.
            return
        self._clocks[file.process.process.host].hear(piece.ticks, piece.monotonic_ns)
        file.process.add(name, piece)
        self._cache_places |= file.process.cache_places
        file.is_over = file.process.ended_ns is not None

    def _begun_in(self, name: str, piece: Piece) -> ProcessActivity | None:
        for kind, _, data in spills.definitions_in(piece.definitions):
            if kind == spills.PROCESS:
                return self._begin(name, spills.process_of(data), piece)
        return None

    def _begin(self, name: str, said: Process, piece: Piece) -> ProcessActivity:
        clock = self._clocks.setdefault(said.host, HostClock(said))
        clock.hear(piece.ticks, piece.monotonic_ns)
        key = (said.host, said.pid, said.started_jiffies)
        process = self._processes.get(key)
        if process is None:
            self._number += 1
            process = ProcessActivity(self._number, said, clock, self._files)
            self._processes[key] = process
        process.begin_image(name, said)
        return process

    def _close(self, name: str) -> None:
        """Nothing came since it said that it is over."""
        file = self._spills.pop(name)
        self._over.add(name)
        self._damaged_bytes += file.tail.damaged_bytes
        if file.process is not None:
            file.process.end_image(name)

    # Who lives

    def _is_local(self, process: ProcessActivity) -> bool:
        return process.process.host == self._host

    def _life(self, process: ProcessActivity) -> local_process.Life | None:
        """None: it has ended."""
        life = local_process.life_of(process.process.pid)
        is_it = life is not None and life.started_jiffies == process.process.started_jiffies
        return life if is_it and life is not None and life.state != "Z" else None

    def _dead(self) -> list[ProcessActivity]:
        """Processes of this host that are not there any more, though they have not said so: what
        they spilled before is read after this."""
        return [
            process
            for process in self._processes.values()
            if process.ended_ns is None and self._is_local(process) and self._life(process) is None
        ]

    def _mark_killed(self, dead: list[ProcessActivity]) -> None:
        for process in dead:
            if process.ended_ns is None:
                process.ended_ns = process.heard_ns
                self._killed.add(process.number)

    def _forget(self, now: int) -> None:
        oldest = now // _NS - SECONDS - 1
        for key, process in list(self._processes.items()):
            process.forget_before(oldest)
            is_old = process.ended_ns is not None and now - process.ended_ns > _SHOWN_S * _NS
            if is_old and process.rank < 0:
                self._gone += 1
                self._gone_total += process.total
                self._gone_lost += process.lost
                del self._processes[key]

    # What is shown

    def _state(self, process: ProcessActivity, now: int) -> str:
        if process.number in self._killed:
            return "killed"
        if process.became_another and self._is_local(process) and self._life(process) is not None:
            return "untraced"
        if process.ended_ns is not None:
            return "ended"
        if now - process.heard_ns <= QUIET_S * _NS:
            return "active"
        life = self._life(process) if self._is_local(process) else None
        known = _SILENT.get(life.state) if life is not None else None
        return known or ("in MPI-IO" if process.is_inside_mpi else "quiet")

    def _picture(self, now: int, behind: int, is_there: bool) -> Picture:
        shown = [p for p in self._processes.values() if self._is_meant(p)]
        engine = any(process.has_engine for process in shown)
        dirty = self._dirty_logs.by_pid(sorted(self._cache_places)) if engine else {}
        rows = [self._row(process, now, dirty) for process in shown]
        total = sum_of([process.total for process in shown])
        series = minutes_sum([process.series(now // _NS) for process in shown])
        begun = self._run.begun_ns or min((p.begun_ns for p in shown), default=now)
        return Picture(
            spills=str(self.place.spills),
            command=self._run.command,
            taken_unix_s=now / _NS,
            elapsed_s=max(0.0, (now - begun) / _NS),
            window_s=self._window_s,
            processes=rows,
            files=self._file_rows(now),
            gone=self._gone,
            total=Rates.of(total if self.place.pids else total + self._gone_total),
            rates=Rates.of(sum_of([self._rates(process, now) for process in shown])),
            read_series=series[:, Quantity.OWN_READ_BYTES].tolist(),
            write_series=series[:, Quantity.OWN_WRITE_BYTES].tolist(),
            lost_calls=self._gone_lost + sum(process.lost for process in shown),
            behind_bytes=behind,
            ended=self._ended(is_there, rows),
            notes=self._notes(),
        )

    def _is_meant(self, process: ProcessActivity) -> bool:
        pids = self.place.pids
        return not pids or (self._is_local(process) and process.process.pid in pids)

    def _until(self, process: ProcessActivity, now: int) -> int:
        """Until when it is known what returned in a process: of a busy one until it spilled last;
        in one that has been quiet for longer than it keeps a call, nothing has."""
        is_busy = process.ended_ns is None and now - process.heard_ns <= QUIET_S * _NS
        return min(process.heard_ns, now) if is_busy else now

    def _rates(self, process: ProcessActivity, now: int) -> Floats:
        return process.rates(self._until(process, now), self._window_s)

    def _row(self, process: ProcessActivity, now: int, dirty: dict[int, int]) -> ProcessRow:
        io, posix = process.shares(self._until(process, now), self._window_s)
        series = process.series(now // _NS)
        said = process.process
        return ProcessRow(
            rank=process.rank if process.rank >= 0 else None,
            pid=said.pid,
            host=said.host,
            program=PurePath(said.executable.decode(errors="replace")).name,
            state=self._state(process, now),
            heard_age_s=max(0.0, (now - process.heard_ns) / _NS),
            rates=Rates.of(self._rates(process, now)),
            total=Rates.of(process.total),
            io_share=io,
            posix_share=posix,
            dirty_bytes=dirty.get(said.pid) if self._is_local(process) else None,
            read_series=series[:, Quantity.OWN_READ_BYTES].tolist(),
            write_series=series[:, Quantity.OWN_WRITE_BYTES].tolist(),
        )

    def _file_rows(self, now: int) -> list[FileRow]:
        shown = [p for p in self._processes.values() if self._is_meant(p)]
        numbers = {process.number for process in shown}
        # All of them are known that far.
        until = min((self._until(process, now) for process in shown), default=now)
        return [
            self._file_row(file, now, until)
            for file in self._files.known.values()
            if file.processes and (not self.place.pids or file.processes & numbers)
        ]

    def _file_row(self, file: FileActivity, now: int, until: int) -> FileRow:
        series = file.timeline.series(now // _NS)
        total = file.timeline.total
        since = until - self._window_s * _NS
        return FileRow(
            path=file.path.decode(errors="replace"),
            processes=len(file.processes),
            rates=Rates.of(file.timeline.rates(until, self._window_s, since)),
            total=Rates.of(total),
            io_s=float(total[Quantity.MPI_NS] + total[Quantity.OWN_POSIX_NS]) / _NS,
            moved_series=series[:, [Quantity.OWN_READ_BYTES, Quantity.OWN_WRITE_BYTES]]
            .sum(axis=1)
            .tolist(),
        )

    def _ended(self, is_there: bool, rows: list[ProcessRow]) -> str:
        if not is_there:
            trace = self.place.spills.with_name(self.place.spills.name.removesuffix(".spills"))
            made = (trace / "run.json").is_file()
            return f"the run has ended; its trace is {trace}" if made else "the run has ended"
        if self._over and all(row.state in ENDED for row in rows):
            return "no traced process runs now"
        return "" if rows else "no process has spilled anything yet"

    def _notes(self) -> list[str]:
        notes = []
        damaged = self._damaged_bytes + sum(f.tail.damaged_bytes for f in self._spills.values())
        if damaged:
            notes.append(f"{damaged} bytes of the spills are damaged, and were left out")
        if self._unreadable:
            notes.append(f"{len(self._unreadable)} files are another user's, and were left out")
        if self._files.forgotten:
            notes.append(f"there are many files: {self._files.forgotten} are not shown any more")
        if self._dirty_logs.problem:
            notes.append(self._dirty_logs.problem)
        return notes
