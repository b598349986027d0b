# SPDX-License-Identifier: Apache-2.0
"""Meeting of the ranks of a job: ``rendezvous="auto"`` and ``"env://"``.

``Communicator`` calls ``resolve`` and then ``meeting_point``. Through a launcher's own store, rank
0 publishes the addresses of a store that it serves already, and a random secret.
"""

from __future__ import annotations

import secrets
import threading
import time
import typing

from pccl import _core
from pccl.errors import InvalidArgumentError, UnavailableError
from pccl.launchers import environment, parent, variables
from pccl.launchers.detection import detect
from pccl.launchers.launcher import InEnvironment, Launcher

if typing.TYPE_CHECKING:
    from pccl._core import _Store

__all__ = ["attempt", "meeting_point", "published_store", "resolve"]

AUTO, ENVIRONMENT, NONE = "auto", "env://", "none"

_FORMAT = "pccl1"  # first word of the text that rank 0 publishes
_SECRET_BYTES = 32
_LONGEST_TEXT = 1000  # characters that every launcher's store takes
_MOST_ADDRESSES = 8

attempt = environment.attempt


def resolve(
    rendezvous: str | None, rank: int | None, world_size: int | None
) -> tuple[int, int, str | None, str]:
    """Complete the arguments of a communicator.

    Parameters
    ----------
    rendezvous
        Argument of the caller that is no store.
    rank, world_size
        Arguments of the caller, or None for those of the launcher.

    Returns
    -------
    tuple
        Rank, number of ranks, the rendezvous (None for one rank alone), and how it was found.

    Raises
    ------
    pccl.InvalidArgumentError
        Several processes were started, and there is no way to the others; or the arguments
        contradict the launcher.
    """
    given = 0 if rank is None else rank, 1 if world_size is None else world_size
    if rendezvous is None or rendezvous == NONE:
        if rendezvous is None and rank is None and world_size is None:
            _check_is_alone()
        return *given, None, "none, as the caller says"
    if rendezvous == ENVIRONMENT:
        return *environment.place(rank, world_size), rendezvous, "the environment"
    if rendezvous != AUTO:
        return *given, rendezvous, "the caller's"
    if world_size == 1:
        return *given, None, "none for one rank"
    return _of_launcher(rank, world_size)


def _of_launcher(rank: int | None, size: int | None) -> tuple[int, int, str | None, str]:
    found = detect()
    launcher = found.require_meeting()
    if launcher is None:
        return 0 if rank is None else rank, 1 if size is None else size, None, str(found)
    if rank not in (None, launcher.rank) or size not in (None, launcher.size):
        raise InvalidArgumentError(
            f"rank={rank} and world_size={size} differ from those of {launcher}; leave both out, "
            "or pass a rendezvous"
        )
    in_environment = isinstance(launcher.meeting, InEnvironment)
    return launcher.rank, launcher.size, ENVIRONMENT if in_environment else AUTO, str(found)


def _check_is_alone() -> None:
    """Raise if a launcher has started several processes and RANK is not set."""
    several = variables.first_with_several()
    if several is None or environment.is_set("RANK"):
        return
    count = variables.number(several.size)
    raise InvalidArgumentError(
        f"{several.size}={count} is set: this is one of {count} processes of {several.launcher}, "
        f"and no rank was given; {several.advice}, or Communicator(rank=0, world_size=1) for one "
        "alone"
    )


def meeting_point(rendezvous: str, timeout: float) -> str | _Store | tuple[list[str], bytes]:
    """Return the URL of the store at which the ranks meet, a store, or addresses and secret.

    Parameters
    ----------
    rendezvous
        ``"env://"`` or ``"auto"``, as ``resolve`` returned it.
    timeout
        Maximum seconds to wait for the other ranks.
    """
    if rendezvous == ENVIRONMENT:
        return environment.meeting_point(timeout)
    launcher = detect().require_meeting()
    if launcher is None:
        raise UnavailableError("the launcher's variables have gone from the environment")
    if isinstance(launcher.meeting, str):
        return launcher.meeting
    return published_store(launcher, timeout)


class _Published:
    """Addresses and secret of the job's store; on rank 0 with the server, for the whole process."""

    lock = threading.Lock()
    server: _core._PublishedStore | None = None
    way: tuple[list[str], bytes] | None = None


def published_store(launcher: Launcher, timeout: float) -> tuple[list[str], bytes]:
    """Return addresses and secret of the store that rank 0 serves, once for each process."""
    with _Published.lock:
        if _Published.way is None:
            _Published.way = _exchange(launcher, time.monotonic() + timeout)
            parent.end_with_parent()
        return _Published.way


def _exchange(launcher: Launcher, deadline: float) -> tuple[list[str], bytes]:
    assert not isinstance(launcher.meeting, str)
    exchange: typing.Any = launcher.meeting
    text = None
    if launcher.rank == 0:
        secret = secrets.token_bytes(_SECRET_BYTES)
        _Published.server = _core._PublishedStore(secret)
        text = _text_of(_Published.server.addresses, secret)
    return _way_of(exchange.share(text, deadline), launcher)


def _text_of(addresses: list[str], secret: bytes) -> str:
    """Return the text that rank 0 publishes, with as many addresses as fit."""
    text = f"{_FORMAT},{secret.hex()}"
    for address in addresses:
        if len(text) + 1 + len(address) <= _LONGEST_TEXT:
            text += f",{address}"
    return text


def _way_of(text: str, launcher: Launcher) -> tuple[list[str], bytes]:
    """Return addresses and secret from the text of rank 0."""
    words = text.split(",")
    is_right = len(words) > 2 and words[0] == _FORMAT and len(words) - 2 <= _MOST_ADDRESSES
    try:
        secret = bytes.fromhex(words[1]) if is_right else b""
    except ValueError:
        secret = b""
    if len(secret) != _SECRET_BYTES:
        raise UnavailableError(
            f"the store of {launcher.name} has no addresses of rank 0, but a text of {len(text)} "
            f"characters that does not begin with {_FORMAT}; do all ranks use the same pccl?"
        )
    return words[2:], secret
