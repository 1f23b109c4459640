"""The command line of `forebay configure`: options and their help."""

from pathlib import Path
from typing import Annotated

import typer

from forebay.command_options import (
    CommandArgument,
    IgnoreOption,
    JsonOption,
    MpiOption,
    PrepareOption,
    RanksPerNodeOption,
    TimeOption,
    TimeoutOption,
    finite,
)
from forebay.errors import ForebayError

app = typer.Typer()


@app.command(
    "configure",
    epilog="Examples:\n\n"
    "  forebay trace -o job.trace -- mpiexec -n 4 ./simulation out.dat\n\n"
    "  forebay configure job.trace --system system.json -- mpiexec -n 4 ./simulation out.dat\n\n"
    "  forebay configure job.trace --budget 2h --constraint 'redundancy>=1' --constraint "
    "'aggregators<=8' -- srun ./simulation\n\n"
    "  forebay configure job.trace --variable FILE_PER_PROCESS=0,1 -- mpiexec -n 4 ./simulation\n\n"
    "  forebay configure job.trace --constraint engine=mpi -- mpiexec -n 4 ./simulation",
)
def configure_command(
    run: Annotated[
        Path, typer.Argument(exists=True, help="A trace directory of the command.", metavar="RUN")
    ],
    command: CommandArgument,
    system: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, metavar="FILE", help="Limits of the system (system.json)."
        ),
    ] = None,
    runs: Annotated[int, typer.Option("--max-runs", metavar="N", min=3, help="Runs at most.")] = 30,
    budget: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time for all runs: 2h, 90min, 1h30min, 45s."),
    ] = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE", help="What every setting has to keep: 'stripe_count<=4'; repeatable."
        ),
    ] = None,
    variable: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=A,B",
            help="A variable by which the program chooses, with values to try; repeatable. "
            "Directories are told apart by their striping and limits.",
        ),
    ] = None,
    least_gain: Annotated[
        float,
        typer.Option(
            metavar="PERCENT",
            min=0.1,
            callback=finite,
            help="The smallest gain that matters to you.",
        ),
    ] = 5,
    time: TimeOption = "wall",
    prepare: PrepareOption = None,
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the search is kept, and goes on from.  [default: configure.sqlite]",
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Forget the history, and begin anew.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Where the configurations go.  [default: configurations.toml]",
        ),
    ] = None,
    json: JsonOption = None,
    mpi: MpiOption = "auto",
    ignore: IgnoreOption = None,
    timeout: TimeoutOption = None,
    ranks_per_node: RanksPerNodeOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search.")] = 1,
) -> None:
    """Look for settings under which the command runs faster, within a budget of runs.

    First it says what could be had at best, from the trace. What the program, the file system or
    a constraint rules out is left out; the rest is ordered by a model of the traced phases and the
    system's limits, which learns from each run. The best goes to a file of configurations, with
    the 'forebay evaluate' that proves it: a search's own times prove nothing.

    Exit status: 0 if something looks faster, 4 if nothing does or I/O takes too little of the time,
    1 if the search is broken off or a file is damaged, 2 for wrong usage, 3 if the command fails or
    its output is not of the same size twice, 130 if interrupted (the same command goes on).
    """
    from forebay import configurations, output_paths, units
    from forebay.cli import error_console, output_console
    from forebay.configure import (
        constraints,
        factors,
        result,
        result_file,
        search,
        search_report,
    )
    from forebay.configure import (
        history as histories,
    )
    from forebay.evaluate.campaign import write_json

    out = out or Path(configurations.FILE_NAME)
    history = history or Path(histories.FILE_NAME)
    for path in (out, history):
        output_paths.require_file(path)
    result_file.require_own(out)
    variables = [factors.parse_variable(text) for text in variable or []]
    rules = tuple(constraints.parse(text, variables) for text in constraint or [])
    if not command:
        raise ForebayError("there is no command", "Write it after '--'.")
    options = search.ConfigureOptions(
        command=command,
        trace=run,
        history=history,
        seed=seed,
        system=system,
        constraints=constraints.Constraints(rules),
        variables=variables,
        runs_max=runs,
        budget_s=None if budget is None else units.parse_duration(budget),
        least_gain=least_gain / 100,
        quantity=time,
        mpi=mpi,
        ranks_per_node=ranks_per_node,
        prepare=prepare,
        ignore=ignore or [],
        timeout_s=timeout,
        again=again,
    )
    found = search.Searcher(options, error_console()).run()
    written = result_file.write(found, history, out)
    if json is not None:  # first: the terminal may be gone by now
        write_json(found.as_json(), json)
    console = output_console()
    search_report.show(console, found, out, written)
    if json is not None:
        console.print(f"result: {json}", markup=False, soft_wrap=True)
    raise typer.Exit(result.exit_code(found))
