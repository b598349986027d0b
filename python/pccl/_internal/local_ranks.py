# SPDX-License-Identifier: Apache-2.0
"""Ranks of a measurement as processes of this machine, with their results."""

from __future__ import annotations

import multiprocessing
import tempfile
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pccl._internal import own_path
from pccl.errors import PeerLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.context import SpawnProcess

__all__ = ["Worker", "run_ranks"]

EXIT_S = 10.0  # for a rank to exit after its last message

# Callable with the rank, the rendezvous URL, and a function that sends a value to the starter.
Worker: TypeAlias = "Callable[[int, str, Callable[[object], None]], None]"


def run_ranks(worker: Worker, ranks: int) -> Iterator[Any]:
    """Run ``worker`` in ``ranks`` new processes, and yield the values that they send.

    ``worker`` must be picklable. All processes end with the iteration.

    Raises
    ------
    pccl.PeerLostError
        A process ended unexpectedly.
    Exception
        Exception of a worker.
    """
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="pccl-ranks-") as folder:
        pipes = [context.Pipe(duplex=False) for _ in range(ranks)]
        processes = [
            context.Process(
                target=_be_rank, args=(worker, rank, f"file://{folder}/store", sender), daemon=True
            )
            for rank, (_, sender) in enumerate(pipes)
        ]
        try:
            for process, (_, sender) in zip(processes, pipes, strict=True):
                own_path.start(process)
                sender.close()
            yield from _words_of([receiver for receiver, _ in pipes])
            for process in processes:
                process.join(EXIT_S)
        finally:
            _end(processes)


class _Done:
    """Last message of a rank."""


def _be_rank(worker: Worker, rank: int, rendezvous: str, home: Connection) -> None:
    try:
        worker(rank, rendezvous, home.send)
        home.send(_Done())
    except Exception as error:
        home.send(error)


def _words_of(receivers: list[Connection]) -> Iterator[Any]:
    running = {receiver: rank for rank, receiver in enumerate(receivers)}
    while running:
        for receiver in cast("list[Connection]", wait(list(running))):
            try:
                word = receiver.recv()
            except EOFError:
                raise PeerLostError(
                    f"rank {running[receiver]} ended without a word", running[receiver]
                ) from None
            if isinstance(word, Exception):
                raise word
            if isinstance(word, _Done):
                del running[receiver]
            else:
                yield word


def _end(processes: Sequence[SpawnProcess]) -> None:
    for process in processes:
        if process.is_alive():
            process.kill()
            process.join()
