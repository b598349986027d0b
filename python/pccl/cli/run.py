"""``pccl run``."""

from typing import Annotated

import typer

from pccl.cli import terminal

EXAMPLES = terminal.examples(
    "pccl run -n 4 train.py",
    "pccl run -n 2 train.py --steps 10",
    "pccl run -n 2 -m package.train",
)


def run(
    command: Annotated[
        list[str],
        typer.Argument(help="What follows python: a script and its arguments, or -m module."),
    ],
    ranks: Annotated[int, typer.Option("-n", "--ranks", min=1, help="How many to start.")] = 2,
) -> None:
    """Run a Python script as the ranks of a job on this machine.

    Each rank finds its place in the environment, as with torchrun: RANK, LOCAL_RANK,
    WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which is what
    pccl.Communicator(rendezvous="env://") and torch.distributed read. What ranks print
    comes line by line behind the number of the rank. When one fails, the others are
    ended, and its exit code is the command's.
    """
    from pccl.launch import run_script

    raise typer.Exit(run_script(command, ranks))
