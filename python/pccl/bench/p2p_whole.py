# SPDX-License-Identifier: Apache-2.0
"""One very large read and write, with a comparison of all bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pccl import p2p
from pccl.bench.p2p import PATIENCE, start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from numpy.typing import NDArray

    _Words = NDArray[np.uint64]

__all__ = ["wrong_parts_of"]

_WORD = 8  # bytes; words contain consecutive numbers
_PART = 1 << 22  # words per comparison
_SLOWEST = 20e6  # bytes per second
_THEIRS, _MINE = 1, 1 << 40  # first words


def _parts(words: _Words, first: int) -> Iterator[tuple[_Words, _Words]]:
    """Yield each part of the words, with its expected contents."""
    for begin in range(0, len(words), _PART):
        part = words[begin : begin + _PART]
        yield part, np.arange(first + begin, first + begin + len(part), dtype=np.uint64)


def _stamp(words: _Words, first: int) -> None:
    for part, stamps in _parts(words, first):
        part[:] = stamps


def _wrong_parts(words: _Words, first: int) -> int:
    return sum(not np.array_equal(part, stamps) for part, stamps in _parts(words, first))


def _serve(pipe: Connection, transports: str, nbytes: int) -> None:
    """Run the target: register memory with known contents, then report wrong parts."""
    with p2p.Session("target", transports=transports) as session:
        words = np.empty(nbytes // _WORD, np.uint64)
        _stamp(words, _THEIRS)
        memory = session.register(words)
        pipe.send((session.connection_info(), memory.descriptor().serialize()))
        pipe.recv()
        pipe.send(_wrong_parts(words, _MINE))


def wrong_parts_of(transports: str, nbytes: int) -> int:
    """Read ``nbytes`` of another process, then write ``nbytes`` there, and compare all.

    Parameters
    ----------
    transports
        ``"shm"``, ``"tcp"`` or both.
    nbytes
        Positive multiple of 8. Each of the two processes allocates this many bytes.

    Returns
    -------
    int
        Number of parts of 32 MiB with a wrong byte, in both processes.

    Raises
    ------
    ValueError
        ``nbytes`` is not a positive multiple of 8.
    TimeoutError
        The other process or a transfer exceeds its time limit.
    """
    if nbytes <= 0 or nbytes % _WORD:
        raise ValueError(f"whole transfers have a multiple of {_WORD} bytes, not {nbytes}")
    patience = PATIENCE + nbytes / _SLOWEST
    words = np.zeros(nbytes // _WORD, np.uint64)
    process, pipe = start(_serve, transports, nbytes, patience=patience)
    with p2p.Session("initiator", transports=transports) as session:
        info, descriptor = pipe.recv()
        session.load(info)
        remote, local = session.import_memory("target", descriptor), session.register(words)
        session.read(local, remote).wait(patience)
        wrong = _wrong_parts(words, _THEIRS)
        _stamp(words, _MINE)
        session.write(local, remote).wait(patience)
        pipe.send("compare")
        if not pipe.poll(patience):
            raise TimeoutError(f"the other process does not answer in {patience:g} s")
        wrong += int(pipe.recv())
    process.join()
    return wrong
