# SPDX-License-Identifier: Apache-2.0
"""Rendezvous by environment variables of torchrun and other launchers: ``env://``."""

from __future__ import annotations

import datetime
import os
import queue
import threading
import typing

from pccl.errors import InvalidArgumentError, UnavailableError

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from pccl._core import _Store

# Variables with the number of processes of a launcher and the rank, and the launcher's name.
LAUNCHERS = (
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpiexec of Open MPI"),
    ("PMI_SIZE", "PMI_RANK", "mpiexec of MPICH or Intel MPI, or srun --mpi=pmi2"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun"),
)
NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
HIGHEST_PORT = 65535
GRACE_S = 1.0  # for the error that torch raises at the deadline


def place(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Return the rank and the number of ranks, from the arguments or else the variables."""
    return (
        _number("RANK") if rank is None else rank,
        _number("WORLD_SIZE") if world_size is None else world_size,
    )


def check_is_alone() -> None:
    """Raise if a launcher has started several processes and RANK is not set."""
    for size, rank, launcher in LAUNCHERS:
        count = os.environ.get(size, "")
        if count.isascii() and count.isdigit() and int(count) > 1 and not os.environ.get("RANK"):
            raise InvalidArgumentError(
                f"{size}={count} is set: this is one of {count} processes of {launcher}, and no "
                f"rank was given; {_advice(size, rank)}, or Communicator(rank=0, world_size=1) for "
                "one alone"
            )


def attempt() -> str:
    """Return the number of restarts of the job by torchrun on this host."""
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")


def meeting_point(timeout: float) -> str | _Store:
    """Return the URL of the store that rank 0 serves, or the store of torchrun's agent."""
    address, port = _text("MASTER_ADDR"), _number("MASTER_PORT")
    if not 0 < port <= HIGHEST_PORT:
        raise InvalidArgumentError(f"env://: MASTER_PORT is {port}; use 1 to {HIGHEST_PORT}")
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return _store_of_agent(address, port, timeout)
    return f"tcp://[{address}]:{port}" if ":" in address else f"tcp://{address}:{port}"


def _store_of_agent(address: str, port: int, timeout: float) -> _Store:
    """Connect to the store of torchrun's agent, which persists across restarts of the job."""
    import torch.distributed

    dist: typing.Any = torch.distributed  # its stores are hidden from type checkers
    limit = datetime.timedelta(seconds=timeout)

    def connect() -> _Store:
        store = dist.TCPStore(address, port, is_master=False, timeout=limit, wait_for_workers=False)
        part: _Store = dist.PrefixStore("pccl", store)
        return part

    return _within(timeout, connect, f"the store of torchrun's agent at {address}:{port}")


def _within(timeout: float, connect: Callable[[], _Store], what: str) -> _Store:
    """Return the store, or raise where the server accepts the connection and does not answer."""
    done: queue.SimpleQueue[_Store | BaseException] = queue.SimpleQueue()

    def work() -> None:
        try:
            done.put(connect())
        except BaseException as error:  # the caller's thread raises it
            done.put(error)

    threading.Thread(target=work, name="pccl-store", daemon=True).start()
    try:
        found = done.get(timeout=min(timeout + GRACE_S, threading.TIMEOUT_MAX))
    except queue.Empty:
        raise UnavailableError(
            f"{what} did not answer within {timeout:g} s; is its process stopped?"
        ) from None
    if isinstance(found, BaseException):
        raise found
    return found


def _advice(size: str, rank: str) -> str:
    return (
        f'use rendezvous="env://" with RANK=${rank}, WORLD_SIZE=${size} and one MASTER_ADDR and '
        "MASTER_PORT for all"
    )


def _seen() -> str:
    """Return advice for the launcher whose variables are set."""
    for size, rank, launcher in LAUNCHERS:
        if os.environ.get(rank):
            return f"{rank} is set: this is {launcher}; {_advice(size, rank)}"
    return "start with torchrun or pccl run, or set them"


def _text(name: str) -> str:
    value = os.environ.get(name, "")
    if value:
        return value
    missing = ", ".join(other for other in NAMES if not os.environ.get(other))
    raise InvalidArgumentError(
        f"env:// needs {', '.join(NAMES)} in the environment, and {missing} is not set: {_seen()}"
    )


def _number(name: str) -> int:
    text = _text(name)
    if text.isascii() and text.isdigit():
        return int(text)
    raise InvalidArgumentError(f'env://: {name} is "{text}"; it must be a number')
