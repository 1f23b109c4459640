"""The command line of the campaigns: see docs/experiments/README.md, or --help."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import cache_local_page
import cache_local_runs
import cache_page
import cache_runs
import campaign
import internals_page
import internals_runs
import local_page
import local_runs
import log_page
import log_runs
import testbed_page
import testbed_runs
from local_runs import Task
from measuring import MeasuringError, Tools
from results import ROOT

HERE = Path(__file__).resolve().parent


class What(StrEnum):
    """The campaigns, and what writes their pages alone."""

    LOCAL = "local"
    INDEPENDENT = "independent"
    TESTBED = "testbed"
    INTERNALS = "internals"
    CACHE = "cache"
    CACHE_LOCAL = "cache-local"
    LOG = "log"
    TABLE = "table"


# Those that run both in memory and on a local disk.
LOCALLY = {
    What.LOCAL: local_runs.collective,
    What.INDEPENDENT: local_runs.independent,
    What.LOG: log_runs.measure,
}

PAGES = (local_page, testbed_page, internals_page, cache_page, cache_local_page, log_page)

WhatArgument = Annotated[
    What,
    typer.Argument(
        help="local: collective against collective calls, 2 ranks. independent: Forebay's "
        "collective against the stock's independent calls. testbed: 8 ranks on an emulated "
        "parallel file system. internals: copies, messages, schedule time, memory. cache: files "
        "written one after another, with and without the write-behind cache. cache-local: the same "
        "on a local disk, and on GlusterFS with its bricks there (as root). log: what the cache "
        "takes in, against fio on the same device. table: write the pages from the results that "
        "are there."
    ),
]
LocalOption = Annotated[
    Path | None,
    typer.Option(
        "--local",
        help="A directory on a local disk, for 'local', 'independent', 'cache-local' and 'log'.",
    ),
]
TmpfsOption = Annotated[Path, typer.Option("--tmpfs", help="A directory in memory.")]
PairsOption = Annotated[int, typer.Option("--pairs", "-n", min=1, help="Timed pairs.")]
MpiOption = Annotated[
    list[str] | None, typer.Option("--mpi", help="This MPI only; may be repeated.")
]
OnlyOption = Annotated[
    list[str] | None, typer.Option("--only", help="This workload only; may be repeated.")
]
PlaceOption = Annotated[
    list[str] | None,
    typer.Option("--place", help="Of 'cache-local': this place only; may be repeated."),
]
DeviceOption = Annotated[
    list[str] | None,
    typer.Option("--device", help="Of 'cache': logs on this device only; may be repeated."),
]
AggregatorsOption = Annotated[
    list[int] | None,
    typer.Option("--aggregators", help="Of 'cache': so many only; may be repeated."),
]
BufferOption = Annotated[
    list[str] | None,
    typer.Option("--buffer", help="Of 'cache': of this size only; may be repeated."),
]
TimeoutOption = Annotated[float, typer.Option("--timeout", help="Seconds for one run.")]
AgainOption = Annotated[bool, typer.Option("--again", help="Measure also what is there already.")]
ForebayOption = Annotated[Path, typer.Option("--forebay", help="The command.")]
WorkloadsOption = Annotated[Path, typer.Option("--workloads", help="The workloads, by MPI.")]
CampaignOption = Annotated[Path, typer.Option("--campaign", help="What to measure.")]
OutputOption = Annotated[
    Path, typer.Option("--output", help="Where results/ and the pages are.", file_okay=False)
]


def measure(
    what: WhatArgument,
    local: LocalOption = None,
    tmpfs: TmpfsOption = Path("/dev/shm"),
    pairs: PairsOption = 6,
    mpi: MpiOption = None,
    only: OnlyOption = None,
    place: PlaceOption = None,
    device: DeviceOption = None,
    aggregators: AggregatorsOption = None,
    buffer: BufferOption = None,
    timeout: TimeoutOption = 300,
    again: AgainOption = False,
    forebay: ForebayOption = ROOT / ".venv/bin/forebay",
    workloads: WorkloadsOption = ROOT / "build/proxies",
    campaign_file: CampaignOption = HERE / "campaign.toml",
    output: OutputOption = HERE,
) -> None:
    """Repeats what is claimed of the collective engine, and writes the pages that show it.

    Results that are there already are not measured again, so an interrupted campaign goes on where
    it was.
    """
    described = campaign.load(campaign_file)
    for key in mpi or []:
        if key not in described.mpis:
            raise MeasuringError(f"no MPI '{key}'; there are {', '.join(described.mpis)}")
    if what is not What.TABLE:
        task = Task(
            campaign=described,
            tools=Tools(forebay.absolute(), workloads.absolute()),
            results=output / "results",
            mpis=[found for key, found in described.mpis.items() if not mpi or key in mpi],
            pairs=pairs,
            timeout_s=timeout,
            say=lambda text: print(text, flush=True),
            again=again,
            only=only or [],
        )
        task.tools.check()
        if runs := LOCALLY.get(what):
            runs(task, [tmpfs, _on_disk(local)])
        elif what is What.CACHE_LOCAL:
            cache_local_runs.measure(task, tmpfs, _on_disk(local), place or [])
        elif what is What.TESTBED:
            testbed_runs.measure(task, tmpfs)
        elif what is What.CACHE:
            part = cache_runs.Part(device or [], aggregators or [], buffer or [])
            cache_runs.measure(task, tmpfs, part)
        else:
            internals_runs.measure(task, tmpfs)
    for page in PAGES:
        print(page.write(output, described))


def _on_disk(local: Path | None) -> Path:
    if local is None:
        raise MeasuringError("name a directory on a local disk: --local DIR")
    return local


def main() -> None:
    """Entry point. Exit status 130 after Ctrl-C; the same command then goes on."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(measure)
    try:
        app(standalone_mode=True)
    except MeasuringError as error:
        print(f"run.py: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
