"""The command line of `forebay testbed`: options and their help."""

import enum
import json as json_format
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from forebay.errors import ForebayError
from forebay.gluster_volume import Kind
from forebay.testbed_state import State

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="A parallel file system on this machine, emulated or real, to try claims about shared "
    "storage.",
    epilog="Examples:\n\n  forebay testbed up --mount /tmp/pfs\n\n  forebay testbed down",
)

MountOption = Annotated[
    Path | None, typer.Option("--mount", file_okay=False, help="Which one, if several are up.")
]


class Real(enum.StrEnum):
    """File systems that are started for real."""

    GLUSTERFS = "glusterfs"


_EMULATED_ONLY = (
    "bandwidth",
    "latency",
    "stripe",
    "slots",
    "lock_cost",
    "object_cost",
    "page_cache",
    "read_ahead",
)
_REAL_ONLY = ("layout", "redundancy")
_EMULATED = "Emulated"
_REAL = "Real"


def _output_console() -> Console:
    from forebay.cli import output_console

    return output_console()


@app.command(
    "up",
    epilog="Examples:\n\n"
    "  forebay testbed up --servers 4 --bandwidth 4MiB/s --latency 3ms --stripe 64KiB "
    "--lock-cost 5ms --mount /tmp/pfs\n\n"
    "  forebay testbed up --real glusterfs --layout dispersed --mount /mnt/gluster "
    "--backing /var/tmp/bricks",
)
def up_command(
    context: typer.Context,
    mount: Annotated[Path, typer.Option("--mount", file_okay=False, help="Mount point.")],
    servers: Annotated[
        int | None,
        typer.Option(min=1, help="Storage servers.", show_default="4; of a dispersed layout 3"),
    ] = None,
    backing: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Where the files lie. Default: MOUNT.files"),
    ] = None,
    bandwidth: Annotated[
        str, typer.Option(metavar="RATE", help="Of each server.", rich_help_panel=_EMULATED)
    ] = "4MiB/s",
    latency: Annotated[
        str,
        typer.Option(metavar="TIME", help="Of each request; 3 is 3ms.", rich_help_panel=_EMULATED),
    ] = "3ms",
    stripe: Annotated[
        str,
        typer.Option(
            metavar="SIZE", help="Consecutive bytes on one server.", rich_help_panel=_EMULATED
        ),
    ] = "64KiB",
    slots: Annotated[
        int,
        typer.Option(min=1, help="Requests a server serves at once.", rich_help_panel=_EMULATED),
    ] = 10,
    lock_cost: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Lost when a stripe's writer changes.",
            rich_help_panel=_EMULATED,
        ),
    ] = "0ms",
    object_cost: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Of opening, making or removing a file, for each of its servers.",
            rich_help_panel=_EMULATED,
        ),
    ] = "0ms",
    page_cache: Annotated[
        bool,
        typer.Option(
            "--page-cache",
            help="Let the kernel keep what is read, and read ahead; else every read goes to the "
            "servers.",
            rich_help_panel=_EMULATED,
        ),
    ] = False,
    read_ahead: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Of the kernel, at most. Needs root and --page-cache.",
            show_default="as the kernel has it, mostly 128KiB",
            rich_help_panel=_EMULATED,
        ),
    ] = None,
    real: Annotated[
        Real | None,
        typer.Option(
            help="Start this file system, with its bricks on this machine. Needs root and its "
            "Debian packages.",
            rich_help_panel=_REAL,
        ),
    ] = None,
    layout: Annotated[
        Kind,
        typer.Option(
            help="Files whole on one brick each, or an erasure code over all bricks.",
            rich_help_panel=_REAL,
        ),
    ] = Kind.DISTRIBUTED,
    redundancy: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Bricks that may be lost.",
            show_default="1 if dispersed",
            rich_help_panel=_REAL,
        ),
    ] = None,
) -> None:
    """Mount it. The files stay in the backing directory when it is down."""
    from forebay import emulated_testbed, gluster_testbed, testbed

    state: State
    if real is None:
        _refuse(context, _REAL_ONLY, "belongs to --real", "Add --real glusterfs, or leave it out.")
        emulated = emulated_testbed.EmulatedOptions(
            mount,
            backing,
            servers or 4,
            bandwidth,
            latency,
            stripe,
            slots,
            lock_cost,
            object_cost,
            page_cache,
            read_ahead,
        )
        state = emulated_testbed.up(emulated)
    else:
        _refuse(
            context,
            _EMULATED_ONLY,
            "belongs to the emulated testbed",
            f"Leave it out: nothing paces {real.value}.",
        )
        options = gluster_testbed.GlusterOptions(mount, backing, layout, servers, redundancy)
        state = gluster_testbed.up(options)
    testbed.show(_output_console(), state)


def _refuse(context: typer.Context, names: tuple[str, ...], why: str, advice: str) -> None:
    """Raises ForebayError if one of these options was given."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            raise ForebayError(f"--{name.replace('_', '-')} {why}", advice)


@app.command(
    "status", epilog="Examples:\n\n  forebay testbed status\n\n  forebay testbed status --json"
)
def status_command(
    mount: MountOption = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON, to standard output.")] = False,
) -> None:
    """Say what is up, and what each server did."""
    from forebay import testbed

    found = testbed.states(mount)
    if json:
        typer.echo(json_format.dumps(found, indent=2))
        return
    console = _output_console()
    if not found:
        console.print("no testbed is up; start one with 'forebay testbed up --mount DIR'")
    for state in found:
        testbed.show(console, state)


@app.command("down", epilog="Example:\n\n  forebay testbed down --mount /tmp/pfs")
def down_command(mount: MountOption = None) -> None:
    """Unmount it, and end its servers."""
    from forebay import testbed

    state = testbed.down(mount)
    _output_console().print(
        f"{state['mount']} is down; its files are in {state['backing']}",
        markup=False,
        soft_wrap=True,
    )
