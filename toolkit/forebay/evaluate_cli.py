"""The command line of `forebay evaluate` and `forebay apply`: options and their help."""

from pathlib import Path
from typing import Annotated

import typer

from forebay.command_options import (
    TAKES_COMMAND,
    IgnoreOption,
    JsonOption,
    MpiOption,
    PrepareOption,
    RanksPerNodeOption,
    TimeOption,
    TimeoutOption,
    finite,
    writable_file,
)
from forebay.errors import ForebayError

app = typer.Typer()

FileOption = Annotated[
    Path | None,
    typer.Option(
        "--file",
        exists=True,
        dir_okay=False,
        help="File of configurations (TOML).  [default: configurations.toml, if it is there]",
    ),
]


@app.command(
    "evaluate",
    context_settings=TAKES_COMMAND,
    epilog="Examples:\n\n"
    "  forebay evaluate -- mpiexec -n 4 ./simulation out.dat\n\n"
    "  forebay evaluate --configs default,stock --time write -- mpiexec -n 4 ./simulation out.dat"
    "\n\n"
    "  forebay evaluate --configs a,b,default --least-gain 5 --blocks 60 --json e.json -- srun ./s"
    "\n\n"
    "  forebay evaluate --aa --campaigns 200 --json aa.json",
)
def evaluate_command(
    command: Annotated[
        list[str] | None,
        typer.Argument(help="The command as you would start it, after '--'.", metavar="COMMAND"),
    ] = None,
    configs: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="What to compare: configurations of the file, 'default' (Forebay without further "
            "words), 'stock' (the MPI alone).",
        ),
    ] = "best,default",
    file: FileOption = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The one that the others are compared with.  [default: 'default' if it is among "
            "them, else the last]",
        ),
    ] = None,
    time: TimeOption = "wall",
    least_gain: Annotated[
        float,
        typer.Option(
            metavar="PERCENT",
            min=0.1,
            callback=finite,
            help="The smallest gain that matters to you.",
        ),
    ] = 10,
    alpha: Annotated[
        float,
        typer.Option(
            min=1e-6, max=0.5, callback=finite, help="Probability of any wrong claim, at most."
        ),
    ] = 0.05,
    blocks: Annotated[
        int, typer.Option("--blocks", "-n", min=1, help="Blocks at most: a run of each.")
    ] = 20,
    prepare: PrepareOption = None,
    json: JsonOption = None,
    mpi: MpiOption = "auto",
    ignore: IgnoreOption = None,
    timeout: TimeoutOption = None,
    ranks_per_node: RanksPerNodeOption = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed of the order.  [default: a fresh one, which is printed]"),
    ] = None,
    aa: Annotated[
        bool,
        typer.Option("--aa", help="Run nothing: count false claims in made-up campaigns."),
    ] = False,
    campaigns: Annotated[
        int, typer.Option(metavar="N", min=1, help="Made-up campaigns of --aa.")
    ] = 200,
) -> None:
    """Show whether a configuration is faster: improved, no gain, not in effect, or too noisy.

    After a warm-up, configurations run in blocks, once each, in shuffled order and on fresh files,
    until every verdict is certain or the blocks are used up. The intervals hold however often one
    looks, and whatever the machine does meanwhile.

    Exit status: 0 if every configuration is judged, whatever the verdict, 1 if one leaves other
    files or the campaign is broken off, 2 for wrong usage, 3 if the command fails or its output
    is not of the same size twice, 130 if interrupted.
    """
    import secrets

    from forebay import configurations
    from forebay.cli import error_console, output_console
    from forebay.evaluate import campaign, evaluation, evaluation_report, self_test
    from forebay.evaluate.verdict import Plan

    plan = Plan(alpha, least_gain / 100, blocks)
    seed = secrets.randbelow(2**32) if seed is None else seed
    console = output_console()
    if aa:
        if command:
            raise ForebayError("--aa runs no command", "Leave the command out, or --aa.")
        tested = self_test.false_claims(campaigns, plan, seed)
        if json is not None:
            campaign.write_json(tested.as_json(), json)
        evaluation_report.show_self_test(console, tested)
        return
    if not command:
        raise ForebayError("there is no command", "Write it after '--'.")
    names = list(dict.fromkeys(name.strip() for name in configs.split(",") if name.strip()))
    if len(names) < 2:
        raise ForebayError("there is nothing to compare", "Name two: --configs best,default.")
    reference = against or (
        configurations.DEFAULT if configurations.DEFAULT in names else names[-1]
    )
    if reference not in names:
        raise ForebayError(f"'{reference}' is not in --configs {configs}", "Name it there, too.")
    options = campaign.EvaluateOptions(
        command=command,
        configurations=configurations.choose(names, file),
        reference=reference,
        seed=seed,
        plan=plan,
        quantity=time,
        mpi=mpi,
        ranks_per_node=ranks_per_node,
        prepare=prepare,
        ignore=ignore or [],
        timeout_s=timeout,
    )
    result = campaign.Campaign(options, error_console()).run()
    if json is not None:  # first: the terminal may be gone by now
        campaign.write_json(result.as_json(), json)
    evaluation_report.show(console, result)
    if json is not None:
        console.print(f"result: {json}", markup=False, soft_wrap=True)
    raise typer.Exit(evaluation.exit_code(result))


@app.command(
    "apply",
    epilog="Examples:\n\n  forebay apply best --format sh\n\n"
    "  forebay apply best --format intent --write best.toml\n\n"
    "  forebay apply best --format lfs --directory /scratch/me/run1",
)
def apply_command(
    name: Annotated[str, typer.Argument(help="A configuration of the file.", metavar="NAME")],
    shape: Annotated[
        str, typer.Option("--format", metavar="intent|sh|romio|lfs|slurm", help="For whom.")
    ],
    file: FileOption = None,
    directory: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Where the program makes its files (for lfs)."),
    ] = Path(),
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", callback=writable_file, help="Also write the lines into a new file."
        ),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Print the lines that put a configuration to use, and how to undo them.

    Nothing is changed: you copy them, or redirect the output into a file, in which what is no line
    of the format is a comment.

    Exit status: 0, or 2 for wrong usage, or if the format cannot say what the configuration has.
    """
    from dataclasses import asdict

    from forebay import apply, configurations
    from forebay.cli import error_console
    from forebay.evaluate.campaign import write_json

    (configuration,) = configurations.choose([name], file)
    application = apply.apply(configuration, shape, directory, write)
    text = application.text()
    if write is not None:
        try:
            with write.open("x", encoding="utf-8", errors="surrogateescape") as out:
                out.write(text)
        except FileExistsError as error:
            raise ForebayError(f"{write} is there already", "Name a new file.") from error
    typer.echo(text, nl=False)
    if json is not None:
        write_json({"version": 1, **asdict(application)}, json)
    said = f"written to {write}" if write else "nothing was changed: these are the lines to copy"
    error_console().print(said, markup=False, soft_wrap=True)
