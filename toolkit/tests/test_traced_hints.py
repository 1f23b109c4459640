"""Goal: of hints for the stock MPI a trace tells those that held and those that did not, and claims
nothing where the MPI says nothing of its own.

Method: traces that are made up, of the two kinds of MPI: one that says which hints it has, and one
that gives the program its own back.
"""

from pathlib import Path

import pytest
from made_runs import MadeRun

from forebay.evaluate import traced_hints
from forebay.evaluate.in_force import NOT_REPORTED, State

OF_ROMIO = {"romio_cb_write": "automatic", "romio_no_indep_rw": "false", "cb_nodes": "2"}
FILE = "/tmp/.forebay-records-x/romio-hints"


@pytest.fixture
def run(tmp_path: Path) -> MadeRun:
    """A rank that opens and writes a file."""
    made = MadeRun(tmp_path / "t", ranks=1)
    made.run["environment"] = {"ROMIO_HINTS": FILE}
    return made


def opened(run: MadeRun, in_force: dict[str, str], asked: dict[str, str] | None = None) -> None:
    place = len(run.openings)
    run.hints += [asked or {}, in_force]
    run.openings.append({"hints_asked": len(run.hints) - 2 if asked else None})
    run.mpi("write_all", 100 * place, 10, 100, opening=place, hints=len(run.hints) - 1)


def told(run: MadeRun, **hints: str) -> dict[str, tuple[State, tuple[str, ...]]]:
    found = traced_hints.settings(hints, run.trace())
    return {each.key: (each.state, each.observed) for each in found}


def reason(run: MadeRun, **hints: str) -> str:
    (found,) = traced_hints.settings(hints, run.trace())
    assert (found.state, found.observed) == (State.NOT_RECORDED, ())
    return found.reason


@pytest.mark.parametrize(
    ("key", "asked", "said", "state"),
    [
        ("cb_nodes", "2", "2", State.IN_FORCE),
        ("cb_nodes", "8", "2", State.NOT_IN_FORCE),
        ("cb_buffer_size", "16MiB", "16777216", State.IN_FORCE),
        ("cb_buffer_size", "16777216", "16777216", State.IN_FORCE),
        ("romio_ds_write", "DISABLE", "disable", State.IN_FORCE),
        ("romio_ds_write", "disable", "Disable", State.IN_FORCE),
        ("romio_no_indep_rw", "TRUE", "true", State.IN_FORCE),
        ("romio_aggregator_list", "0", "0 ", State.IN_FORCE),
        ("romio_cb_write", "automatic", "enable", State.NOT_IN_FORCE),
    ],
)
def test_a_hint_is_compared_with_what_the_mpi_says(
    run: MadeRun, key: str, asked: str, said: str, state: State
) -> None:
    opened(run, OF_ROMIO | {key: said})
    assert told(run, **{key: asked}) == {key: (state, (said,))}


@pytest.mark.parametrize("asked", ["7", "disable", "automatic", "none"])
def test_a_hint_of_which_the_mpi_says_nothing_did_not_hold(run: MadeRun, asked: str) -> None:
    opened(run, OF_ROMIO)
    nothing = (State.NOT_IN_FORCE, (NOT_REPORTED,))
    assert told(run, made_up_hint=asked) == {"made_up_hint": nothing}


def test_one_file_that_has_it_is_enough_and_all_are_told(run: MadeRun) -> None:
    opened(run, OF_ROMIO | {"cb_nodes": "1"}, asked={"cb_nodes": "1"})
    opened(run, OF_ROMIO)
    assert told(run, cb_nodes="2") == {"cb_nodes": (State.IN_FORCE, ("1", "2"))}


@pytest.mark.parametrize("asked", [{}, {"cb_nodes": "2", "made_up_hint": "7"}])
def test_an_mpi_that_says_what_it_was_told_proves_nothing(
    run: MadeRun, asked: dict[str, str]
) -> None:
    run.files.append(FILE)
    opened(run, asked, asked)
    assert "does not tell" in reason(run, made_up_hint="7")


