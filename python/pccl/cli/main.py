# SPDX-License-Identifier: Apache-2.0
"""The command ``pccl``: its commands, and how it ends."""

import sys
from typing import Annotated

import typer

from pccl._version import __version__
from pccl.cli import (
    bench,
    capsule,
    debug,
    doctor,
    info,
    nccl_plugin,
    nixl,
    p2p,
    phase,
    run,
    status,
    terminal,
    topo,
    tune,
    why,
)
from pccl.errors import Error

app = typer.Typer(
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # plain help fits 80 columns, and fills the paragraphs of docstrings
)

# The one error that typer exports; its base is that of all errors of the command line.
_USAGE_ERROR: type[typer.BadParameter] = typer.BadParameter.__mro__[1]
_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"pccl {__version__}")
        raise typer.Exit


@app.callback(
    invoke_without_command=True,
    epilog=terminal.examples(
        "pccl info",
        "pccl run -n 4 train.py",
        "pccl bench all_reduce --max 1M",
        "pccl topo --example dgx1v --search ring",
    ),
)
def _pccl(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """PCCL: programmable collective communication.

    Each command has its own --help.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


app.command("info", epilog=info.EXAMPLES)(info.info)
app.command(
    "run",
    epilog=run.EXAMPLES,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)(run.run)
app.command("bench", epilog=bench.EXAMPLES)(bench.bench)
app.command("tune", epilog=tune.EXAMPLES)(tune.tune)
app.command("topo", epilog=topo.EXAMPLES)(topo.topo)
app.add_typer(capsule.app, name="capsule", epilog=capsule.EXAMPLES)
app.command("debug", epilog=debug.EXAMPLES)(debug.debug)
app.command("doctor", epilog=doctor.EXAMPLES)(doctor.doctor)
app.command("status", epilog=status.EXAMPLES)(status.status)
app.command("why", epilog=why.EXAMPLES)(why.why)
app.add_typer(phase.app, name="phase")
app.add_typer(p2p.app, name="p2p")
app.add_typer(nixl.app, name="nixl")
app.command("nccl-plugin", epilog=nccl_plugin.EXAMPLES)(nccl_plugin.nccl_plugin)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def main() -> None:
    """Entry point of the ``pccl`` command; an error is one line and status 2."""
    try:
        status = app(prog_name="pccl", standalone_mode=False)
    except _USAGE_ERROR as error:
        terminal.complain(error.format_message())
        status = error.exit_code
    except typer.Abort:
        status = _INTERRUPTED
    except (ImportError, OSError, ValueError, Error) as error:
        terminal.complain(_reason(error))
        status = 2
    sys.exit(status)
