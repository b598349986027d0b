# SPDX-License-Identifier: Apache-2.0
"""Rendezvous of ``init_process_group`` by ``init_method="pccl://"``, for every backend of torch.

It finds the ranks as ``Communicator(rendezvous="auto")`` does. torch needs a store of its own: rank
0 opens it at a free port, and publishes the port in PCCL's store.
"""

from __future__ import annotations

import datetime
import itertools
import time
import typing
from urllib.parse import urlsplit

import torch.distributed

from pccl import _core
from pccl._internal.time_limits import limit_of
from pccl.errors import InvalidArgumentError
from pccl.errors import TimeoutError as PcclTimeoutError
from pccl.launchers import meeting
from pccl.launchers.detection import detect
from pccl.launchers.launcher import InEnvironment, Launcher

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["meet"]

_PAUSE_S = 0.01
_DEFAULT_TIMEOUT = datetime.timedelta(minutes=30)

_numbers = itertools.count()  # of the calls in this process, which are the same on all ranks
dist: typing.Any = torch.distributed  # its stores are hidden from type checkers


def meet(
    url: str, timeout: datetime.timedelta = _DEFAULT_TIMEOUT, **options: typing.Any
) -> Iterator[tuple[typing.Any, int, int]]:
    """Yield the store, the rank and the number of ranks, as torch expects of a handler.

    Parameters
    ----------
    url
        ``"pccl://"``; rank and world_size of the caller are refused, since the launcher has them.
    timeout
        Maximum time to wait for the other ranks.
    options
        Options of torch's own handlers, which get them.

    Raises
    ------
    pccl.InvalidArgumentError
        The launcher leads to no meeting, or the caller has passed rank or world_size.
    """
    parts = urlsplit(url)
    if parts.netloc or parts.path or parts.query:
        raise InvalidArgumentError(
            f'init_method is "{url}": write "pccl://", without rank and world_size, which the '
            "launcher has"
        )
    launcher = detect().require_meeting()
    if launcher is None:
        yield dist.HashStore(), 0, 1
    elif isinstance(launcher.meeting, InEnvironment):
        yield from dist.rendezvous("env://", timeout=timeout, **options)
    elif isinstance(launcher.meeting, str):
        place = launcher.rank, launcher.size
        yield from dist.rendezvous(launcher.meeting, *place, timeout=timeout, **options)
    else:
        yield _tcp_store(launcher, timeout), launcher.rank, launcher.size


def _tcp_store(launcher: Launcher, timeout: datetime.timedelta) -> typing.Any:
    """Return torch's store, which rank 0 serves at a port that the system has chosen."""
    seconds = limit_of(timeout)
    addresses, secret = meeting.published_store(launcher, seconds)
    published = _core._RendezvousStore.join_published(addresses, secret, seconds)
    key, host = f"torch/{next(_numbers)}", published.server
    is_first = launcher.rank == 0
    port = 0 if is_first else int(_wait_for(published, key, seconds))
    store = dist.TCPStore(
        host, port, launcher.size, is_first, timeout=timeout, wait_for_workers=False
    )
    if is_first:
        published.set(key, str(store.port).encode())
    return store


def _wait_for(store: _core._RendezvousStore, key: str, seconds: float) -> bytes:
    """Return the value of a key, which rank 0 sets."""
    deadline = time.monotonic() + seconds
    while (value := store.look_up(key)) is None:
        if time.monotonic() >= deadline:
            raise PcclTimeoutError(
                f"rank 0 did not open torch's store within {seconds:g} s; has it called "
                "init_process_group?",
                rank=0,
            )
        time.sleep(_PAUSE_S)
    return value
