# SPDX-License-Identifier: Apache-2.0
"""``pccl run``."""

from typing import Annotated

import typer

from pccl.cli import terminal

EXAMPLES = terminal.examples(
    "pccl run -n 4 train.py",
    "pccl run -n 2 train.py --steps 10",
    "pccl run -n 2 -m package.train",
    "pccl run -n 4 --keep-going train.py",
)


def run(
    command: Annotated[
        list[str],
        typer.Argument(help="What follows python: a script and its arguments, or -m module."),
    ],
    ranks: Annotated[int, typer.Option("-n", "--ranks", min=1, help="How many to start.")] = 2,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going", help="Let the others go on when a rank fails, as after a shrink."
        ),
    ] = False,
    grace: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            help="For how long ranks may go on after another has failed, or after Ctrl-C.",
        ),
    ] = 5.0,
) -> None:
    """Run a Python script as the ranks of a job on this machine.

    Each rank finds its place in the environment, as with torchrun: RANK, LOCAL_RANK,
    WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which is what
    pccl.Communicator(rendezvous="env://") and torch.distributed read. What ranks print
    comes line by line behind the number of the rank. They read nothing: their stdin is
    /dev/null.

    When a rank fails, the others have --grace seconds to end by themselves. Those that
    still run get SIGTERM then, and SIGKILL 2 s later. A line on stderr names the first
    that failed, and how; its exit code, or 128 and the number of its signal, is the
    command's. With --keep-going the others go on until they end by themselves; the
    command's exit code is 0 if the last of them ended with 0.

    Ctrl-C is passed on to ranks as SIGINT, and SIGTERM and SIGHUP as they are; then, too,
    they have --grace seconds. A second Ctrl-C kills them. What a rank has started ends
    with it, but for processes that made a session of their own.
    """
    from pccl.launch.scripts import run_script

    raise typer.Exit(run_script(command, ranks, keep_going=keep_going, grace=grace))
