"""The command line of `forebay intent`: options and their help."""

from pathlib import Path
from typing import Annotated

import typer

from forebay.errors import ForebayError
from forebay.intent_file import DeclaredReads
from forebay.root_extents import Order

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Intent files that say what a program will read: made from a file's own index or from a "
    "recorded run, and shown.",
    epilog="Examples:\n\n  forebay intent show reads.toml\n\n"
    "  forebay intent from-trace traces/ -o reads.toml",
)

FileArgument = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, help="The file that will be read.")
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="INTENT", help="Write it there, not to the terminal."),
]


def _write(files: list[DeclaredReads], comment: str, out: Path | None) -> None:
    from forebay import intent_file, output_paths
    from forebay.cli import error_console

    if not any(file.extents for file in files):
        raise ForebayError(
            f"there is nothing to declare: no byte is stored of {comment}",
            "Name what has been written, or read, already.",
        )
    text = intent_file.as_toml(files, comment)
    if out is None:
        typer.echo(text, nl=False)
        return
    output_paths.require_file(out)
    output_paths.write_text(out, text)
    for file in files:
        error_console().print(str(file), markup=False, soft_wrap=True)


@app.command("show", epilog="Example:\n\n  forebay intent show reads.toml")
def show_command(
    path: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The intent file.")],
) -> None:
    """Say in figures what each section of an intent file declares, and what is wrong in it.

    What is wrong is told as a run would tell it, with its line. Exit status: 0, or 1 if anything
    is.
    """
    from forebay import intent_file
    from forebay.cli import output_console
    from forebay.units import show_bytes

    console = output_console()
    content = intent_file.content_of(path)  # Once: it may be a pipe.
    sections = intent_file.sections(intent_file.parsed(content, path))
    summaries = [intent_file.summarise(section) for section in sections]
    mistakes = intent_file.mistakes(content, path)
    for number, section in enumerate(sections, start=1):
        mistakes += intent_file.misspelt(number, section)
    for summary in summaries:
        lines = [summary.pattern]
        if summary.extents:
            rest = f", {summary.to_the_end} to the end of the file" if summary.to_the_end else ""
            lines.append(
                f"  will be read: {summary.extents} extents, "
                f"{show_bytes(summary.bytes_declared)}{rest}; {summary.backward} go back"
            )
        if summary.wrong:
            lines.append(f"  no pairs of offset and length: {summary.wrong}")
        lines += [f"  {key} = {value}" for key, value in summary.others.items()]
        for line in lines:
            console.print(line, markup=False, soft_wrap=True)
    if not summaries:
        console.print("no [[file]] section", markup=False)
    for told in mistakes:
        console.print(told, markup=False, soft_wrap=True)
    raise typer.Exit(1 if mistakes else 0)


@app.command(
    "from-trace",
    epilog="Example:\n\n  forebay intent from-trace traces/ -o reads.toml",
)
def from_trace_command(
    traces: Annotated[
        list[Path],
        typer.Argument(exists=True, help="Traces of a recorded run, or directories of them."),
    ],
    out: OutOption = None,
) -> None:
    """Declare what was read in a run with FOREBAY_RECORD_READS=1.

    'forebay run --record' does both at once.
    """
    from forebay import read_traces
    from forebay.cli import error_console

    recording = read_traces.load(traces)
    for text in recording.rejected:
        error_console().print(f"left out: {text}", markup=False, soft_wrap=True)
    _write(recording.files, "what a recorded run read", out)
    raise typer.Exit(1 if recording.rejected else 0)


@app.command(
    "from-hdf5",
    epilog="Example:\n\n  forebay intent from-hdf5 run.h5 --dataset fields/u -o reads.toml",
)
def from_hdf5_command(
    path: FileArgument,
    dataset: Annotated[
        list[str], typer.Option("--dataset", metavar="NAME", help="Or a group; may be repeated.")
    ],
    out: OutOption = None,
) -> None:
    """Declare the reading of datasets: where they lie is in the HDF5 file's own index."""
    from forebay import hdf5_extents

    reads = hdf5_extents.extents_of(path, dataset)
    _write([reads], f"HDF5 datasets {', '.join(dataset)} of {path}", out)


@app.command(
    "from-root",
    epilog="Examples:\n\n  forebay intent from-root events.root --tree Events --branches 'Muon_*' "
    "-o reads.toml",
)
def from_root_command(
    path: FileArgument,
    tree: Annotated[str, typer.Option("--tree", metavar="NAME", help="The TTree.")],
    branches: Annotated[
        list[str] | None,
        typer.Option("--branches", metavar="PATTERN", help="All if not given; may be repeated."),
    ] = None,
    order: Annotated[
        Order, typer.Option("--order", help="Event by event, or branch after branch.")
    ] = Order.ENTRY,
    out: OutOption = None,
) -> None:
    """Declare the reading of branches: where they lie is in the ROOT file's index of baskets."""
    from forebay import root_extents

    reads = root_extents.extents_of(path, tree, branches or [], order)
    _write([reads], f"branches {', '.join(branches or ['*'])} of {tree} in {path}", out)
