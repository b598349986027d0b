# SPDX-License-Identifier: Apache-2.0
"""Rendezvous by environment variables of torchrun and other launchers: ``env://``."""

from __future__ import annotations

import datetime
import os
import typing

from pccl._internal.bounded_call import call_within
from pccl.errors import InvalidArgumentError, UnavailableError
from pccl.launchers import variables

if typing.TYPE_CHECKING:
    from pccl._core import _Store

NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def place(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Return the rank and the number of ranks, from the arguments or else the variables."""
    return (
        _number("RANK") if rank is None else rank,
        _number("WORLD_SIZE") if world_size is None else world_size,
    )


def is_set(name: str) -> bool:
    """Return whether a variable has a value."""
    return bool(os.environ.get(name))


def attempt() -> str:
    """Return the number of restarts of the job by torchrun on this host."""
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")


def meeting_point(timeout: float) -> str | _Store:
    """Return the URL of the store that rank 0 serves, or the store of torchrun's agent."""
    address, port = _text("MASTER_ADDR"), _number("MASTER_PORT")
    if not 0 < port <= variables.HIGHEST_PORT:
        raise InvalidArgumentError(
            f"env://: MASTER_PORT is {port}; use 1 to {variables.HIGHEST_PORT}"
        )
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return _store_of_agent(address, port, timeout)
    return variables.url_of(address, port)


def _store_of_agent(address: str, port: int, timeout: float) -> _Store:
    """Connect to the store of torchrun's agent, which persists across restarts of the job."""
    import torch.distributed

    dist: typing.Any = torch.distributed  # its stores are hidden from type checkers
    limit = datetime.timedelta(seconds=timeout)

    def connect() -> _Store:
        store = dist.TCPStore(address, port, is_master=False, timeout=limit, wait_for_workers=False)
        part: _Store = dist.PrefixStore("pccl", store)
        return part

    return call_within(
        timeout,
        connect,
        late=lambda: UnavailableError(
            f"the store of torchrun's agent at {address}:{port} did not answer within "
            f"{timeout:g} s; is its process stopped?"
        ),
    )


def _text(name: str) -> str:
    value = os.environ.get(name, "")
    if value:
        return value
    missing = ", ".join(other for other in NAMES if not os.environ.get(other))
    raise InvalidArgumentError(
        f"env:// needs {', '.join(NAMES)} in the environment, and {missing} is not set: {_advice()}"
    )


def _advice() -> str:
    """Return advice for the launcher whose variables are set."""
    seen = variables.first_seen()
    if seen is None:
        return "start with torchrun or pccl run, or set them"
    return f"{seen.rank} is set: this is {seen.launcher}; {seen.advice}"


def _number(name: str) -> int:
    text = _text(name)
    if text.isascii() and text.isdigit():
        return int(text)
    raise InvalidArgumentError(f'env://: {name} is "{text}"; it must be a number')
