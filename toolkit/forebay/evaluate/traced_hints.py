"""Whether hints for the stock MPI held in a run, as a trace of it tells.

A trace has what the MPI said of each opened file (MPI_File_get_info), and which files were opened.
MPICH says what its ROMIO has, also of what nobody asked for, and leaves out what that does not
know. Open MPI gives a program its own hints back, known or not, and none other: that proves
nothing, but which processes moved bytes is seen, and whether one read the file that ROMIO reads.
[MPICH 4.0, Open MPI 4.1]
"""

from collections.abc import Mapping
from pathlib import Path

from forebay import stock_hints
from forebay.evaluate import traced_aggregators
from forebay.evaluate.in_force import NOT_REPORTED, NOT_STRIPED, Setting, State, compared
from forebay.trace import hint_sets, tables
from forebay.trace.directory import Trace
from forebay.trace.hint_sets import Hints

NOT_READ = f"no MPI that reads {stock_hints.ROMIO_FILE}"
_AGGREGATORS = "cb_nodes"
# Hints that OMPIO does not read, but needs not: it has no bound of aggregators on a node, and makes
# collective calls collective by itself.
_NEEDLESS = ("cb_config_list", "romio_cb_write", "romio_cb_read")
_NO_FILE = "the traced run opened no file through MPI"
_NO_HINT = "it is a parameter of Open MPI, and no hint of a file"
SAYS_NOTHING = "the MPI does not tell which hints it has"


def settings(hints: Mapping[str, str], trace: Trace) -> list[Setting]:
    """What became of `hints` in a run that had them by `stock_hints`. As in records, one opening
    that has a value is enough: a program may give a file other hints itself."""
    openings = trace.rows("openings")
    told = _told(trace, openings)
    unread = bool(openings) and not told and _is_unread(trace)
    found = [
        _striping(key, asked, trace)
        if key in hint_sets.OF_FILES and openings
        else _setting(key, asked, openings, told, unread)
        for key, asked in hints.items()
    ]
    return [_by_processes(each, trace) if each.reason == SAYS_NOTHING else each for each in found]


def _setting(key: str, asked: str, openings: int, told: list[Hints], unread: bool) -> Setting:
    if not openings:
        return Setting(key, asked, (), State.NOT_RECORDED, _NO_FILE)
    if not stock_hints.is_for_romio(key):
        return Setting(key, asked, (), State.NOT_RECORDED, _NO_HINT)
    by_parameter = stock_hints.is_parameter(key, asked)
    seen = {hints.get(key) for hints in told}
    if told and not (by_parameter and seen == {None}):
        return compared(key, asked, {NOT_REPORTED if value is None else value for value in seen})
    if unread and not by_parameter and key not in _NEEDLESS:
        return Setting(key, asked, (NOT_READ,), State.NOT_IN_FORCE)
    return Setting(key, asked, (), State.NOT_RECORDED, SAYS_NOTHING)


def _striping(key: str, asked: str, trace: Trace) -> Setting:
    """By the files: MPIs echo it for file systems that have no stripes."""
    opened = set(trace.table("openings")["file"].to_pylist())
    column = hint_sets.OF_FILES[key]
    stripes = trace.table("files", [column])[column].to_pylist()
    seen = sorted({str(v) for place, v in enumerate(stripes) if place in opened and v is not None})
    if not seen:
        return Setting(key, asked, (), State.NOT_RECORDED, NOT_STRIPED)
    return compared(key, asked, seen)


def _by_processes(setting: Setting, trace: Trace) -> Setting:
    """An MPI that does not tell shows how many aggregators it has where more processes ask for
    bytes than were to move them. Others than asked for prove nothing: fewer may be enough, and a
    file may be opened by several communicators, or its calls may not be worth aggregating."""
    if setting.key != _AGGREGATORS or not setting.asked.isdecimal() or not _is_whole(trace):
        return setting
    most = int(setting.asked)
    shown = [c for c in traced_aggregators.of(trace) if c.asking > most == c.moving]
    if not shown:
        return setting
    observed = tuple(sorted({str(each) for each in shown}))
    return Setting(setting.key, setting.asked, observed, State.IN_FORCE)


def _told(trace: Trace, openings: int) -> list[Hints]:
    """The sets in force that name a hint of ROMIO for which the program had not asked."""
    sets = hint_sets.of(trace)
    asked = tables.integers(trace.table("openings"), "hints_asked")
    found: dict[int, Hints] = {}
    for place, numbers in enumerate(hint_sets.in_force(trace, openings)):
        own = sets.get(int(asked[place]), {})
        for number in numbers:
            if hint_sets.tells_more(sets.get(number, {}), own):
                found[number] = sets[number]
    return list(found.values())


def _is_unread(trace: Trace) -> bool:
    """Whether it is certain that no process opened the file of hints."""
    named = trace.run.environment.get(stock_hints.ROMIO_FILE)
    if not named or not _is_whole(trace):
        return False
    # The end alone: the way there may be over a link.
    end = Path(named).parts[-2:]
    return all(Path(path).parts[-2:] != end for path in trace.table("files")["path"].to_pylist())


def _is_whole(trace: Trace) -> bool:
    """Whether all that every rank did is in it."""
    ranks = set(trace.table("processes")["rank"].to_pylist())
    run = trace.run
    return run.complete and not run.losses and ranks.issuperset(range(run.ranks))