def test_hints_in_a_file_that_nobody_opened_did_not_hold(run: MadeRun) -> None:
    """Those that Open MPI also gets by a parameter may have."""
    opened(run, {})
    assert told(
        run, made_up_hint="7", cb_nodes="2", romio_cb_write="disable", romio_ds_read="1"
    ) == {
        "made_up_hint": (State.NOT_IN_FORCE, (traced_hints.NOT_READ,)),
        "cb_nodes": (State.NOT_RECORDED, ()),
        "romio_cb_write": (State.NOT_RECORDED, ()),
        "romio_ds_read": (State.NOT_IN_FORCE, (traced_hints.NOT_READ,)),
    }


@pytest.mark.parametrize(
    "changed",
    [{"complete": False}, {"losses": {"not kept": 3}}, {"ranks": 2}, {"environment": {}}],
    ids=str,
)
def test_what_a_trace_may_have_missed_is_not_claimed(
    run: MadeRun, changed: dict[str, object]
) -> None:
    """A second rank, for instance, of which there is nothing."""
    opened(run, {})
    run.run |= changed
    assert "does not tell" in reason(run, made_up_hint="7")


def test_the_way_to_the_file_may_be_another_one(run: MadeRun) -> None:
    run.files.append("/real" + FILE)
    opened(run, {})
    assert "does not tell" in reason(run, made_up_hint="7")


def wrote_together(run: MadeRun, moving: int, ranks: int = 4) -> None:
    """Each rank asks for 100 bytes at once; some write, and the last of all before the call."""
    run.ranks = run.processes = ranks
    run.files.append(FILE)
    for rank in range(ranks):
        run.hints.append({})
        run.openings.append({"process": rank, "hints_asked": None})
        place = {"opening": len(run.openings) - 1, "hints": 0, "process": rank}
        run.mpi("write_all", 100, 10, 100, collective=True, **place)
        if rank < moving:
            run.posix("pwrite", 105, 1, 100, within="mpi", process=rank)
    run.posix("pwrite", 50, 1, 100, within="mpi", process=ranks - 1)
    run.posix("pread", 105, 1, 100, within="mpi", process=ranks - 1)
    run.posix("pwrite", 106, 1, 100, within="program", process=ranks - 1)


@pytest.mark.parametrize(
    ("asked", "moving", "state"),
    [
        ("2", 2, State.IN_FORCE),
        ("2", 3, State.NOT_RECORDED),  # of two communicators, for instance
        ("2", 4, State.NOT_RECORDED),
        ("3", 2, State.NOT_RECORDED),  # two may be enough
        ("4", 4, State.NOT_RECORDED),  # so it is without any aggregators
        ("2", 0, State.NOT_RECORDED),
        ("many", 2, State.NOT_RECORDED),
    ],
)
def test_aggregators_are_the_processes_that_move_bytes(
    run: MadeRun, asked: str, moving: int, state: State
) -> None:
    wrote_together(run, moving)
    observed = f"{moving} of 4 processes moved the bytes"
    proven = state is not State.NOT_RECORDED
    assert told(run, cb_nodes=asked) == {"cb_nodes": (state, (observed,) if proven else ())}


def test_few_processes_of_a_trace_that_lost_some_prove_nothing(run: MadeRun) -> None:
    wrote_together(run, 2)
    run.run["losses"] = {"not kept": 3}
    assert "does not tell" in reason(run, cb_nodes="2")


@pytest.mark.parametrize("hint", [{"cb_config_list": "*:*"}, {"romio_cb_write": "enable"}], ids=str)
def test_what_open_mpi_does_without_a_hint_is_not_missed(
    run: MadeRun, hint: dict[str, str]
) -> None:
    opened(run, {})
    assert "does not tell" in reason(run, **hint)


def test_a_hint_of_its_own_makes_no_mpi_tell_those_of_romio(run: MadeRun) -> None:
    run.files.append(FILE)
    opened(run, {"mpi_memory_alloc_kinds": "system"})
    assert "does not tell" in reason(run, made_up_hint="7")


def test_striping_is_that_of_the_file(run: MadeRun) -> None:
    opened(run, OF_ROMIO | {"striping_factor": "4"})
    assert "how the files are striped" in reason(run, striping_factor="4")


def test_a_parameter_of_open_mpi_is_no_hint_of_a_file(run: MadeRun) -> None:
    opened(run, OF_ROMIO)
    assert "parameter of Open MPI" in reason(run, OMPI_MCA_io="romio321")


def test_a_run_without_files_of_mpi_shows_nothing(run: MadeRun) -> None:
    assert "opened no file through MPI" in reason(run, cb_nodes="2")
